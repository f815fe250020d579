"""Runs that the API asks for: their events, their idempotency keys, and runs again."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import delete, func, select, text, update

from app.automations.store import ANY, AutomationStore
from app.db import Database
from app.errors import (
    ApiTriggerDisabled,
    DatabaseUnavailable,
    IdempotencyKeyReused,
    InvalidInput,
    NotFound,
    RunNotFinished,
)
from app.runs.ledger import RunLedger, Verdict
from app.runs.models import run_events, run_idempotency_keys, runs
from app.runs.values import INPUT_LIMIT, Reason, RunFilter
from tests.support.runs import changed, queued, stored_automation


@pytest.fixture
def ledger(database: Database) -> RunLedger:
    stored_automation(database)
    return RunLedger(database, max_attempts=3)


def documents(database: Database) -> dict[int, str]:
    query = select(run_events.c.run_id, run_events.c.document)
    return database.read(lambda c: dict(c.execute(query).all()))


def count(database: Database, table) -> int:
    return database.read(lambda c: c.scalar(select(func.count()).select_from(table)))


def test_a_run_keeps_what_it_was_started_with(ledger: RunLedger, database: Database) -> None:
    automation = AutomationStore(database).get("nightly")
    opened = ledger.open_api_run("nightly")
    run = opened.run
    assert opened.created
    assert ledger.get(run.id) == run
    assert (run.state, run.attempt, run.max_attempts) == ("queued", 0, 3)
    assert (run.trigger_type, run.trigger_id, run.due_at) == ("api", "manual", None)
    assert (run.automation_id, run.automation_name) == ("nightly", "Nightly")
    assert run.automation_revision == automation.revision
    assert (run.target_repository, run.target_ref, run.target_workflow) == (
        ("acme/shop", "main", "release")
    )
    AutomationStore(database).delete("nightly", ANY, "test")
    assert ledger.get(run.id) == run
    assert ledger.known_automation("nightly")
    assert not ledger.known_automation("other")


@pytest.mark.parametrize(
    "given", [None, False, 0, "", [], {}, {"a": [1, "\u0000 \ud800 é 🔔"]}, 2**70, 1.5]
)
def test_the_input_arrives_as_the_one_event(ledger: RunLedger, given: object) -> None:
    run = ledger.open_api_run("nightly", input=given).run
    assert run.events == 1
    [claimed] = ledger.claim("w", 10, 30)
    assert claimed.payloads() == [given]


def test_without_input_there_is_no_event(ledger: RunLedger, database: Database) -> None:
    run = ledger.open_api_run("nightly").run
    assert run.events == 0
    assert documents(database) == {}
    assert ledger.claim("w", 10, 30)[0].payloads() == []


@pytest.mark.parametrize("given", ["é" * (INPUT_LIMIT // 2 - 1), "x" * (INPUT_LIMIT - 2)])
def test_an_input_may_have_exactly_its_limit(ledger: RunLedger, given: str) -> None:
    assert ledger.open_api_run("nightly", input=given).created
    with pytest.raises(InvalidInput, match="65,536 bytes"):
        ledger.open_api_run("nightly", input=given + "x")


def test_what_is_no_json_is_refused(ledger: RunLedger, database: Database) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for given in (float("nan"), {1, 2}, deep):
        with pytest.raises(InvalidInput):
            ledger.open_api_run("nightly", input=given)
    assert count(database, runs) == 0


def test_nothing_opens_where_there_is_no_enabled_trigger(database: Database) -> None:
    stored_automation(database, "closed", api_enabled=False)
    ledger = RunLedger(database)
    with pytest.raises(NotFound):
        ledger.open_api_run("nowhere")
    with pytest.raises(ApiTriggerDisabled):
        ledger.open_api_run("closed", idempotency_key="k")
    assert count(database, runs) == count(database, run_idempotency_keys) == 0


def test_an_automation_that_is_stored_broken_elsewhere_still_starts(
    ledger: RunLedger, database: Database
) -> None:
    database.write(
        lambda c: c.execute(text("UPDATE automation_triggers SET expression = 'never ever'"))
    )
    assert ledger.open_api_run("nightly").created


def test_the_same_key_and_body_answer_the_same_run(ledger: RunLedger, database: Database) -> None:
    first = ledger.open_api_run("nightly", input={"a": 1, "b": 1.0}, idempotency_key="k")
    again = ledger.open_api_run("nightly", input={"b": 1, "a": 1.0}, idempotency_key="k")
    assert first.created
    assert not again.created
    assert again.run == first.run
    assert count(database, runs) == 1


@pytest.mark.parametrize(
    "bodies", [({"input": None}, {}), ({}, {"input": {}}), ({"input": 2**70}, {})]
)
def test_a_key_with_another_body_is_refused(ledger: RunLedger, bodies, database: Database) -> None:
    first = ledger.open_api_run("nightly", idempotency_key="k", **bodies[0]).run
    with pytest.raises(IdempotencyKeyReused) as caught:
        ledger.open_api_run("nightly", idempotency_key="k", **bodies[1])
    assert caught.value.run_id == first.id
    assert count(database, runs) == 1


def test_a_key_belongs_to_one_automation_and_to_the_byte(
    ledger: RunLedger, database: Database
) -> None:
    stored_automation(database, "weekly")
    keys = [("nightly", "k"), ("weekly", "k"), ("nightly", "K"), ("nightly", "~" * 255)]
    opened = [ledger.open_api_run(id_, idempotency_key=key) for id_, key in keys]
    assert all(o.created for o in opened)


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256, "a\n"])
def test_a_malformed_key_is_refused(ledger: RunLedger, key: str, database: Database) -> None:
    with pytest.raises(InvalidInput, match="visible ASCII"):
        ledger.open_api_run("nightly", idempotency_key=key)
    assert count(database, runs) == 0


def test_a_key_answers_even_when_its_automation_is_closed_or_gone(
    ledger: RunLedger, database: Database
) -> None:
    first = ledger.open_api_run("nightly", idempotency_key="k").run
    database.write(lambda c: c.execute(text("UPDATE automations SET api_enabled = 0")))
    assert ledger.open_api_run("nightly", idempotency_key="k").run == first
    AutomationStore(database).delete("nightly", ANY, "test")
    assert ledger.open_api_run("nightly", idempotency_key="k").run == first
    with pytest.raises(NotFound):
        ledger.open_api_run("nightly", idempotency_key="other")


def test_a_key_goes_with_its_run(ledger: RunLedger, database: Database) -> None:
    first = ledger.open_api_run("nightly", idempotency_key="k").run
    database.write(lambda c: c.execute(runs.delete()))
    again = ledger.open_api_run("nightly", idempotency_key="k")
    assert again.created
    assert again.run.id > first.id


def test_of_many_that_race_with_one_key_one_creates(ledger: RunLedger, database: Database) -> None:
    start = threading.Barrier(8)

    def call(_: int) -> tuple[int, bool]:
        start.wait(10)
        for _ in range(5):
            try:
                opened = ledger.open_api_run("nightly", input=[1], idempotency_key="k")
                return opened.run.id, opened.created
            except DatabaseUnavailable:
                continue
        raise AssertionError("never answered")

    for round_ in range(5):
        database.write(lambda c: c.execute(runs.delete()))
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(call, range(8)))
        assert len({run_id for run_id, _ in answers}) == 1, round_
        assert sum(created for _, created in answers) == 1
        assert count(database, runs) == count(database, run_events) == 1


@pytest.mark.parametrize("body", [{}, {"input": 1}])
def test_a_key_whose_run_somebody_deleted_is_free_again(
    ledger: RunLedger, database: Database, body: dict[str, object]
) -> None:
    first = ledger.open_api_run("nightly", idempotency_key="k").run
    # As in a shell of SQLite, where foreign keys are off unless somebody turns them on.
    foreign_keys_off = database.dialect == "sqlite"
    with database.writer.connect() as connection:
        if foreign_keys_off:
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        connection.execute(delete(runs))
        connection.commit()
        if foreign_keys_off:
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
    assert count(database, run_idempotency_keys) == foreign_keys_off
    second = ledger.open_api_run("nightly", idempotency_key="k", **body)
    assert second.created and second.run.id > first.id
    assert ledger.open_api_run("nightly", idempotency_key="k", **body).run == second.run


def test_old_keys_are_forgotten_in_small_batches(ledger: RunLedger, database: Database) -> None:
    for number in range(5):
        ledger.open_api_run("nightly", idempotency_key=f"k{number}")

    def age(hours: int, *keys: str):
        return lambda c: c.execute(
            update(run_idempotency_keys)
            .where(run_idempotency_keys.c.key.in_(keys))
            .values(used_at=database.now(c) - timedelta(hours=hours))
        )

    database.write(age(25, "k0", "k1", "k2"))
    database.write(age(23, "k3"))
    assert ledger.purge_idempotency_keys(limit=2) == 2
    assert ledger.purge_idempotency_keys(limit=2) == 1
    assert ledger.purge_idempotency_keys(limit=2) == 0
    left = database.read(lambda c: set(c.scalars(select(run_idempotency_keys.c.key))))
    assert left == {"k3", "k4"}
    assert count(database, runs) == 5


@pytest.mark.parametrize("state", ["succeeded", "failed", "canceled"])
def test_what_ended_may_run_again_without_its_automation(
    ledger: RunLedger, database: Database, state: str
) -> None:
    first = ledger.open_api_run("nightly", input={"a": 1}).run
    [claimed] = ledger.claim("w", 1, 30)
    reason = None if state == "succeeded" else Reason("exit-code", "It failed.")
    assert ledger.finish("w", claimed.held, Verdict(state, reason, 1, "c" * 40))
    AutomationStore(database).delete("nightly", ANY, "test")
    again = ledger.rerun(first.id)
    assert again.id > first.id
    assert (again.state, again.attempt, again.rerun_of) == ("queued", 0, first.id)
    assert (again.reason, again.exit_code, again.commit_hash) == (None, None, None)
    assert again.automation_revision == first.automation_revision
    assert ledger.claim("w", 1, 30)[0].payloads() == [{"a": 1}]


def test_a_missed_occurrence_may_be_made_up_for(database: Database) -> None:
    ledger = RunLedger(database)
    [missed] = queued(database)
    now = database.write(database.now)
    changed(database, missed, state="missed", due_at=now)
    again = ledger.rerun(missed)
    assert (again.state, again.due_at, again.rerun_of) == ("queued", None, missed)
    assert again.trigger_id == "at-three"


def test_what_has_not_ended_is_not_run_again(ledger: RunLedger, database: Database) -> None:
    run = ledger.open_api_run("nightly").run
    with pytest.raises(RunNotFinished, match="queued"):
        ledger.rerun(run.id)
    ledger.claim("w", 1, 30)
    with pytest.raises(RunNotFinished, match="running"):
        ledger.rerun(run.id)
    with pytest.raises(NotFound):
        ledger.rerun(run.id + 1000)
    assert count(database, runs) == 1


def test_the_ledger_is_listed_newest_first_in_pages(database: Database) -> None:
    ledger = RunLedger(database)
    ids = queued(database, 5)
    page = ledger.page(RunFilter(), None, 2)
    assert [r.id for r in page.runs] == [ids[4], ids[3]]
    assert (page.total, page.next_before) == (5, ids[3])
    page = ledger.page(RunFilter(), ids[1], 2)
    assert [r.id for r in page.runs] == [ids[0]]
    assert page.next_before is None


def test_filters_narrow_the_list(ledger: RunLedger, database: Database) -> None:
    old, scheduled = queued(database, 2)
    by_api = ledger.open_api_run("nightly").run.id
    changed(database, scheduled, automation_id="weekly", state="failed")
    now = database.write(database.now)
    changed(database, old, queued_at=now - timedelta(days=2))
    cases = {
        RunFilter(automation="nightly"): {old, by_api},
        RunFilter(states=frozenset({"failed", "canceled"})): {scheduled},
        RunFilter(trigger="api"): {by_api},
        RunFilter(trigger="at-three"): {old, scheduled},
        RunFilter(trigger="schedule", automation="weekly"): {scheduled},
        RunFilter(since=now - timedelta(days=1)): {scheduled, by_api},
        RunFilter(until=now - timedelta(days=1)): {old},
        RunFilter(automation="none"): set(),
    }
    for where, expected in cases.items():
        page = ledger.page(where, None, 10)
        assert {r.id for r in page.runs} == expected, where
        assert page.total == len(expected)


def test_a_total_beyond_ten_thousand_is_not_counted(database: Database) -> None:
    queued(database)
    names = [c.name for c in runs.c if c.name != "id"]
    copy = runs.insert().from_select(names, select(*(runs.c[n] for n in names)))
    for _ in range(13):
        database.write(lambda c: c.execute(copy))
    database.write(
        lambda c: c.execute(
            copy.from_select(names, select(*(runs.c[n] for n in names)).limit(1808))
        )
    )
    ledger = RunLedger(database)
    assert ledger.page(RunFilter(), None, 1).total == 10_000
    queued(database)
    page = ledger.page(RunFilter(), None, 1)
    assert page.total is None
    assert page.next_before is not None


def test_a_blob_in_a_text_column_reads_as_text(sqlite_database: Database) -> None:
    [run_id] = queued(sqlite_database)
    sqlite_database.write(
        lambda c: c.execute(text("UPDATE runs SET target_ref = X'6d61FF', automation_name = X'41'"))
    )
    run = RunLedger(sqlite_database).get(run_id)
    assert (run.target_ref, run.automation_name) == ("ma\ufffd", "A")
    assert json.dumps(run.target_ref)
