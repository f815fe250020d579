"""Waiting for a condition, with a limit; and finding processes by what they were called with."""

import os
import time
from collections.abc import Callable
from pathlib import Path
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


def processes_with(word: str) -> set[int]:
    """Return the ids of living processes that have ``word`` as an argument, or as part of one."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found - {os.getpid()}
