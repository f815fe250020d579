"""Claims of expressions with very many triggers."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import insert, text

from app import cron
from app.automations.models import automation_trigger_arms, automation_triggers, automations
from app.clock import format_instant
from app.db import Database, DatabaseLimits
from app.errors import DatabaseTooSlow
from app.scheduling import starting
from app.scheduling.missed import in_words_since
from app.scheduling.values import Gap
from tests.support.databases import DIALECTS
from tests.support.scheduling import EVERY_MINUTE, NOON, DrivenClock, World, due

MINUTE = timedelta(minutes=1)
WITH_A_LIMIT = pytest.mark.parametrize(
    "database_url", [d for d in DIALECTS if d != "sqlite"], indirect=True
)


def armed(world: World, arms: list[datetime], expression: str = EVERY_MINUTE) -> None:
    """Store one automation for each of ``arms``, with one trigger that was armed then."""
    automation = {
        "revision": "0" * 64,
        "name": "Nightly",
        "api_enabled": False,
        "target_repository": "acme/shop",
        "target_ref": "main",
        "target_workflow": "release",
    }
    ids = [f"a{number:06}" for number in range(len(arms))]

    def work(connection) -> None:
        connection.execute(insert(automations), [{"id": i, **automation} for i in ids])
        trigger = {"id": "t0", "enabled": True, "expression": expression}
        connection.execute(
            insert(automation_triggers), [{"automation_id": i, **trigger} for i in ids]
        )
        connection.execute(
            insert(automation_trigger_arms),
            [
                {"automation_id": i, "trigger_id": "t0", "armed_at": at}
                for i, at in zip(ids, arms, strict=True)
            ],
        )

    world.database.write(work)


def test_ten_thousand_triggers_armed_in_one_outage_are_each_told_what_they_missed(
    world: World,
) -> None:
    """A join of triggers and instants at which they were armed would have three million rows."""
    first = NOON - 310 * MINUTE
    world.clock.instant = first
    world.save("since-ever", EVERY_MINUTE)
    assert world.claim(due(first, since=first - MINUTE)).fired
    arms = [first + (1 + n % 300) * MINUTE - timedelta(seconds=n % 50) for n in range(10_000)]
    armed(world, arms)
    world.clock.instant = NOON + timedelta(seconds=1)

    claimed = world.claim(due(NOON))

    assert (claimed.missed, [f.runs for f in claimed.fired]) == (309, [10_001])
    said = {run.automation_id: run.reason_detail for run in world.runs("missed")}
    until = f"to {format_instant(NOON - MINUTE)}."
    assert said.pop("since-ever") == (
        f"309 occurrences were missed, from {format_instant(first + MINUTE)} {until}"
    )
    assert Counter(said.values()) == Counter(
        f"{309 - n % 300} occurrences were missed, "
        f"from {format_instant(first + (1 + n % 300) * MINUTE)} {until}"
        for n in range(10_000)
    )


@pytest.mark.parametrize("expression", [EVERY_MINUTE, "*/7 3-5 * * *", "0 0 29 2 *"])
def test_what_is_said_in_one_pass_is_what_counting_each_says(expression: str) -> None:
    parsed = cron.parse(expression)
    last = parsed.previous(NOON)
    assert last is not None
    arms = [last - n * timedelta(hours=7, seconds=n) for n in range(50)]
    first = parsed.next(min(arms) - MINUTE)
    assert first is not None
    said = in_words_since(Gap(expression, first, last, 9, ()), parsed, [*arms, *arms])
    for at in arms:
        count = parsed.count_between(at - timedelta(microseconds=1), last)
        begins = "1 occurrence was" if count == 1 else f"{count:,} occurrences were"
        assert said[at].startswith(f"{begins} missed")
        assert count == 1 or format_instant(parsed.next(at - MINUTE / 60)) in said[at]


def impatient(url: str, clock: DrivenClock) -> World:
    limits = DatabaseLimits(statement=1, lock=2)
    return World(Database(url, limits=limits, clock=clock), clock)


SLEEP = {"postgresql": "SELECT pg_sleep(20)", "mariadb": "SELECT sleep(20)"}


@WITH_A_LIMIT
def test_what_one_statement_cannot_do_in_time_is_done_in_portions(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement that takes all at once is one here that the server really ends at its limit."""
    monkeypatch.setattr(starting, "PORTION", 7)
    before = NOON - 10 * MINUTE
    armed(world, [before - MINUTE] * 20 + [NOON - 5 * MINUTE] * 15)
    hasty = impatient(database_url, world.clock)
    ledger = hasty.ledger()
    slow = text(SLEEP[world.database.dialect])
    ledger._runs._sql = replace(ledger._sql, insert_runs=slow, insert_missed=slow)
    world.clock.instant = before

    assert [f.runs for f in ledger.claim([due(before, since=before - MINUTE)], "one").fired] == [20]
    world.clock.instant = NOON + timedelta(seconds=1)
    claimed = ledger.claim([due(NOON)], "one")

    assert (claimed.missed, [f.runs for f in claimed.fired]) == (9, [35])
    assert Counter(run.reason_detail[0] for run in world.runs("missed")) == {"9": 20, "5": 15}
    assert [o.runs for o in world.occurrences() if o.state == "fired"] == [20, 35]
    hasty.database.close()


@WITH_A_LIMIT
def test_a_claim_that_is_too_slow_in_portions_too_is_given_up_with_nothing_done(
    world: World, database_url: str
) -> None:
    armed(world, [NOON - MINUTE])
    hasty = impatient(database_url, world.clock)
    ledger = hasty.ledger()
    slow = text(SLEEP[world.database.dialect])
    ledger._runs._sql = replace(ledger._sql, insert_runs=slow, insert_portion_of_runs=slow)
    with pytest.raises(DatabaseTooSlow):
        ledger.claim([due(NOON, since=NOON - MINUTE)], "one")
    assert (world.runs(), world.occurrences()) == ([], [])
    hasty.database.close()
