"""Waiting for a condition, with a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], limit: float = 15.0) -> T:
    """Return the first true value of ``condition``; fail after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while True:
        if value := condition():
            return value
        assert time.monotonic() < deadline, f"not within {limit} seconds"
        time.sleep(0.01)
