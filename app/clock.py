"""The one place where the time is read.

Collaborators take a :class:`Clock` as a plain argument, so that a test hands in one it can drive and
nothing needs patching. Instants are aware datetimes in UTC with microseconds.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the wall-clock time and measures time that only moves forward."""

    def now(self) -> datetime:
        """Return the current instant, aware and in UTC."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary point; it never goes back."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the current instant, aware and in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since an arbitrary point; it never goes back."""
        return time.monotonic()


def format_instant(instant: datetime) -> str:
    """Return ``instant`` in RFC 3339 form, in UTC, with microseconds only where there are any."""
    text = instant.astimezone(UTC).replace(tzinfo=None).isoformat()
    return text + "Z"
