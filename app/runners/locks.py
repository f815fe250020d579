"""Locks on files that hold between threads and between processes, and end with their holder.

A descriptor that is handed on to a child keeps the lock until that child has ended too: that is how
what a dead worker left behind stays locked until the last process of it is gone.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.clock import Clock
from app.runners.stopping import Stop, Stopped

POLL_SECONDS = 0.05


class Busy(Exception):
    """The lock was not free within the limit."""


@contextmanager
def held(
    path: Path,
    *,
    clock: Clock,
    limit: float = 0.0,
    shared: bool = False,
    stop: Stop | None = None,
) -> Iterator[int]:
    """Hold the lock on ``path`` and yield its descriptor.

    Waits at most ``limit`` seconds (0 tries once), then raises :exc:`Busy`; a request on ``stop``
    ends the wait with :exc:`Stopped`.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, clock, limit, stop)
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, kind: int, clock: Clock, limit: float, stop: Stop | None) -> None:
    deadline = clock.monotonic() + limit
    pause = threading.Event()
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        if stop is not None and stop.reason is not None:
            raise Stopped
        if clock.monotonic() >= deadline:
            raise Busy
        pause.wait(POLL_SECONDS)
