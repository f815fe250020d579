"""On which days expressions are due: each rule of the day fields, in a long and a short month."""

from datetime import UTC, datetime, timedelta

import pytest

from app.cron import parse

MINUTE = timedelta(minutes=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days_of(expression: str, start: str, until: str) -> list[int]:
    """Return the days of the month on which it is due, both ends included."""
    found = parse(f"0 0 {expression}").latest_between(utc(start) - MINUTE, utc(until), 1000)
    return [due.day for due in found]


def february_2027(expression: str) -> list[int]:
    """February 2027 has 28 days and begins on a Monday."""
    return days_of(expression, "2027-02-01", "2027-02-28")


def may_2027(expression: str) -> list[int]:
    """May 2027 has 31 days, begins on a Saturday and ends on a Monday."""
    return days_of(expression, "2027-05-01", "2027-05-31")


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("* * *", list(range(1, 32))),
        ("13 * 5", [7, 13, 14, 21, 28]),
        ("13 * *", [13]),
        ("* * 5", [7, 14, 21, 28]),
        ("? * 5", [7, 14, 21, 28]),
        ("13 * ?", [13]),
        ("*/10 * 1", [1, 3, 10, 11, 17, 21, 24, 31]),
        ("?/10 * 1", [1, 3, 10, 11, 17, 21, 24, 31]),
        ("1-31 * 1", list(range(1, 32))),
        ("13 * 0-6", list(range(1, 32))),
        ("13 * */1", list(range(1, 32))),
        ("13 * *,1", list(range(1, 32))),
        ("3 * +1", [3]),
        ("4 * +1", []),
        ("1-7 * +1", [3]),
        ("13 * +*", [13]),
        ("13 * +?", [13]),
        ("* * +1", [3, 10, 17, 24, 31]),
        ("*/2 * +1", [3, 17, 31]),
        ("* * 1#1", [3]),
        ("* * 6#5", [29]),
        ("* * 5#5", []),
        ("* * 5#L", [28]),
        ("* * 5L", [28]),
        ("* * fril", [28]),
        ("* * 7L", [30]),
        ("* * 0L", [30]),
        ("* * SunL", [30]),
        ("* * 1-5#2", [10, 11, 12, 13, 14]),
        ("* * */2#1", [1, 2, 4, 6]),
        ("* * 1-5#L", [25, 26, 27, 28, 31]),
        ("* * 1#l", [31]),
        ("* * 1-3/2#02", [10, 12]),
        ("* * 1#1,1#3", [3, 17]),
        ("* * 5-7", [1, 2, 7, 8, 9, 14, 15, 16, 21, 22, 23, 28, 29, 30]),
        ("* * SAT-SUN", [1, 2, 8, 9, 15, 16, 22, 23, 29, 30]),
        ("* * SUN-MON", [2, 3, 9, 10, 16, 17, 23, 24, 30, 31]),
        ("* * SUN-SUN", list(range(1, 32))),
        ("* * 0-SUN", list(range(1, 32))),
        ("* * 7-SUN", [2, 9, 16, 23, 30]),
        ("* * SUN", [2, 9, 16, 23, 30]),
        ("* * SUN/3", [2, 5, 1, 8, 9, 12, 15, 16, 19, 22, 23, 26, 29, 30]),
        ("* * 5/2", [2, 7, 9, 14, 16, 21, 23, 28, 30]),
        ("* * MON-5/2", [3, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28, 31]),
        ("L * *", [31]),
        ("l,1 * *", [1, 31]),
        ("L * +1", [31]),
        ("1W * *", [3]),
        ("2W * *", [3]),
        ("8W * *", [7]),
        ("9w * *", [10]),
        ("30W * *", [31]),
        ("1W,20 * *", [3, 20]),
        ("LW * *", [31]),
        ("lw * *", [31]),
        ("29/90 * *", [29]),
        ("30/1 * *", [30, 31]),
        ("* 6 *", []),
        ("* MAY-6 +1#1", [3]),
    ],
)
def test_days_in_may(expression, days):
    assert may_2027(expression) == sorted(days)


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("L * *", [28]),
        ("28W * *", [26]),
        ("29W * *", []),
        ("31W * *", []),
        ("LW * *", [26]),
        ("29,30,31 * *", []),
        ("* * 0#4", [28]),
        ("* * 0#5", []),
        ("* * */1#5", []),
        ("* * */1#L", list(range(22, 29))),
    ],
)
def test_days_in_a_short_month(expression, days):
    assert february_2027(expression) == days


def test_hours_and_minutes_step_from_their_start_to_their_maximum():
    due = parse("50/5 20/2 * * *").latest_between(utc("2027-01-01"), utc("2027-01-02"), 99)
    assert [t.strftime("%H:%M") for t in due] == ["20:50", "20:55", "22:50", "22:55"]


@pytest.mark.parametrize("step", ["60", "90", "65535", "00065535"])
def test_a_step_may_exceed_the_field(step):
    due = parse(f"*/{step} 3 * * *").latest_between(utc("2027-01-01"), utc("2027-01-02"), 99)
    assert due == [utc("2027-01-01T03:00")]
