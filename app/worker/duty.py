"""A duty: something that a worker does again and again, on a thread that nothing can end but the worker."""

import threading
from collections.abc import Callable

import structlog

from app.errors import DatabaseUnavailable

log = structlog.get_logger()

AFTER_AN_ERROR = 1.0
"""Seconds until a duty that failed is tried again, if its turn would not come sooner."""


class Duty(threading.Thread):
    """Calls ``work`` every ``every`` seconds until :meth:`end`.

    A database that is away is said once when it goes and once when it is back; any other error is
    logged. ``on_failure`` is told each time, in one line, and the duty goes on.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        every: float,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self._every = every
        self._on_failure = on_failure
        self._away = False
        self._awake = threading.Event()
        self._ended = threading.Event()

    def run(self) -> None:
        """Do the duty until told to end."""
        while not self._ended.is_set():
            self._awake.wait(self._turn())
            self._awake.clear()

    def wake(self) -> None:
        """Let the next turn come at once."""
        self._awake.set()

    def end(self) -> None:
        """Let this turn be the last; :meth:`join` waits for it."""
        self._ended.set()
        self._awake.set()

    def _turn(self) -> float:
        try:
            self._work()
        except DatabaseUnavailable as error:
            self._on_failure(error.reason)
            if not self._away:
                log.warning("database-away", duty=self.name, reason=error.reason)
            self._away = True
            return max(min(self._every, AFTER_AN_ERROR), 0.5)
        except Exception as error:
            self._on_failure(f"the duty {self.name!r} failed ({type(error).__name__})")
            log.exception("duty-failed", duty=self.name)
            return max(self._every, AFTER_AN_ERROR)
        if self._away:
            self._away = False
            log.info("database-back", duty=self.name)
        return self._every
