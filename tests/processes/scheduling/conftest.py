"""Real scheduler processes on a clock that runs fast."""

import time
from collections.abc import Iterator

import pytest

from app.db import Database
from tests.support.scheduler_node import FastClock
from tests.support.scheduler_nodes import SPEED, START, Nodes
from tests.support.scheduling import World


@pytest.fixture
def nodes(database_url: str) -> Iterator[Nodes]:
    """No scheduler yet, on an empty database of each kind."""
    clock = FastClock(time.time(), START, SPEED)
    database = Database(database_url, clock=clock)
    started = Nodes(database_url, World(database, clock), clock)
    yield started
    started.end()
    database.close()
