"""Fixtures for every kind of test."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.db import Database
from tests.support.databases import DIALECTS, copy_of, empty, migrated_database


@pytest.fixture(scope="session")
def database_templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The migrated databases of this session by dialect, each made when first asked for."""
    with ExitStack() as stack:

        class Templates(dict[str, str]):
            def __missing__(self, dialect: str) -> str:
                directory = tmp_path_factory.mktemp("databases")
                self[dialect] = stack.enter_context(migrated_database(dialect, directory))
                return self[dialect]

        yield Templates()


@pytest.fixture(params=DIALECTS)
def database_url(
    request: pytest.FixtureRequest, database_templates: dict[str, str], tmp_path: Path
) -> Iterator[str]:
    """The URL of an empty database at head, on each kind of database in turn."""
    template = database_templates[request.param]
    if request.param == "sqlite":
        yield copy_of(template, tmp_path)
        return
    database = Database(template)
    empty(database)
    database.close()
    yield template


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An empty database at head, on each kind of database in turn."""
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def sqlite_url(database_templates: dict[str, str], tmp_path: Path) -> str:
    """The URL of an empty SQLite database at head, for what does not depend on the database."""
    return copy_of(database_templates["sqlite"], tmp_path)


@pytest.fixture
def sqlite_database(sqlite_url: str) -> Iterator[Database]:
    """An empty SQLite database at head."""
    database = Database(sqlite_url)
    yield database
    database.close()
