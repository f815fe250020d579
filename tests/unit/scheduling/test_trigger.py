"""When APScheduler is told that an expression is due."""

from datetime import UTC, datetime, timedelta

from app import cron
from app.scheduling.trigger import CronExpressionTrigger

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_the_next_instant_follows_the_one_before() -> None:
    trigger = CronExpressionTrigger(cron.parse("*/5 * * * *"))
    assert trigger.get_next_fire_time(None, NOON) == NOON + 5 * MINUTE
    assert trigger.get_next_fire_time(NOON, NOON) == NOON + 5 * MINUTE


def test_an_instant_that_is_due_now_is_not_passed_over() -> None:
    trigger = CronExpressionTrigger(cron.parse("* * * * *"))
    assert trigger.get_next_fire_time(NOON - MINUTE, NOON) == NOON


def test_a_long_pause_is_passed_in_one_step() -> None:
    trigger = CronExpressionTrigger(cron.parse("* * * * *"))
    after_years = NOON + timedelta(days=4000, seconds=30)
    assert trigger.get_next_fire_time(NOON, after_years) == after_years - timedelta(seconds=30)
    assert trigger.get_next_fire_time(after_years - timedelta(seconds=30), after_years) == (
        after_years + timedelta(seconds=30)
    )


def test_an_expression_that_never_fires_has_no_next_instant() -> None:
    assert CronExpressionTrigger(cron.parse("0 0 31 2 *")).get_next_fire_time(None, NOON) is None


def test_after_the_clock_steps_back_the_next_instant_is_not_one_that_was() -> None:
    trigger = CronExpressionTrigger(cron.parse("* * * * *"))
    assert trigger.get_next_fire_time(NOON, NOON - timedelta(hours=1)) == NOON + MINUTE
