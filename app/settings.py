"""Every setting, in one table, read once into a frozen value.

A setting comes from the environment (``BELLRINGER_`` and its name) or from the active settings file
(its name in small letters), the environment first. Whoever needs one is handed it; nothing else reads
the environment.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any, TypeVar

from app.database_url import normalize_url, without_secrets
from app.errors import SettingsInvalid

PREFIX = "BELLRINGER_"
RUN_ENV_PREFIX = "RUN_ENV_"
SETTINGS_FILE = "settings.toml"

_CREDENTIALS = re.compile(r"://.*@")

T = TypeVar("T")

_GIVEN_TO_RUNS = {
    *("RUN_ID", "AUTOMATION", "TRIGGER", "TRIGGER_TYPE", "DUE_AT"),
    *("ATTEMPT", "REPOSITORY", "REF", "COMMIT", "EVENTS"),
}
"""What a run finds in its environment. The command may be used from a workflow, so they are no error."""


@dataclass(frozen=True, slots=True)
class About:
    """What the table says of a setting besides its name, type and default."""

    doc: str
    read: Callable[[str], Any]
    secret: bool = False
    shown_default: str | None = None


def _setting(
    default: T,
    doc: str,
    read: Callable[[str], Any] = str,
    *,
    secret: bool = False,
    shown: str | None = None,
) -> T:
    about = About(doc, read, secret, shown)
    made: T = dataclass_field(default=default, metadata={"about": about})
    return made


# --- how a value is read from text ------------------------------------------------------------------


def _number(low: float, high: float, unit: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise ValueError(f"expected {unit} from {low:g} to {high:g}")
        return value

    return read


def _integer(low: int, high: int, what: str = "a whole number") -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise ValueError(f"expected {what} from {low} to {high}")
        return int(text)

    return read


def _choice(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return text

    return read


def _text(pattern: str, expected: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {expected}")
        return text

    return read


def _seconds(low: float, high: float) -> Callable[[str], float]:
    return _number(low, high, "seconds")


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise ValueError("expected a path")
    return Path(text)


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    known_host = re.fullmatch(r"\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+", host)
    if not known_host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535:
        raise ValueError("expected host:port")
    return text


def _database_url(text: str) -> str:
    normalize_url(text)
    return text


# --- the table --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """All settings of one process. Durations are in seconds, sizes in bytes."""

    database_url: str = _setting(
        "",
        "SQLAlchemy URL of the database: `sqlite:///file`, `postgresql://…` or `mariadb://…`.",
        _database_url,
        secret=True,
        shown="`sqlite:///<data dir>/bellringer.db`",
    )
    database_pool: int = _setting(
        5, "Connections a process keeps for reads, and as many for writes.", _integer(1, 100)
    )
    database_timeout: float = _setting(
        15.0, "Longest time for one SQL statement.", _seconds(1, 600)
    )
    data_dir: Path = _setting(
        Path("var"), "Where repositories, the trees of runs, and the SQLite file are kept.", _path
    )
    local_repositories: Path = _setting(
        Path(),
        "Where local bare repositories are looked for first, as `owner/repo.git`.",
        _path,
        shown="`<data dir>/local-repositories`",
    )
    bind: str = _setting("127.0.0.1:8080", "Where `bellringer up` serves.", _address)
    web_workers: int = _setting(2, "Web processes that `bellringer up` starts.", _integer(1, 64))
    admin_token: str | None = _setting(
        None,
        "Accepted as a token with the role `admin`; at least 16 characters.",
        _text(r"[!-~]{16,}", "at least 16 visible ASCII characters"),
        secret=True,
    )
    token_cache: float = _setting(
        5.0,
        "How long a process may go on trusting a token that it has looked up; 0 looks it up each time.",
        _seconds(0, 300),
    )
    rate_limit: str | None = _setting(
        None,
        "Requests that one token, or one address without a token, may make: for example `600/minute`.",
        _text(r"[1-9][0-9]*/(second|minute|hour|day)", "a rate such as 600/minute"),
    )
    catch_up: float = _setting(
        300.0,
        "How old a missed occurrence may be to be still fired; 0 never catches up.",
        _seconds(0, 31_536_000),
    )
    worker_concurrency: int = _setting(
        4, "Runs that one worker carries out at a time.", _integer(1, 256)
    )
    worker_group: str = _setting(
        "default",
        "The group of the worker.",
        _text(r"[a-z0-9][a-z0-9_-]{0,62}", "1 to 63 of a-z, 0-9, '_', '-'"),
    )
    lease: float = _setting(
        30.0,
        "How long a worker may be silent before its runs count as lost; renewed three times in that time.",
        _seconds(1, 3600),
    )
    drain: float = _setting(
        60.0, "How long a worker that is told to stop lets its runs go on.", _seconds(0, 86_400)
    )
    run_timeout: float = _setting(3600.0, "Longest time for one run.", _seconds(1, 604_800))
    run_attempts: int = _setting(
        1, "How often a run is tried when its worker is lost.", _integer(1, 100)
    )
    run_user: str | None = _setting(
        None,
        "The user that runs are carried out as, where the worker may change user.",
        _text(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", "a user name"),
    )
    git_url: str = _setting(
        "https://github.com/{repository}.git",
        "Where repositories come from; `{repository}` stands for `owner/repo`.",
        _text(r"[!-z|~]*\{repository\}[!-z|~]*", "a URL with {repository} in it"),
    )
    git_token: str | None = _setting(
        None,
        "Token for private repositories over HTTPS.",
        _text(r"[!-~]+", "visible ASCII characters"),
        secret=True,
    )
    git_ssh_key: Path | None = _setting(
        None, "File of the SSH key for private repositories over SSH.", _path
    )
    git_timeout: float = _setting(300.0, "Longest time for one Git command.", _seconds(1, 86_400))
    git_cache_size: int = _setting(
        10 * 1024**3, "Bytes that cached repositories may take up in all.", _integer(1, 10**15)
    )
    git_cache_age: float = _setting(
        30 * 86_400.0,
        "How long a cached repository that nobody uses is kept.",
        _seconds(60, 10 * 31_536_000),
    )
    metrics_bind: str | None = _setting(
        None, "Where scheduler and worker serve `/healthz`, `/readyz` and `/metrics`.", _address
    )
    log_format: str = _setting(
        "console", "`console` for people, `json` for machines.", _choice("console", "json")
    )
    log_level: str = _setting(
        "info", "The least level that is logged.", _choice("debug", "info", "warning", "error")
    )
    url: str | None = _setting(
        None,
        "Which server the command line speaks to.",
        _text(r"https?://[!-~]+", "an http or https URL"),
        shown="`http://` and the bind address",
    )
    token: str | None = _setting(
        None,
        "The API token that the command line uses.",
        _text(r"[!-~]+", "visible ASCII characters"),
        secret=True,
        shown="what `bellringer up` keeps in the data dir",
    )
    run_env: tuple[tuple[str, str], ...] = ()
    """What BELLRINGER_RUN_ENV_* adds to the environment of runs: names and values, sorted."""
    file: Path | None = None
    """The settings file that was read."""

    def __repr__(self) -> str:
        """Show no secret: a repr ends up in logs and tracebacks."""
        given = ", ".join(f"{name}={text!r}" for name, text in self.shown().items())
        return f"Settings({given})"

    @property
    def automations_dir(self) -> Path:
        """The directory of legacy files: ``automations/`` beside the active settings file."""
        return (self.file.parent if self.file else Path()) / "automations"

    def shown(self) -> dict[str, str | None]:
        """Return each setting as it may be shown to anyone: secrets are only said to be set."""
        return {name: _shown(name, about, getattr(self, name)) for name, about in table().items()}


def table() -> dict[str, About]:
    """Return what there is to say of each setting, by name, in the order of the documentation."""
    return {f.name: f.metadata["about"] for f in fields(Settings) if "about" in f.metadata}


def default_of(name: str) -> object:
    """Return a setting's default."""
    return next(f.default for f in fields(Settings) if f.name == name)


# --- reading ----------------------------------------------------------------------------------------


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


def _shown(name: str, about: About, value: object) -> str | None:
    if value is None or value == "":
        return None
    if name == "database_url":
        return without_secrets(str(value))
    if about.secret:
        return "set (not shown)"
    if isinstance(value, str):
        return _CREDENTIALS.sub("://***@", value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
