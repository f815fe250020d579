"""Every setting, in one table: its name, type, default, meaning, and how its text is read."""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any, TypeVar

from app.database_url import without_secrets
from app.settings import values

_CREDENTIALS = re.compile(r"://.*@")

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """All settings of one process. Durations are in seconds, sizes in bytes."""

    database_url: str = _setting(
        "",
        "SQLAlchemy URL of the database: `sqlite:///file`, `postgresql://…` or `mariadb://…`.",
        values.database_url,
        secret=True,
        shown="`sqlite:///<data dir>/bellringer.db`",
    )
    database_pool: int = _setting(
        5, "Connections a process keeps for reads, and as many for writes.", values.integer(1, 100)
    )
    database_timeout: float = _setting(
        15.0, "Longest time for one SQL statement.", values.seconds(1, 600)
    )
    data_dir: Path = _setting(
        Path("var"),
        "Where repositories, the trees of runs, and the SQLite file are kept.",
        values.path,
    )
    local_repositories: Path = _setting(
        Path(),
        "Where local bare repositories are looked for first, as `owner/repo.git`.",
        values.path,
        shown="`<data dir>/local-repositories`",
    )
    bind: str = _setting("127.0.0.1:8080", "Where `bellringer up` serves.", values.address)
    web_workers: int = _setting(
        2, "Web processes that `bellringer up` starts.", values.integer(1, 64)
    )
    admin_token: str | None = _setting(
        None,
        "Accepted as a token with the role `admin`; at least 16 characters.",
        values.matching(r"[!-~]{16,}", "at least 16 visible ASCII characters"),
        secret=True,
    )
    token_cache: float = _setting(
        5.0,
        "How long a process may go on trusting a token that it has looked up; 0 looks it up each time.",
        values.seconds(0, 300),
    )
    rate_limit: str | None = _setting(
        None,
        "Requests that one token, or one address without a token, may make: for example `600/minute`.",
        values.matching(r"[1-9][0-9]*/(second|minute|hour|day)", "a rate such as 600/minute"),
    )
    catch_up: float = _setting(
        300.0,
        "How old a missed occurrence may be to be still fired; 0 never catches up.",
        values.seconds(0, 31_536_000),
    )
    worker_concurrency: int = _setting(
        4, "Runs that one worker carries out at a time.", values.integer(1, 256)
    )
    worker_group: str = _setting(
        "default",
        "The group of the worker.",
        values.matching(r"[a-z0-9][a-z0-9_-]{0,62}", "1 to 63 of a-z, 0-9, '_', '-'"),
    )
    lease: float = _setting(
        30.0,
        "How long a worker may be silent before its runs count as lost; renewed three times in that time.",
        values.seconds(1, 3600),
    )
    drain: float = _setting(
        60.0,
        "How long a worker that is told to stop lets its runs go on.",
        values.seconds(0, 86_400),
    )
    run_timeout: float = _setting(3600.0, "Longest time for one run.", values.seconds(1, 604_800))
    run_attempts: int = _setting(
        1, "How often a run is tried when its worker is lost.", values.integer(1, 100)
    )
    run_user: str | None = _setting(
        None,
        "The user that runs are carried out as, where the worker may change user.",
        values.matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", "a user name"),
    )
    git_url: str = _setting(
        "https://github.com/{repository}.git",
        "Where repositories come from; `{repository}` stands for `owner/repo`.",
        values.matching(r"[!-z|~]*\{repository\}[!-z|~]*", "a URL with {repository} in it"),
    )
    git_token: str | None = _setting(
        None,
        "Token for private repositories over HTTPS.",
        values.matching(r"[!-~]+", "visible ASCII characters"),
        secret=True,
    )
    git_ssh_key: Path | None = _setting(
        None, "File of the SSH key for private repositories over SSH.", values.path
    )
    git_timeout: float = _setting(
        300.0, "Longest time for one Git command.", values.seconds(1, 86_400)
    )
    git_cache_size: int = _setting(
        10 * 1024**3,
        "Bytes that cached repositories may take up in all.",
        values.integer(1, 10**15),
    )
    git_cache_age: float = _setting(
        30 * 86_400.0,
        "How long a cached repository that nobody uses is kept.",
        values.seconds(60, 10 * 31_536_000),
    )
    metrics_bind: str | None = _setting(
        None,
        "Where scheduler and worker serve `/healthz`, `/readyz` and `/metrics`; under `up` the worker "
        "takes the next port.",
        values.address,
    )
    log_format: str = _setting(
        "console", "`console` for people, `json` for machines.", values.choice("console", "json")
    )
    log_level: str = _setting(
        "info",
        "The least level that is logged.",
        values.choice("debug", "info", "warning", "error"),
    )
    url: str | None = _setting(
        None,
        "Which server the command line speaks to.",
        values.matching(r"https?://[!-~]+", "an http or https URL"),
        shown="`http://` and the bind address",
    )
    token: str | None = _setting(
        None,
        "The API token that the command line uses.",
        values.matching(r"[!-~]+", "visible ASCII characters"),
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
