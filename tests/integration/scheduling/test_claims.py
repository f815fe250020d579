"""Claims: who fires, what is written, and what is left alone."""

import threading
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.scheduling.values import Due
from tests.support.scheduling import EVERY_MINUTE, NOON, World, draft_of, due

MINUTE = timedelta(minutes=1)
HOURLY = "0 * * * *"


def just_before(instant):
    return instant - timedelta(seconds=1)


def on_time(instant=NOON, expression=EVERY_MINUTE) -> Due:
    """An occurrence on a node that has been watching."""
    return due(instant, expression, since=just_before(instant))


def test_each_trigger_of_a_due_expression_gets_one_run(world: World) -> None:
    world.clock.forward(hours=-1)
    world.save("first", EVERY_MINUTE, HOURLY)
    world.save("second", EVERY_MINUTE)
    world.save("other", "30 * * * *")
    world.clock.forward(hours=1, seconds=0.25)

    claimed = world.claim(on_time(), on_time(expression=HOURLY))

    assert {(f.expression, f.runs) for f in claimed.fired} == {(EVERY_MINUTE, 2), (HOURLY, 1)}
    assert [(r.automation_id, r.trigger_id) for r in world.runs()] == [
        ("first", "t0"),
        ("first", "t1"),
        ("second", "t0"),
    ]
    assert [(o.expression, o.state, o.node, o.runs) for o in world.occurrences()] == [
        (EVERY_MINUTE, "fired", "one", 2),
        (HOURLY, "fired", "one", 1),
    ]
    assert all(o.claimed_at - o.due_at == timedelta(seconds=0.25) for o in world.occurrences())


