"""Decides, without a database, what of an expression is fired and what has been missed.

A claim looks back as far as the newest recorded occurrence. On a node that was awake there is nothing
in between; after a pause, an outage, or with every scheduler down, that is where the gap shows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.clock import format_instant
from app.cron import Expression
from app.scheduling.values import MISSED_KEPT, ON_TIME, Due, Gap

_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about one expression: fire ``due`` unless it is None, and record ``gap``."""

    due: Due | None
    gap: Gap | None = None


def baseline(due: Due, newest: datetime | None) -> datetime | None:
    """Return the instant up to which nothing can have been missed, if anything tells."""
    return max((i for i in (newest, due.since) if i is not None), default=None)


def fires_straight(
    due: Due, newest: datetime | None, expression: Expression, now: datetime
) -> bool:
    """Tell whether ``due`` is on time and follows directly on what is known, as it nearly always does."""
    known = baseline(due, newest)
    return (
        known is not None and expression.next(known) == due.due_at and now - due.due_at <= ON_TIME
    )


def plan(
    due: Due,
    newest: datetime | None,
    armed: datetime | None,
    expression: Expression,
    now: datetime,
    catch_up: timedelta,
) -> Plan:
    """Return what to do about ``due``, which is later than the ``newest`` recorded occurrence.

    ``armed`` is the earliest instant from which one of the triggers counts, None if there is none.
    """
    if fires_straight(due, newest, expression, now):
        return Plan(due)
    if armed is None or armed > due.due_at:
        return Plan(None)
    fires = due if now - due.due_at <= max(catch_up, ON_TIME) else None
    known, before_armed = baseline(due, newest), armed - _INSTANT
    after = before_armed if known is None else max(known, before_armed)
    last = expression.previous(due.due_at) if fires else due.due_at
    first = expression.next(after)
    if last is None or first is None or first > last:
        return Plan(fires)
    count = expression.count_between(after, last)
    kept = expression.latest_between(after, last, MISSED_KEPT)
    return Plan(fires, Gap(due.expression, first, last, count, tuple(kept)))


def in_words(gap: Gap) -> str:
    """Return what those triggers missed that counted before the gap began."""
    return _words(gap.count, gap.first, gap.last)


def in_words_since(
    gap: Gap, expression: Expression, arms: Iterable[datetime]
) -> dict[datetime, str]:
    """Return what those triggers missed that were armed at ``arms``, which lie in the gap."""
    words = {}
    count, counted_after = 0, gap.last
    for armed in sorted(set(arms), reverse=True):
        before = armed - _INSTANT
        count += expression.count_between(before, counted_after)
        counted_after = before
        words[armed] = _words(count, expression.next(before) or gap.last, gap.last)
    return words


def _words(count: int, first: datetime, last: datetime) -> str:
    if count == 1:
        return f"1 occurrence was missed, at {format_instant(last)}."
    return f"{count:,} occurrences were missed, from {format_instant(first)} to {format_instant(last)}."
