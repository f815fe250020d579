"""When expressions are due: the vectors, and properties against a second, naive implementation."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cron import parse
from tests.support.cron_oracle import Oracle, expressions, instants

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "vectors/cron.jsonl").read_text("utf-8").splitlines()
]
SECOND = timedelta(seconds=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "vector", [v for v in VECTORS if v["valid"]], ids=lambda v: repr(v["expression"])
)
def test_next_instants_are_those_of_the_vectors(vector):
    expression = parse(vector["expression"])
    moment, found = datetime.fromisoformat(vector["start"]), []
    while len(found) < 5 and (moment := expression.next(moment)) is not None:
        found.append(moment)
    assert found == [datetime.fromisoformat(text) for text in vector["next"]]


def test_vectors_are_all_there():
    assert len(VECTORS) == 598
    assert sum(v["valid"] for v in VECTORS) > 300
    assert sum(v["valid"] and not v["next"] for v in VECTORS) > 5


@given(expressions(), instants())
def test_next_is_due_and_nothing_before_it_is(text, after):
    oracle = Oracle(text)
    due = parse(text).next(after)
    days = (after.date() + timedelta(days=n) for n in range(800))
    expected = next((t for day in days for t in oracle.due_on(day) if t > after), None)
    if expected is not None:
        assert due == expected
    elif due is not None:
        assert due.date() > after.date() + timedelta(days=799)
        assert oracle.is_due(due)


@given(expressions(), instants())
def test_previous_is_due_and_nothing_after_it_is(text, before):
    oracle = Oracle(text)
    due = parse(text).previous(before)
    days = (before.date() - timedelta(days=n) for n in range(800))
    expected = next((t for day in days for t in oracle.due_on(day)[::-1] if t < before), None)
    if expected is not None:
        assert due == expected
    elif due is not None:
        assert due.date() < before.date() - timedelta(days=799)
        assert oracle.is_due(due)


@given(expressions(), instants())
def test_previous_mirrors_next(text, instant):
    expression = parse(text)
    due = expression.next(instant)
    if due is None:
        assert expression.previous(instant) is None
        assert not expression.ever_fires
        return
    assert expression.ever_fires
    assert (due.second, due.microsecond, due.tzinfo) == (0, 0, UTC)
    assert expression.previous(due + SECOND) == due
    before = expression.previous(due)
    assert before is None or (before <= instant and expression.next(before) == due)


def test_a_due_instant_is_not_its_own_next_or_previous():
    daily = parse("0 9 * * *")
    nine = utc("2027-01-05T09:00")
    assert daily.next(nine) == utc("2027-01-06T09:00")
    assert daily.previous(nine) == utc("2027-01-04T09:00")


@pytest.mark.parametrize("part", [timedelta(microseconds=1), SECOND, timedelta(seconds=59)])
def test_seconds_within_a_minute_belong_after_its_beginning(part):
    daily = parse("0 9 * * *")
    nine = utc("2027-01-05T09:00")
    assert daily.next(nine + part) == utc("2027-01-06T09:00")
    assert daily.previous(nine + part) == nine
    assert daily.next(nine - part) == nine
    assert daily.previous(nine - part) == utc("2027-01-04T09:00")


@given(expressions(), instants())
def test_matches_says_which_instants_are_due(text, moment):
    minute = moment.replace(second=0, microsecond=0)
    expression, oracle = parse(text), Oracle(text)
    assert expression.matches(minute) == oracle.is_due(minute)
    assert not expression.matches(minute + SECOND)
    due = expression.next(moment)
    assert due is None or expression.matches(due)


def test_steps_are_counted_from_the_start_of_the_hour_either_way():
    expression, moment = parse("*/7 * * * *"), utc("2027-01-05T09:01")
    assert expression.next(moment) == utc("2027-01-05T09:07")
    assert expression.previous(moment) == utc("2027-01-05T09:00")


# --- zones ----------------------------------------------------------------------------------------


@given(expressions(), instants(), st.integers(-14 * 60, 14 * 60))
def test_instants_of_other_zones_are_converted(text, moment, offset):
    expression = parse(text)
    elsewhere = moment.astimezone(timezone(timedelta(minutes=offset)))
    assert expression.next(elsewhere) == expression.next(moment)
    assert expression.previous(elsewhere) == expression.previous(moment)
    assert expression.matches(elsewhere) == expression.matches(moment)
    later = elsewhere + timedelta(days=3)
    assert expression.count_between(elsewhere, later) == expression.count_between(moment, later)
    due = expression.next(elsewhere)
    assert due is None or due.tzinfo is UTC


@pytest.mark.parametrize(
    "ask",
    [
        lambda e, naive: e.next(naive),
        lambda e, naive: e.previous(naive),
        lambda e, naive: e.matches(naive),
        lambda e, naive: e.count_between(naive, utc("2027-01-01")),
        lambda e, naive: e.count_between(utc("2027-01-01"), naive),
        lambda e, naive: e.latest_between(naive, utc("2027-01-01"), 1),
        lambda e, naive: e.latest_between(utc("2027-01-01"), naive, 1),
    ],
)
def test_an_instant_without_a_zone_is_refused(ask):
    with pytest.raises(ValueError, match="no time zone"):
        ask(parse("* * * * *"), datetime(2027, 1, 1))


# --- values ---------------------------------------------------------------------------------------


def test_expressions_are_values():
    one, other = parse("0  0 * * *"), parse("0 0 * * * ")
    assert one == other
    assert len({one, other, parse("0 1 * * *")}) == 2
    assert repr(one) == "Expression(source='0 0 * * *')"
    with pytest.raises(AttributeError):
        one.source = "* * * * *"


def test_parsing_again_gives_the_same_value_from_a_bounded_cache():
    assert parse("1 2 3 4 5") is parse("1 2 3 4 5")
    assert parse.cache_info().maxsize is not None
