"""The APScheduler trigger of one cron expression."""

from datetime import datetime

from apscheduler.triggers.base import BaseTrigger

from app.cron import Expression


class CronExpressionTrigger(BaseTrigger):  # type: ignore[misc]
    """Tells APScheduler when an expression is due next.

    After a pause it names the latest instant that has passed, not each of those in between: what was
    missed is found out by the claim, from the tables.
    """

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def get_next_fire_time(
        self, previous_fire_time: datetime | None, now: datetime
    ) -> datetime | None:
        """Return the latest occurrence after ``previous_fire_time`` up to ``now``, or else the next."""
        if previous_fire_time is None:
            return self.expression.next(now)
        following = self.expression.next(previous_fire_time)
        if following is None or following > now:
            return following
        latest = self.expression.latest_between(previous_fire_time, now, 1)
        return latest[0] if latest else following
