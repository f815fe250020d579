"""Brings a database to the schema of this release, one process at a time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from app.db.connecting import DatabaseLimits, build_engine
from app.db.database import Database
from app.db.failures import reason_of
from app.errors import DatabaseUnavailable, SchemaOutOfDate

_LOCK_NUMBER = 0x62656C6C
_LOCK_WAIT = 300
"""Seconds that a migration waits for another one to end."""


def scripts() -> Path:
    """Return the directory of the migrations: inside the installed package, or beside the checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "alembic"


def alembic_config(url: str | None = None) -> Config:
    """Return alembic's configuration for ``url``."""
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    if url is not None:
        config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


def head() -> str:
    """Return the schema revision that this release was written for."""
    revision = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert revision is not None
    return revision


def current(database: Database) -> str | None:
    """Return the schema revision of the database, or None before the first migration."""
    return database.read(lambda c: MigrationContext.configure(c).get_current_revision())


def known(revision: str) -> bool:
    """Tell whether this release knows ``revision``; one that it doesn't is of a later release."""
    directory = ScriptDirectory.from_config(alembic_config())
    return any(script.revision == revision for script in directory.walk_revisions())


def require_schema(database: Database) -> None:
    """Raise SchemaOutOfDate unless the database is at the schema of this release or of a later one.

    Raises DatabaseUnavailable.
    """
    revision = current(database)
    if revision is None or (revision != head() and known(revision)):
        raise SchemaOutOfDate(revision, head())


def migrate(database: Database, revision: str = "head") -> None:
    """Upgrade to ``revision``; others who try meanwhile wait and then find nothing to do.

    A database that a later release has migrated is left as it is. Raises DatabaseUnavailable.
    """
    url = make_url(database.url)
    if url.get_backend_name() == "sqlite" and url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    before = current(database)
    if before is not None and not known(before):
        return
    engine = build_engine(database.url, DatabaseLimits(statement=3600), autocommit=False)
    try:
        with exclusively(engine) as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    except SQLAlchemyError as error:
        raise DatabaseUnavailable(reason_of(error)) from error
    finally:
        engine.dispose()


@contextmanager
def exclusively(engine: Engine) -> Iterator[Connection]:
    """Give a connection for migrating while no other process migrates the same database."""
    with engine.connect() as connection:
        match connection.dialect.name:
            case "postgresql":
                with engine.connect() as guard:
                    _take_postgres_lock(guard)
                    yield connection
            case "mariadb":
                with engine.connect() as guard:
                    guard.exec_driver_sql("SET SESSION idle_transaction_timeout = 0")
                    # A lock's name is the server's, not the database's, and has at most 64 characters.
                    name = (
                        f"bellringer-{sha256(str(engine.url.database).encode()).hexdigest()[:40]}"
                    )
                    taken = guard.scalar(
                        text("SELECT GET_LOCK(:name, :wait)"), {"name": name, "wait": _LOCK_WAIT}
                    )
                    if not taken:
                        raise DatabaseUnavailable("another migration has been running for long")
                    yield connection
            case _:
                yield connection


def _take_postgres_lock(guard: Connection) -> None:
    guard.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
    guard.commit()
    deadline = time.monotonic() + _LOCK_WAIT
    while not guard.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK_NUMBER}):
        guard.commit()
        if time.monotonic() > deadline:
            raise DatabaseUnavailable("another migration has been running for long")
        time.sleep(0.2)
    guard.commit()


@contextmanager
def sqlite_foreign_keys_off(connection: Connection) -> Iterator[None]:
    """Keep SQLite from emptying children while a batch rebuilds their parent, then check them.

    The whole of it holds SQLite's write lock, which is what keeps two migrations apart there.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {_LOCK_WAIT * 1000}")
    connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    yield
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    if broken:
        tables = ", ".join(sorted({row[0] for row in broken}))
        connection.rollback()
        raise DatabaseUnavailable(f"rows without their parent in {tables}; mend them first")
    connection.commit()
    connection.exec_driver_sql("PRAGMA foreign_keys = ON")
