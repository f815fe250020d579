"""A clock that a test drives."""

from datetime import UTC, datetime, timedelta


class DrivenClock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self._now = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
        self._monotonic = 1000.0

    def now(self) -> datetime:
        """Return the current instant."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds since an arbitrary point."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
