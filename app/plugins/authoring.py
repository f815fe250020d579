"""What starts a plugin and a trigger: files that work as they are, and overwrite nothing."""

from collections.abc import Mapping
from pathlib import Path
from string import Template

from app.errors import InvalidInput, Violation, WouldOverwrite
from app.plugins import templates
from app.plugins.projects import Project, find_project
from bellringer import checking


def new_plugin(name: str, directory: Path | None = None) -> list[Path]:
    """Write a plugin and return its files; into ``acme-shop/`` unless another folder is given.

    Raises InvalidInput for a name that breaks the rules, and WouldOverwrite.
    """
    _refuse("name", f"The plugin's name {name!r}", checking.plugin_fault(name))
    distribution = name.replace("/", "-")
    package = distribution.replace("-", "_")
    root = directory if directory is not None else Path(distribution)
    filled = {"plugin": name, "distribution": distribution, "package": package}
    return _write(
        {
            root / "pyproject.toml": templates.PYPROJECT,
            root / "README.md": templates.README,
            root / package / "__init__.py": templates.PACKAGE,
            root / "tests" / "conftest.py": templates.CONFTEST,
        },
        filled,
    )


def new_trigger(path: str, directory: Path) -> list[Path]:
    """Write a trigger, its test and its icon into the plugin in ``directory``; return the files.

    ``path`` is where the trigger lies under ``triggers/``, as in ``orders/new``. Raises InvalidInput,
    PluginInvalid (no plugin there) and WouldOverwrite.
    """
    _refuse("path", f"The trigger's path {path!r}", checking.path_fault(path))
    project = find_project(directory)
    name = f"{project.plugin}/{path}"
    _refuse("path", f"The trigger's name {name!r}", checking.name_fault(name))
    folder, _, last = path.rpartition("/")
    icon = f"icons/{path}.svg"
    return _write(
        {
            _trigger_file(project, path): templates.TRIGGER,
            project.root / "tests" / "triggers" / folder / f"test_{last}.py": templates.TEST,
            project.directory / icon: templates.ICON,
        },
        {
            "name": name,
            "label": _label(path),
            "icon": icon,
            "module": project.module(_trigger_file(project, path)),
        },
    )


def _trigger_file(project: Project, path: str) -> Path:
    return project.directory / "triggers" / f"{path}.py"


def _label(path: str) -> str:
    words = " ".join(path.replace("/", " ").replace("-", " ").replace("_", " ").split())
    return (words[:1].upper() + words[1:])[: checking.LABEL_LIMIT]


def _refuse(field: str, subject: str, fault: str | None) -> None:
    if fault is not None:
        raise InvalidInput(
            [Violation(f"/{field}", "invalid", f"{subject} does not fit: it {fault}")]
        )


def _write(files: Mapping[Path, str], filled: Mapping[str, str]) -> list[Path]:
    there = [str(path) for path in files if path.exists() or path.is_symlink()]
    if there:
        raise WouldOverwrite(there)
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(Template(template).substitute(filled))
    return list(files)
