"""Applications for the tests of the API."""

import pytest

from app.db import Database
from tests.support.api import Api, DrivenClock, make_api


@pytest.fixture
def clock() -> DrivenClock:
    """A clock that stands still unless told to move."""
    return DrivenClock()


@pytest.fixture
def api(sqlite_database: Database, clock: DrivenClock) -> Api:
    """The application on an empty SQLite database, called by an admin."""
    return make_api(sqlite_database, clock)


@pytest.fixture
def api_everywhere(database: Database, clock: DrivenClock) -> Api:
    """The application on an empty database of each kind in turn."""
    return make_api(database, clock)
