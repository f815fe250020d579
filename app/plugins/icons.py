"""A plugin's icons: found, checked, and brought into the package's ``icons/``."""

from collections.abc import Callable
from pathlib import Path

from app.plugins.projects import Project

FOLDER = "icons"
COPIES = "icons/copied"
"""Where the build puts icons from elsewhere, each under the path of its trigger."""

SIZE_LIMIT = 50 * 1024
"""Bytes of an icon."""

_LOOKS_LIKE: dict[str, Callable[[bytes], bool]] = {
    ".svg": lambda data: b"<svg" in data,
    ".png": lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"),
    ".jpg": lambda data: data.startswith(b"\xff\xd8\xff"),
    ".jpeg": lambda data: data.startswith(b"\xff\xd8\xff"),
    ".gif": lambda data: data.startswith((b"GIF87a", b"GIF89a")),
    ".webp": lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP",
}


class IconRefused(Exception):
    """An icon breaks a rule; the message is a sentence about it."""


def check(project: Project, icon: str) -> Path:
    """Return the file that ``icon``, a path relative to the package, names. Raises IconRefused."""
    path = (project.directory / icon).resolve()
    if not path.is_relative_to(project.root):
        raise IconRefused(f"The icon {icon} lies outside the plugin's folder.")
    if not path.is_file():
        raise IconRefused(f"The icon {icon} is missing; it is looked for at {project.shown(path)}.")
    size = path.stat().st_size
    if size > SIZE_LIMIT:
        raise IconRefused(
            f"The icon {icon} has {size:,} bytes; at most {SIZE_LIMIT:,} are allowed."
        )
    if not _LOOKS_LIKE[Path(icon).suffix](path.read_bytes()):
        raise IconRefused(f"The icon {icon} holds no image of the type that its name says.")
    return path


def shipped_as(project: Project, icon: str, trigger_path: str) -> str:
    """Return the path, relative to the package, under which an icon ships."""
    lexical = (project.directory / icon).resolve()
    folder = (project.directory / FOLDER).resolve()
    if lexical.is_relative_to(folder):
        return f"{FOLDER}/{lexical.relative_to(folder).as_posix()}"
    return f"{COPIES}/{trigger_path}{lexical.suffix}"


def bring(project: Project, source: Path, shipped: str) -> None:
    """Put an icon where it ships, unless it lies there."""
    target = project.directory / shipped
    if target.resolve() != source:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
