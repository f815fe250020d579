"""Cron expressions: parsed, evaluated and put in words, in UTC. Nothing else reads them.

``parse`` gives an :class:`Expression`, which knows when it is due; the grammar: ``docs/cron.md``.
"""

from datetime import datetime

from app.cron.expression import Expression
from app.cron.parser import canonical, parse
from app.cron.words import describe

__all__ = ["Expression", "canonical", "describe", "next_after", "parse", "previous_before"]


def next_after(expression: Expression, after: datetime) -> datetime | None:
    """Return the first occurrence later than ``after``; see :meth:`Expression.next`."""
    return expression.next(after)


def previous_before(expression: Expression, before: datetime) -> datetime | None:
    """Return the last occurrence earlier than ``before``; see :meth:`Expression.previous`."""
    return expression.previous(before)
