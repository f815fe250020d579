"""Counts over years, what is rarely or never due, the ends of the calendar, and the work of it."""

from datetime import MAXYEAR, UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cron import expression as evaluator
from app.cron import parse
from tests.support.cron_oracle import Oracle, expressions, instants

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
NEVER = [
    "0 0 31 2 *",
    "0 0 30,31 2 *",
    "0 0 31W 2 *",
    "0 0 31W 4,6,9,11 *",
    "0 0 15 * +1#1",
    "0 0 1-7 * +MON#2",
    "0 0 29-31 2 +MON#1",
    "0 0 29 2 +1#4",
    "0 0 30 2 +*",
]
RARE = ["0 0 29 2 *", "0 0 29 2 +MON", "0 0 29 2 +MON#5", "0 0 29W 2 +1", "0 0 31 12 +0L"]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", NEVER)
def test_what_never_fires_parses_and_has_no_next(text):
    expression = parse(text)
    assert not expression.ever_fires
    assert expression.next(utc("2026-12-01")) is None
    assert expression.previous(utc("2026-12-01")) is None
    assert expression.count_between(utc("1000-01-01"), utc("3000-01-01")) == 0
    assert expression.latest_between(utc("1000-01-01"), utc("3000-01-01"), 100) == []


@pytest.mark.parametrize("text", RARE)
def test_what_fires_rarely_is_found_from_any_year(text):
    oracle, expression = Oracle(text), parse(text)
    for year in range(1896, 2304, 7):
        due = expression.next(datetime(year, 3, 1, tzinfo=UTC))
        assert due is not None
        assert oracle.is_due(due)


def test_the_search_crosses_centuries_that_are_no_leap_years():
    assert parse("0 0 29 2 *").next(utc("2096-03-01")) == utc("2104-02-29")
    assert parse("0 0 29 2 +0").next(utc("2088-03-01")) == utc("2128-02-29")


@pytest.mark.parametrize("text", ["* * * * *", "0 0 1 1 *", "0 0 29 2 *", *NEVER])
def test_the_end_of_time_is_none_and_no_error(text):
    expression = parse(text)
    end = datetime.max.replace(tzinfo=UTC)
    assert expression.next(end) is None
    assert expression.next(end.astimezone(timezone(timedelta(hours=-5)))) is None
    assert expression.next(datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))) is None
    assert expression.previous(datetime.min.replace(tzinfo=UTC)) is None
    assert expression.previous(datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))) is None


def test_the_last_and_first_minutes_of_the_calendar_are_found():
    every_minute, end = parse("* * * * *"), datetime(MAXYEAR, 12, 31, 23, 59, tzinfo=UTC)
    start = datetime.min.replace(tzinfo=UTC)
    assert every_minute.next(end - SECOND) == end
    assert every_minute.previous(end + SECOND) == end
    assert every_minute.previous(start + SECOND) == start


class Counting(bytes):
    """A table that counts how often it is asked."""

    asked = 0

    def __getitem__(self, key):
        Counting.asked += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("text", [*NEVER, *RARE, "* * * * *", "0 0 1 1 *"])
def test_work_is_bounded_by_the_400_years(text, monkeypatch):
    monkeypatch.setattr(evaluator, "KIND_OF_YEAR", Counting(evaluator.KIND_OF_YEAR))
    expression, moment = parse(text), utc("2026-12-01")

    def years_visited(work):
        Counting.asked = 0
        work()
        return Counting.asked

    assert 1 <= years_visited(lambda: expression.next(moment)) <= 401
    assert 1 <= years_visited(lambda: expression.previous(moment)) <= 401
    # A minute of a hundred years ago costs no more than a look at each year since.
    count = years_visited(lambda: expression.count_between(utc("1926-01-01"), moment))
    assert 1 <= count <= 102
    latest = years_visited(lambda: expression.latest_between(utc("1926-01-01"), moment, 100))
    assert 1 <= latest <= 401 + 100


# --- counting -------------------------------------------------------------------------------------


@given(expressions(), instants(), st.timedeltas(timedelta(days=-2), timedelta(days=70)))
def test_count_and_latest_are_what_a_walk_finds(text, after, length):
    expression, oracle, until = parse(text), Oracle(text), after + length
    days = [after.date() + timedelta(days=n) for n in range(max(length.days, 0) + 2)]
    due = [t for day in days for t in oracle.due_on(day) if after < t <= until]
    assert expression.count_between(after, until) == len(due)
    assert expression.latest_between(after, until, 100) == due[-100:]


@given(expressions(), st.lists(instants(), min_size=3, max_size=3).map(sorted))
def test_counts_over_years_add_up(text, moments):
    expression, (one, two, three) = parse(text), moments
    whole = expression.count_between(one, three)
    assert whole == expression.count_between(one, two) + expression.count_between(two, three)


@pytest.mark.parametrize(
    ("text", "after", "until", "count"),
    [
        ("0 9 * * *", "2027-01-05T09:00", "2027-01-06T09:00", 1),
        ("0 9 * * *", "2027-01-05T08:59:59", "2027-01-06T08:59:59", 1),
        ("0 9 * * *", "2027-01-05T09:00", "2027-01-05T09:00", 0),
        ("0 9 * * *", "2027-01-06T09:00", "2027-01-05T09:00", 0),
        ("* * * * *", "2026-01-01T00:00", "2027-01-01T00:00", 365 * 24 * 60),
        ("* * * * *", "2000-01-01T00:00", "2400-01-01T00:00", 146_097 * 24 * 60),
        ("0 0 29 2 *", "2000-01-01T00:00", "2400-01-01T00:00", 97),
        ("0 0 * * 5", "2000-01-01T00:00", "2400-01-01T00:00", 20_871),
    ],
)
def test_count_between_leaves_out_its_start_and_holds_its_end(text, after, until, count):
    assert parse(text).count_between(utc(after), utc(until)) == count


def test_latest_between_gives_no_more_than_it_was_asked_for():
    every_minute = parse("* * * * *")
    until = utc("2027-01-01T00:00")
    latest = every_minute.latest_between(utc("2020-01-01"), until, 3)
    assert latest == [until - 2 * MINUTE, until - MINUTE, until]
    assert every_minute.latest_between(utc("2020-01-01"), until, 0) == []


def test_latest_between_reaches_the_end_of_the_calendar():
    end = datetime.max.replace(tzinfo=UTC)
    assert parse("59 23 * * *").latest_between(utc("9999-12-30"), end, 1) == [
        datetime(MAXYEAR, 12, 31, 23, 59, tzinfo=UTC)
    ]
