"""Drafts and documents to write in one line."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from app.automations.values import Draft, ScheduleTrigger, Target

TARGET = Target("acme/shop", "main", "release")


def draft(
    name: str = "Nightly",
    schedules: Mapping[str, str] | None = None,
    *,
    api: bool = False,
    disabled: Mapping[str, str] | None = None,
    description: str | None = None,
    target: Target = TARGET,
) -> Draft:
    """Return a draft with ``schedules`` and ``disabled`` ones, given as ids and expressions."""
    return Draft(
        name,
        description,
        target,
        api,
        (
            *(ScheduleTrigger(i, True, e) for i, e in (schedules or {}).items()),
            *(ScheduleTrigger(i, False, e) for i, e in (disabled or {}).items()),
        ),
    )


class SteppedClock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.instant = datetime(2026, 1, 1, 12, 0, 0, 123456, UTC)

    def now(self) -> datetime:
        """Return the instant at which it stands."""
        return self.instant

    def monotonic(self) -> float:
        """Return the same in seconds."""
        return self.instant.timestamp()

    def step(self, **duration: float) -> datetime:
        """Go on, and return where it stands now."""
        self.instant += timedelta(**duration)
        return self.instant
