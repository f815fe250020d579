"""A plugin under development: the folder with its ``pyproject.toml``, and where things lie in it."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import PluginInvalid
from app.plugins.manifest import VERSION_LIMIT
from bellringer import checking

ENTRY_POINTS = "bellringer.plugins"
"""The group in which a distribution names its plugin: the plugin's name → its package."""

_PACKAGE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_SOURCES = (".", "src")


@dataclass(frozen=True, slots=True)
class Project:
    """A plugin's folder. ``source`` is what goes on the path, ``directory`` the package in it."""

    root: Path
    plugin: str
    version: str
    package: str
    source: Path

    @property
    def directory(self) -> Path:
        """The package's folder."""
        return self.source.joinpath(*self.package.split("."))

    def files(self, folder: str) -> Iterator[Path]:
        """Yield the author's files of ``triggers`` or ``integrations``, in order.

        Files and folders whose names start with ``_`` are for shared code.
        """
        top = self.directory / folder
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(top).parts
            if not any(part.startswith("_") for part in parts):
                yield path

    def module(self, path: Path) -> str:
        """Return the name under which a file of the package is imported."""
        return ".".join(path.relative_to(self.source).with_suffix("").parts)

    def shown(self, path: Path) -> str:
        """Return a path as the author knows it."""
        return path.relative_to(self.root).as_posix()


def find_project(start: Path) -> Project:
    """Return the project that ``start`` is, or lies in. Raises PluginInvalid."""
    start = start.resolve()
    for root in (start, *start.parents):
        if (root / "pyproject.toml").is_file():
            return _read(root)
    raise PluginInvalid(
        str(start),
        ["There is no pyproject.toml, here or above. 'bellringer plugin new' makes a plugin."],
    )


def _read(root: Path) -> Project:
    file = root / "pyproject.toml"
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PluginInvalid(str(file), [f"It is no TOML: {error}."]) from None
    project = _table(document, "project")
    plugins = _table(_table(project, "entry-points"), ENTRY_POINTS)
    if len(plugins) != 1:
        rule = (
            f'[project.entry-points."{ENTRY_POINTS}"] names one plugin: "acme/shop" = "acme_shop".'
        )
        raise PluginInvalid(str(file), [rule])
    [(plugin, package)] = plugins.items()
    problems = []
    if rule_broken := checking.plugin_fault(plugin):
        problems.append(f"The plugin's name {rule_broken}")
    version = project.get("version")
    if not isinstance(version, str) or checking.line_fault(version, VERSION_LIMIT):
        problems.append("project.version is there, as a string: the manifest holds it.")
    if not isinstance(package, str) or not _PACKAGE.fullmatch(package):
        problems.append(f"The entry point {plugin!r} is the name of a package, as in acme_shop.")
        raise PluginInvalid(str(file), problems)
    sources = [root / source for source in _SOURCES]
    found = [s for s in sources if s.joinpath(*package.split(".")).is_dir()]
    if not found:
        problems.append(f"The package {package} is missing: it is looked for here and in src/.")
    if problems:
        raise PluginInvalid(str(file), problems)
    return Project(root, plugin, str(version), package, found[0].resolve())


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}
