"""Asking a run to stop, from whichever thread learns that it must."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

StopReason = Literal["canceled", "shutdown", "lost"]


class Stopped(Exception):
    """The work at hand was given up because a stop was requested."""


class Stop:
    """A request to stop that can be made once, seen by many, and wakes whoever waits.

    The first reason stands, except that ``lost`` replaces any other: a run that belongs to somebody
    else must not be written about, whatever else was asked.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: StopReason | None = None
        self._sleepers: list[threading.Event] = []

    @property
    def reason(self) -> StopReason | None:
        """Why the run must stop, or None while it may go on."""
        return self._reason

    def request(self, reason: StopReason) -> None:
        """Ask for a stop; returns at once."""
        with self._lock:
            if self._reason is None or reason == "lost":
                self._reason = reason
            sleepers = tuple(self._sleepers)
        for sleeper in sleepers:
            sleeper.set()

    @contextmanager
    def waking(self, sleeper: threading.Event) -> Iterator[None]:
        """Set ``sleeper`` on every request made inside the block, and at once if one was made."""
        with self._lock:
            self._sleepers.append(sleeper)
            if self._reason is not None:
                sleeper.set()
        try:
            yield
        finally:
            with self._lock:
                self._sleepers.remove(sleeper)
