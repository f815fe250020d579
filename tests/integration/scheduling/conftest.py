"""A database with a clock that the test drives."""

from collections.abc import Iterator

import pytest

from app.db import Database, DatabaseLimits
from tests.support.scheduling import DrivenClock, World


@pytest.fixture
def clock() -> DrivenClock:
    return DrivenClock()


@pytest.fixture
def world(database_url: str, clock: DrivenClock) -> Iterator[World]:
    """An empty database at head whose clock is the driven one, on each kind of database."""
    database = Database(database_url, limits=DatabaseLimits(lock=2), clock=clock)
    yield World(database, clock)
    database.close()
