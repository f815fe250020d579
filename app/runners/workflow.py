"""Finding the workflow in an exported tree, and the command that runs it."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from app.errors import RunFailure

DIRECTORY = Path(".bellringer/workflows")
ENDINGS = ("", ".py", ".sh")
MOST_LISTED = 20
MOST_LOOKED_AT = 2000

_VALID = re.compile(r"(?![~/])(?!.*//)(?!.*/\Z)[A-Za-z0-9/._-]{1,255}")


def resolve(tree: Path, workflow: str) -> Path:
    """Return the path of ``workflow`` inside ``tree``.

    The path itself counts if it is a file; else the only match in ``.bellringer/workflows/`` with
    no ending, ``.py`` or ``.sh``. Raises :exc:`RunFailure`: ``target-invalid`` for a name that
    breaks the rules, else ``workflow-not-found``, saying which there are.
    """
    if not _VALID.fullmatch(workflow) or {".", ".."} & set(workflow.split("/")):
        raise RunFailure(
            "target-invalid", f"The workflow {workflow!r} is not a path in a repository."
        )
    itself = tree / workflow
    if _is_file(tree, itself, workflow):
        return itself
    candidates = [tree / DIRECTORY / (workflow + ending) for ending in ENDINGS]
    found = [path for path in candidates if _is_file(tree, path, workflow)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(str(path.relative_to(tree)) for path in found)
        raise RunFailure(
            "workflow-not-found",
            f"The workflow {workflow!r} is ambiguous: there are {names}. "
            "Name one by its whole path.",
        )
    raise RunFailure(
        "workflow-not-found",
        f"There is no workflow {workflow!r}, neither as a file nor in {DIRECTORY}/ with no ending, "
        f".py or .sh. {_what_exists(tree)}",
    )


def command(path: Path, python: str) -> Sequence[str]:
    """Return the arguments that run the file at ``path``.

    An executable file is run directly; where it has no ``#!`` line to say how, and otherwise,
    ``.py`` goes to ``python`` and ``.sh`` to ``sh``. Raises :exc:`RunFailure` for anything else.
    """
    interpreters = {".py": (python, "-u"), ".sh": ("/bin/sh",)}
    interpreter = interpreters.get(path.suffix)
    executable = path.stat().st_mode & 0o111 != 0
    if executable and (interpreter is None or _starts_with(path, b"#!")):
        return (str(path),)
    if interpreter is not None:
        return (*interpreter, str(path))
    raise RunFailure(
        "workflow-not-found",
        f"The workflow file {path.name!r} can't be run: it is not executable and ends in neither "
        ".py nor .sh. Commit it as executable (git update-index --chmod=+x) with a #! line.",
    )


def _is_file(tree: Path, path: Path, workflow: str) -> bool:
    try:
        real = path.resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, RuntimeError):
        raise RunFailure(
            "workflow-not-found", f"The workflow {workflow!r} is a symbolic link to itself."
        ) from None
    if not real.is_relative_to(tree.resolve()):
        raise RunFailure(
            "workflow-not-found",
            f"The workflow {workflow!r} is reached through a symbolic link that leaves the "
            "repository. A workflow must be a file of the repository.",
        )
    return real.is_file()


def _starts_with(path: Path, start: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(start)) == start


def _what_exists(tree: Path) -> str:
    top = tree / DIRECTORY
    if not top.resolve().is_relative_to(tree.resolve()):
        return f"{DIRECTORY} is a symbolic link that leaves the repository."
    names: list[str] = []
    for folder, folders, files in os.walk(top):
        folders.sort()
        names += [str(Path(folder, name).relative_to(top)) for name in files]
        if len(names) > MOST_LOOKED_AT:
            break
    if not names:
        return f"{DIRECTORY}/ has none."
    listed = ", ".join(sorted(names)[:MOST_LISTED])
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"There are: {listed}{more}."
