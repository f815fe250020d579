"""Real databases for tests: made by ``upgrade head``, one per session and server, emptied per test."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from app.db import Database
from app.db.connecting import normalize_url
from app.db.migrating import migrate
from app.models import metadata

DIALECTS = ("sqlite", "postgresql", "mariadb")

SERVERS = {
    "postgresql": os.environ.get("TEST_POSTGRESQL_URL", "postgresql://root@127.0.0.1/postgres"),
    "mariadb": os.environ.get("TEST_MARIADB_URL", "mariadb://root@127.0.0.1/test"),
}


@contextmanager
def fresh_database(dialect: str, directory: Path) -> Iterator[str]:
    """Give the URL of a new, empty database, and drop it afterwards.

    Skips the test where no server answers, saying which; with CI=true that is a failure.
    """
    if dialect == "sqlite":
        yield f"sqlite:///{directory / f'{secrets.token_hex(4)}.db'}"
        return
    server = make_url(normalize_url(SERVERS[dialect]))
    admin = create_engine(server, isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 3})
    name = f"bellringer_test_{os.getpid()}_{secrets.token_hex(4)}"
    try:
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
    except SQLAlchemyError as error:
        reason = f"no {dialect} server answers at {server.render_as_string()}"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}, and CI requires it: {error}")
        pytest.skip(reason)
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        force = " WITH (FORCE)" if dialect == "postgresql" else ""
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name}{force}"))
        admin.dispose()


@contextmanager
def migrated_database(dialect: str, directory: Path) -> Iterator[str]:
    """Give the URL of a new database at head."""
    with fresh_database(dialect, directory) as url:
        database = Database(url)
        migrate(database)
        database.close()
        yield url


def empty(database: Database) -> None:
    """Delete all rows, children first."""

    def work(connection: object) -> None:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())  # type: ignore[attr-defined]

    database.write(work)


def copy_of(template: str, directory: Path) -> str:
    """Return the URL of a copy of the SQLite database ``template``, which nobody has open."""
    source = Path(str(make_url(template).database))
    target = directory / "bellringer.db"
    shutil.copy(source, target)
    return f"sqlite:///{target}"
