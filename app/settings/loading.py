"""Reads the settings from the environment and from the active settings file, the environment first."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.errors import SettingsInvalid
from app.settings.table import Settings, default_of, table

PREFIX = "BELLRINGER_"
RUN_ENV_PREFIX = "RUN_ENV_"
SETTINGS_FILE = "settings.toml"

_GIVEN_TO_RUNS = {
    *("RUN_ID", "AUTOMATION", "TRIGGER", "TRIGGER_TYPE", "DUE_AT"),
    *("ATTEMPT", "REPOSITORY", "REF", "COMMIT", "EVENTS"),
}
"""What a run finds in its environment. The command may be used from a workflow, so they are no error."""


def load(environ: Mapping[str, str], directory: Path | None = None) -> Settings:
    """Read the settings from ``environ`` and from the settings file.

    The file is the one that BELLRINGER_SETTINGS names, else ``settings.toml`` in ``directory`` (the
    current one) if there is one. Raises SettingsInvalid naming everything that is unknown or malformed.
    """
    problems: list[str] = []
    file = _settings_file(environ, directory or Path(), problems)
    given: dict[str, tuple[str, str]] = {}
    run_env: dict[str, str] = {}
    if file is not None:
        _read_file(file, given, run_env, problems)
    _read_environment(environ, given, run_env, problems)
    values: dict[str, Any] = {}
    about = table()
    for name, (text, origin) in given.items():
        try:
            values[name] = about[name].read(text)
        except ValueError as error:
            problems.append(f"{origin}: {error}")
    if "database_url" not in values:
        data_dir = values.get("data_dir", default_of("data_dir"))
        values["database_url"] = f"sqlite:///{data_dir / 'bellringer.db'}"
    if "local_repositories" not in values:
        data_dir = values.get("data_dir", default_of("data_dir"))
        values["local_repositories"] = data_dir / "local-repositories"
    if problems:
        raise SettingsInvalid(problems)
    return Settings(**values, run_env=tuple(sorted(run_env.items())), file=file)


def _settings_file(environ: Mapping[str, str], directory: Path, problems: list[str]) -> Path | None:
    named = environ.get(f"{PREFIX}SETTINGS")
    if named:
        file = Path(named)
        if not file.is_file():
            problems.append(f"{PREFIX}SETTINGS: there is no file {named}")
            return None
        return file
    file = directory / SETTINGS_FILE
    return file if file.is_file() else None


def _read_file(
    file: Path, given: dict[str, tuple[str, str]], run_env: dict[str, str], problems: list[str]
) -> None:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{file}: cannot be read ({type(error).__name__})")
        return
    except (ValueError, RecursionError) as error:
        problems.append(f"{file}: {error}")
        return
    known = table()
    for key, value in document.items():
        if key == "run_env":
            if not isinstance(value, dict):
                problems.append(f"{file}: run_env: expected a table of names and strings")
                continue
            for name, text in value.items():
                _add_run_env(f"{file}: run_env.{name}", name, text, run_env, problems)
        elif key not in known:
            problems.append(f"{file}: there is no setting {key!r}{_near(key, known)}")
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            problems.append(f"{file}: {key}: expected a string or a number")
        else:
            given[key] = (str(value), f"{file}: {key}")


def _read_environment(
    environ: Mapping[str, str],
    given: dict[str, tuple[str, str]],
    run_env: dict[str, str],
    problems: list[str],
) -> None:
    known = table()
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX)
        if name == "SETTINGS" or name in _GIVEN_TO_RUNS:
            continue
        if name.startswith(RUN_ENV_PREFIX):
            added = name.removeprefix(RUN_ENV_PREFIX)
            _add_run_env(variable, added, environ[variable], run_env, problems)
        elif name.lower() not in known or not name.isupper():
            problems.append(f"there is no setting {variable}{_near(name.lower(), known, PREFIX)}")
        elif environ[variable]:
            given[name.lower()] = (environ[variable], variable)


def _add_run_env(
    origin: str, name: str, value: object, run_env: dict[str, str], problems: list[str]
) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name.startswith(PREFIX):
        problems.append(f"{origin}: {name!r} is no name for an environment variable of runs")
    elif not isinstance(value, str) or "\0" in value:
        problems.append(f"{origin}: expected a string")
    else:
        run_env[name] = value


def _near(name: str, known: Mapping[str, object], prefix: str = "") -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if not close:
        return ""
    return f"; did you mean {prefix + close[0].upper() if prefix else close[0]}?"
