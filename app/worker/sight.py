"""Whether this process has seen the database without a break, which is what entitles it to reap.

After an outage all leases have ended, and every worker deserves the time to renew before anyone takes
its runs. The same goes for a process, or a whole machine, that stood still: to it nothing seems to have
happened.
"""

import threading
from datetime import UTC, datetime

from app.clock import Clock


class Sight:
    """Remembers since when the database has been seen without a break; safe from any thread.

    A break is a failure, or more than half a ``lease`` (seconds) between two sights, or a clock of the
    database's that went so much more or less far meanwhile than ours did.
    """

    def __init__(self, clock: Clock, lease: float) -> None:
        self._clock = clock
        self._lease = lease
        self._gap = lease / 2
        self._lock = threading.Lock()
        self._since: float | None = None
        self._last = 0.0
        self._last_there = datetime.min.replace(tzinfo=UTC)

    def seen(self, there: datetime) -> None:
        """Note that the database answered, and what time it is ``there``."""
        with self._lock:
            here = self._clock.monotonic()
            if self._since is None or self._jumped(here, there):
                self._since = here
            self._last, self._last_there = here, there

    def lost(self) -> None:
        """Note that the database did not answer, or would not write."""
        with self._lock:
            self._since = None

    def steady(self) -> bool:
        """Tell whether the database has been seen for one whole lease, until just now."""
        with self._lock:
            here = self._clock.monotonic()
            return (
                self._since is not None
                and here - self._since >= self._lease
                and here - self._last <= self._gap
            )

    def _jumped(self, here: float, there: datetime) -> bool:
        passed_here = here - self._last
        passed_there = (there - self._last_there).total_seconds()
        return passed_here > self._gap or abs(passed_there - passed_here) > self._gap
