"""What happens to occurrences that nobody claimed in time."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.support.scheduling import EVERY_MINUTE, NOON, World, due

MINUTE = timedelta(minutes=1)


def missed(world: World):
    return {run.automation_id: run for run in world.runs("missed")}


def went_down_after_noon(world: World, *, minutes: float) -> None:
    """Leave the database as it is when every scheduler went down after 12:00, so long ago."""
    world.clock.instant = NOON - MINUTE
    world.save("nightly", EVERY_MINUTE)
    world.clock.instant = NOON
    assert world.claim(due(NOON, since=NOON - MINUTE)).fired
    world.clock.instant = NOON + minutes * MINUTE


def test_the_latest_fires_and_the_others_are_missed(world: World) -> None:
    went_down_after_noon(world, minutes=10.5)
    claimed = world.claim(due(NOON + 10 * MINUTE))
    assert [f.due_at for f in claimed.fired] == [NOON + 10 * MINUTE]
    assert claimed.missed == 9
    assert [(o.state, o.due_at) for o in world.occurrences()] == [
        ("fired", NOON),
        *(("missed", NOON + n * MINUTE) for n in range(1, 10)),
        ("fired", NOON + 10 * MINUTE),
    ]
    run = missed(world)["nightly"]
    assert run.reason_code == "missed"
    assert run.reason_detail == (
        "9 occurrences were missed, from 2026-12-01T12:01:00Z to 2026-12-01T12:09:00Z."
    )
    assert run.due_at == NOON + 9 * MINUTE
    assert run.finished_at == run.queued_at == world.clock.instant
    assert world.fired() == [("nightly", NOON), ("nightly", NOON + 10 * MINUTE)]


@pytest.mark.parametrize(
    ("catch_up", "age", "fires"),
    [(300, 300, True), (300, 300.001, False), (0, 60, False), (0, 0.05, True), (3600, 3000, True)],
)
def test_the_latest_fires_only_while_it_is_young_enough(
    world: World, catch_up: float, age: float, fires: bool
) -> None:
    world.clock.instant = NOON - timedelta(hours=3)
    world.save("nightly", "0 * * * *")
    world.claim(due(NOON - timedelta(hours=3), "0 * * * *", NOON - timedelta(hours=4)))
    world.clock.instant = NOON + timedelta(seconds=age)
    claimed = world.claim(due(NOON, "0 * * * *"), catch_up=catch_up)
    assert [f.due_at for f in claimed.fired] == ([NOON] if fires else [])
    assert claimed.missed == (2 if fires else 3)
    assert missed(world)["nightly"].due_at == (NOON - timedelta(hours=1) if fires else NOON)


def test_one_missed_occurrence_is_said_in_the_singular(world: World) -> None:
    went_down_after_noon(world, minutes=2)
    world.claim(due(NOON + 2 * MINUTE))
    assert missed(world)["nightly"].reason_detail == (
        "1 occurrence was missed, at 2026-12-01T12:01:00Z."
    )


def test_only_the_last_hundred_are_written_down_but_all_are_counted(world: World) -> None:
    went_down_after_noon(world, minutes=60 * 24)
    claimed = world.claim(due(NOON + timedelta(days=1)))
    assert claimed.missed == 24 * 60 - 1
    kept = [o.due_at for o in world.occurrences() if o.state == "missed"]
    assert kept == [NOON + timedelta(days=1) - n * MINUTE for n in range(100, 0, -1)]
    assert missed(world)["nightly"].reason_detail.startswith("1,439 occurrences were missed, from")


def test_each_trigger_missed_what_came_after_its_own_arm(world: World) -> None:
    went_down_after_noon(world, minutes=4.5)
    world.save("since-half-past-four", EVERY_MINUTE)
    world.clock.instant = NOON + 7 * MINUTE
    world.save("since-seven", EVERY_MINUTE)
    world.clock.instant = NOON + 9.5 * MINUTE
    world.save("since-the-last", EVERY_MINUTE)
    world.dba_adds("by-hand", EVERY_MINUTE)
    world.clock.instant = NOON + 10.1 * MINUTE
    world.save("too-late", EVERY_MINUTE)
    world.claim(due(NOON + 10 * MINUTE))
    details = {name: run.reason_detail for name, run in missed(world).items()}
    until = "to 2026-12-01T12:09:00Z."
    assert details == {
        "nightly": f"9 occurrences were missed, from 2026-12-01T12:01:00Z {until}",
        "since-half-past-four": f"5 occurrences were missed, from 2026-12-01T12:05:00Z {until}",
        "since-seven": f"3 occurrences were missed, from 2026-12-01T12:07:00Z {until}",
        "by-hand": f"9 occurrences were missed, from 2026-12-01T12:01:00Z {until}",
    }
    assert {name for name, at in world.fired() if at > NOON} == {
        "nightly",
        "since-half-past-four",
        "since-seven",
        "since-the-last",
        "by-hand",
    }


def test_without_records_the_earliest_arm_tells_what_was_missed(world: World) -> None:
    """Every scheduler was down from the first day on."""
    world.clock.instant = NOON - timedelta(minutes=3, seconds=30)
    world.save("nightly", EVERY_MINUTE)
    world.clock.instant = NOON + timedelta(seconds=1)
    claimed = world.claim(due(NOON))
    assert [f.due_at for f in claimed.fired] == [NOON]
    assert missed(world)["nightly"].reason_detail.startswith(
        "3 occurrences were missed, from 2026-12-01T11:57"
    )


def test_without_records_and_arms_nothing_was_missed(world: World) -> None:
    world.dba_adds("by-hand", EVERY_MINUTE)
    assert world.claim(due(NOON)).fired == ()
    assert (world.runs(), world.occurrences()) == ([], [])


def test_a_schedule_that_was_disabled_meanwhile_missed_nothing(world: World) -> None:
    went_down_after_noon(world, minutes=1)
    world.save("nightly", EVERY_MINUTE, enabled=False)
    world.clock.instant = NOON + timedelta(days=30)
    world.save("nightly", EVERY_MINUTE)
    world.clock.forward(seconds=90)
    claimed = world.claim(due(NOON + timedelta(days=30) + MINUTE))
    # Armed at the very minute, it missed that one and nothing of the month before.
    assert claimed.missed == 1
    assert [f.due_at for f in claimed.fired] == [NOON + timedelta(days=30) + MINUTE]


def test_a_new_node_beside_others_finds_nothing_missed(world: World) -> None:
    went_down_after_noon(world, minutes=0.5)
    assert world.claim(due(NOON), node="new") == world.claim(due(NOON), node="newer")
    assert world.runs("missed") == []


def test_a_node_that_lags_finds_what_others_did(world: World) -> None:
    went_down_after_noon(world, minutes=3)
    for n in (1, 2, 3):
        world.claim(due(NOON + n * MINUTE, since=NOON), node="quick")
    assert world.claim(due(NOON + 2 * MINUTE, since=NOON), node="slow").fired == ()
    assert world.runs("missed") == []


def test_a_paused_node_that_goes_on_finds_the_gap_itself(world: World) -> None:
    """It was stopped for an hour; its job then names the latest instant."""
    went_down_after_noon(world, minutes=60)
    claimed = world.claim(due(NOON + 60 * MINUTE, since=NOON - MINUTE))
    assert (len(claimed.fired), claimed.missed) == (1, 59)
    assert len(missed(world)) == 1


def test_a_claim_that_comes_too_late_is_missed(world: World) -> None:
    went_down_after_noon(world, minutes=1)
    world.clock.forward(seconds=301)
    claimed = world.claim(due(NOON + MINUTE, since=NOON))
    assert (claimed.fired, claimed.missed) == ((), 1)


def test_many_nodes_catch_up_together_exactly_once(world: World) -> None:
    expressions = [EVERY_MINUTE, *(f"*/{n} * * * *" for n in range(2, 7))]
    world.clock.instant = NOON - 90 * MINUTE
    for number, expression in enumerate(expressions):
        world.save(f"a{number}", expression)
    world.clock.instant = NOON + timedelta(seconds=1)
    wanted = [due(NOON, e) for e in expressions]
    with ThreadPoolExecutor(5) as nodes:
        claims = list(nodes.map(lambda n: world.claim(*wanted, node=f"n{n}"), range(5)))
    assert sum(len(c.fired) for c in claims) == len(wanted)
    assert sum(c.missed for c in claims) == sum(90 // n for n in range(1, 7))
    assert len(missed(world)) == len(world.runs("missed")) == len(wanted)
    assert len(world.fired()) == len(wanted)


def test_a_plan_that_another_node_overtook_is_made_again(world: World) -> None:
    """Another node records part of the gap between the look and the insert."""
    went_down_after_noon(world, minutes=5)
    ledger = world.ledger()
    insert = ledger._insert_occurrences
    meddled = []

    def meddling(connection, fires, gaps, node, now):
        if not meddled:
            meddled.append(True)
            connection.rollback()
            world.claim(due(NOON + 3 * MINUTE, since=NOON), node="quick")
            if world.database.dialect == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
        return insert(connection, fires, gaps, node, now)

    ledger._insert_occurrences = meddling
    claimed = ledger.claim([due(NOON + 5 * MINUTE)], "slow")
    assert claimed.overtaken == 1
    assert (claimed.missed, [f.due_at for f in claimed.fired]) == (1, [NOON + 5 * MINUTE])
    assert [r.due_at for r in world.runs("missed")] == [NOON + 2 * MINUTE, NOON + 4 * MINUTE]
