"""Counts the requests of each client, so that one can't use up what all share.

In memory and without a thread: each server process counts what it answers itself, so that a server of
two processes lets through up to twice the rate.
"""

import math
import threading
from dataclasses import dataclass

from app.clock import Clock

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_CLIENTS_AT_MOST = 10_000


@dataclass(slots=True)
class _Window:
    """What a client has made of the window that began at ``began``, by the monotonic clock."""

    began: float
    count: int = 0


class RateLimiter:
    """Allows each client ``rate``, such as ``600/minute``, in windows of that length."""

    def __init__(self, rate: str, clock: Clock) -> None:
        count, _, unit = rate.partition("/")
        self.allowed = int(count)
        self.seconds = _SECONDS[unit]
        self._clock = clock
        self._windows: dict[str, _Window] = {}
        self._lock = threading.Lock()

    def wait(self, client: str) -> int | None:
        """Count a request; return None if it is allowed, else the seconds until the next one is."""
        now = self._clock.monotonic()
        with self._lock:
            window = self._windows.get(client)
            if window is None or now >= window.began + self.seconds:
                if len(self._windows) >= _CLIENTS_AT_MOST:
                    self._forget_past(now)
                window = self._windows[client] = _Window(now)
            window.count += 1
            if window.count <= self.allowed:
                return None
            return max(1, math.ceil(window.began + self.seconds - now))

    def _forget_past(self, now: float) -> None:
        current = {c: w for c, w in self._windows.items() if now < w.began + self.seconds}
        # Whoever sends from very many addresses must not fill the memory.
        self._windows = current if len(current) < _CLIENTS_AT_MOST else {}