def test_a_run_copies_what_it_needs_of_its_automation(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.forward(minutes=5)
    world.claim(on_time())

    (run,) = world.runs()
    assert run.state == "queued"
    assert run.automation_name == "Nightly"
    assert run.automation_revision == world.store.revision("nightly")
    assert (run.trigger_type, run.trigger_id) == ("schedule", "t0")
    target = (run.target_repository, run.target_ref, run.target_workflow)
    assert target == ("acme/shop", "main", "release")
    assert (run.due_at, run.queued_at) == (NOON, NOON)
    assert (run.attempt, run.max_attempts, run.events) == (0, 3, 0)
    assert (run.started_at, run.finished_at, run.worker, run.reason_code) == (None,) * 4


def test_an_occurrence_is_claimed_once(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.forward(minutes=5)
    assert len(world.claim(on_time()).fired) == 1
    assert world.claim(on_time(), node="two").fired == ()
    assert world.claim(due(NOON), node="two").fired == ()
    assert len(world.runs()) == 1


def test_what_is_older_than_the_newest_claim_is_left_out(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.forward(minutes=6)
    world.claim(on_time(NOON + MINUTE))
    assert world.claim(on_time()).fired == ()
    assert world.fired() == [("nightly", NOON + MINUTE)]


def test_an_instant_beyond_the_databases_clock_waits(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.instant = NOON - timedelta(seconds=1, microseconds=1)
    claimed = world.claim(on_time())
    assert claimed.early == (on_time(),)
    assert (claimed.fired, world.occurrences()) == ((), [])

    world.clock.instant = NOON - timedelta(seconds=1)
    assert [f.due_at for f in world.claim(*claimed.early).fired] == [NOON]


@pytest.mark.parametrize("change", ["disable", "delete", "other expression"])
def test_what_is_committed_before_the_claim_decides(world: World, change: str) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.save("stays", EVERY_MINUTE)
    world.clock.instant = NOON + timedelta(milliseconds=5)
    match change:
        case "disable":
            world.save("nightly", EVERY_MINUTE, enabled=False)
        case "delete":
            world.execute("DELETE FROM automations WHERE id = 'nightly'")
        case "other expression":
            world.save("nightly", "30 1 * * *")
    world.claim(on_time())
    assert world.fired() == [("stays", NOON)]


@pytest.mark.parametrize("change", ["created", "enabled", "given its expression"])
def test_what_comes_after_the_instant_fires_at_the_next(world: World, change: str) -> None:
    world.clock.forward(hours=-1)
    world.save("early", EVERY_MINUTE)
    if change == "enabled":
        world.save("nightly", EVERY_MINUTE, enabled=False)
    if change == "given its expression":
        world.save("nightly", HOURLY)
    world.clock.instant = NOON + timedelta(milliseconds=5)
    world.save("nightly", EVERY_MINUTE)
    world.claim(on_time())
    assert world.fired() == [("early", NOON)]

    world.clock.instant = NOON + MINUTE
    world.claim(on_time(NOON + MINUTE))
    assert ("nightly", NOON + MINUTE) in world.fired()


def test_armed_at_the_very_instant_is_in_time(world: World) -> None:
    world.save("nightly", EVERY_MINUTE)
    world.claim(on_time())
    assert world.fired() == [("nightly", NOON)]


def test_renaming_an_automation_costs_no_occurrence(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.instant = NOON + timedelta(milliseconds=5)
    revision = world.store.revision("nightly")
    world.store.replace("nightly", frozenset({revision}), draft_of(EVERY_MINUTE, name="New"), "me")
    world.claim(on_time())
    assert [(r.automation_name, r.due_at) for r in world.runs()] == [("New", NOON)]


def test_what_a_dba_inserts_fires(world: World) -> None:
    world.dba_adds("by-hand", EVERY_MINUTE)
    world.claim(on_time())
    assert world.fired() == [("by-hand", NOON)]


def test_a_target_that_a_dba_broke_is_recorded_and_hinders_nobody(world: World) -> None:
    world.dba_adds("broken", EVERY_MINUTE, target_repository="///", target_ref="..")
    world.dba_adds("sound", EVERY_MINUTE)
    world.claim(on_time())
    assert world.fired() == [("broken", NOON), ("sound", NOON)]


def test_a_run_that_is_there_already_hinders_nobody(world: World) -> None:
    """A DBA changes an expression after it fired, and both are due at the same instant."""
    world.clock.forward(hours=-1)
    world.save("twice", EVERY_MINUTE)
    world.save("other", HOURLY)
    world.clock.instant = NOON
    world.claim(on_time())
    world.execute(f"UPDATE automation_triggers SET expression = '{HOURLY}'")
    claimed = world.claim(on_time(expression=HOURLY))
    assert world.fired() == [("other", NOON), ("twice", NOON)]
    assert [f.expression for f in claimed.fired] == [HOURLY]


def test_a_prior_run_that_is_still_at_work_does_not_matter(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.instant = NOON
    world.claim(on_time())
    world.clock.forward(minutes=1)
    world.claim(on_time(NOON + MINUTE))
    assert world.fired() == [("nightly", NOON), ("nightly", NOON + MINUTE)]


def test_expressions_compare_by_byte(world: World) -> None:
    world.dba_adds("small", "0 12 * * tue")
    world.dba_adds("big", "0 12 * * TUE")
    world.claim(on_time(expression="0 12 * * TUE"))
    assert world.fired() == [("big", NOON)]


def test_what_was_claimed_does_not_fire_again_after_the_clock_steps_back(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.instant = NOON
    world.claim(on_time())
    world.clock.forward(minutes=-2)
    assert world.claim(on_time(NOON - 2 * MINUTE)).fired != ()
    world.clock.instant = NOON
    assert world.claim(on_time()).fired == ()
    assert len(world.fired()) == len(set(world.fired()))


def test_a_clock_that_was_wrong_by_a_year_does_not_silence_a_schedule(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.forward(days=365)
    ahead = world.clock.instant
    world.claim(due(ahead))
    assert ("nightly", ahead) in world.fired()
    world.clock.instant = NOON
    assert [f.due_at for f in world.claim(on_time()).fired] == [NOON]


def test_a_definition_committed_just_after_the_claim_gets_its_run(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("early", EVERY_MINUTE)
    world.clock.instant = NOON + timedelta(milliseconds=5)
    world.claim(on_time())
    world.clock.instant = NOON - timedelta(milliseconds=100)
    world.save("late", EVERY_MINUTE)
    world.clock.instant = NOON + timedelta(milliseconds=5)
    world.save("too-late", EVERY_MINUTE)
    world.dba_adds("by-hand", EVERY_MINUTE)

    assert world.ledger().sweep([on_time()]) == 1
    assert world.fired() == [("early", NOON), ("late", NOON)]
    assert world.occurrences()[-1].runs == 2
    assert world.ledger().sweep([on_time()]) == 0


def test_a_sweep_starts_nothing_for_what_nobody_claimed(world: World) -> None:
    world.clock.instant = NOON - timedelta(milliseconds=100)
    world.save("late", EVERY_MINUTE)
    assert world.ledger().sweep([on_time()]) == 0
    assert world.runs() == []


def test_nodes_that_claim_at_the_same_time_share_nothing_and_lose_nothing(world: World) -> None:
    expressions = [f"{n} 12 * * *" for n in range(20)] + [EVERY_MINUTE]
    world.clock.forward(hours=-1)
    for number, expression in enumerate(expressions):
        world.save(f"a{number:02}", expression, EVERY_MINUTE)
    world.clock.instant = NOON
    order = [on_time(expression=e) for e in expressions]
    won: list[str] = []
    failures: list[BaseException] = []
    together = threading.Barrier(4)

    def node(number: int) -> None:
        together.wait(10)
        try:
            mine = order[number:] + order[:number]
            won.extend(f.expression for f in world.claim(*mine, node=f"n{number}").fired)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=node, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert sorted(won) == sorted({"0 12 * * *", EVERY_MINUTE} | set(expressions))
    assert len(world.runs()) == 2 * len(expressions) and len(set(world.runs())) == len(world.runs())


def test_a_claim_that_dies_leaves_its_occurrence_to_others(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("nightly", EVERY_MINUTE)
    world.clock.instant = NOON

    def dies(connection) -> None:
        world.ledger()._claim(connection, [on_time()], "dead")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.database.write(dies)
    assert world.occurrences() == []
    assert len(world.claim(on_time(), node="other").fired) == 1


def test_a_purge_keeps_the_newest_of_each_expression(world: World) -> None:
    rows = [(EVERY_MINUTE, n) for n in range(25)] + [(HOURLY, 300)]
    for expression, minutes in rows:
        world.execute(
            "INSERT INTO schedule_occurrences (expression, due_at, state, claimed_at, node, runs)"
            " VALUES (:e, :at, 'fired', :at, 'n', 0)",
            e=expression,
            at=_bound(world, NOON - minutes * MINUTE),
        )
    assert world.ledger().purge_occurrences(NOON - 10 * MINUTE, batch=4) == 14
    assert world.ledger().purge_occurrences(NOON + MINUTE, batch=4) == 10
    assert [(o.expression, o.due_at) for o in world.occurrences()] == [
        (EVERY_MINUTE, NOON),
        (HOURLY, NOON - 300 * MINUTE),
    ]


def _bound(world: World, instant):
    """Return what plain SQL takes for an instant."""
    naive = instant.strftime("%Y-%m-%d %H:%M:%S.%f")
    return instant if world.database.dialect == "postgresql" else naive


def test_counts_are_right_where_triggers_share_an_automation(world: World) -> None:
    world.clock.forward(minutes=-5)
    world.save("three", EVERY_MINUTE, HOURLY, EVERY_MINUTE)
    world.clock.instant = NOON
    claimed = world.claim(on_time(), on_time(expression=HOURLY))
    assert {f.expression: f.runs for f in claimed.fired} == {EVERY_MINUTE: 2, HOURLY: 1}
    total = world.database.read(
        lambda c: c.scalar(text("SELECT sum(runs) FROM schedule_occurrences"))
    )
    assert total == 3
