"""What workers do to runs, on each database, and what happens when several do it at once."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import chain
from typing import TypeVar

import pytest
from sqlalchemy import text

from app.db import Database
from app.errors import DatabaseUnavailable, NotFound, RunFinished
from app.runs.ledger import Held, RunLedger, Verdict
from app.runs.values import Reason
from tests.support.runs import changed, expire, lease_of, queued, stored_automation

T = TypeVar("T")
FAILED = Verdict("failed", Reason("exit-code", "It ended with 1."), 1, "a" * 40)


@pytest.fixture
def ledger(database: Database) -> RunLedger:
    return RunLedger(database)


def persistently(call: Callable[[], T]) -> T:
    """Call until the database answers, as workers do; at most ten times."""
    for _ in range(9):
        try:
            return call()
        except DatabaseUnavailable:
            continue
    return call()


def at_once(calls: Iterable[Callable[[], T]]) -> list[T]:
    """Call all of them at the same moment, each on a thread."""
    calls = list(calls)
    start = threading.Barrier(len(calls))

    def go(call: Callable[[], T]) -> T:
        start.wait(10)
        return persistently(call)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(go, calls))


# --- claiming ---------------------------------------------------------------------------------------


def test_the_oldest_are_claimed_first_and_no_more_than_asked(
    ledger: RunLedger, database: Database
) -> None:
    ids = queued(database, 3)
    assert ledger.anything_queued()
    claimed = ledger.claim("w", 2, 30)
    assert [c.run.id for c in claimed] == ids[:2]
    run = claimed[0].run
    assert (run.state, run.worker, run.attempt) == ("running", "w", 1)
    assert run.started_at is not None
    assert ledger.get(run.id) == run
    assert [c.run.id for c in ledger.claim("v", 2, 30)] == ids[2:]
    assert ledger.claim("w", 2, 30) == []
    assert not ledger.anything_queued()


def test_a_lease_counts_from_the_clock_of_the_database(
    ledger: RunLedger, database: Database
) -> None:
    [run_id] = queued(database)
    before = database.write(database.now)
    ledger.claim("w", 1, 30)
    after = database.write(database.now)
    lease = timedelta(seconds=30)
    assert before + lease <= lease_of(database, run_id) <= after + lease


def test_events_come_with_the_claim_and_a_broken_document_only_when_read(
    ledger: RunLedger, database: Database
) -> None:
    stored_automation(database)
    ledger.open_api_run("nightly", input={"a": 1})
    ledger.open_api_run("nightly", input=2)
    database.write(
        lambda c: c.execute(text("UPDATE run_events SET document = '{' WHERE document = '[2]'"))
    )
    first, second = ledger.claim("w", 2, 30)
    assert first.payloads() == [{"a": 1}]
    with pytest.raises(ValueError):
        second.payloads()


def test_threads_never_claim_the_same_run(database: Database) -> None:
    ids = queued(database, 60)

    def claim_all(worker: str) -> Callable[[], list[int]]:
        ledger = RunLedger(database)

        def work() -> list[int]:
            mine = []
            while claimed := persistently(lambda: ledger.claim(worker, 3, 30)):
                mine += [c.run.id for c in claimed]
            return mine

        return work

    taken = at_once(claim_all(f"w{n}") for n in range(6))
    assert sorted(chain.from_iterable(taken)) == ids


CLAIMER = """
import json, sys
from app.db import Database
from app.errors import DatabaseUnavailable
from app.runs.ledger import RunLedger
ledger, mine = RunLedger(Database(sys.argv[1])), []
sys.stdin.readline()
while ledger.anything_queued():
    try:
        mine += [c.run.id for c in ledger.claim(sys.argv[2], 4, 30)]
    except DatabaseUnavailable:
        pass
print(json.dumps(mine))
"""


def test_processes_never_claim_the_same_run(database: Database, database_url: str) -> None:
    ids = queued(database, 100)
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, database_url, f"w{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    for claimer in claimers:
        claimer.stdin.write("\n")
        claimer.stdin.flush()
    taken = [json.loads(claimer.communicate(timeout=60)[0]) for claimer in claimers]
    assert sorted(chain.from_iterable(taken)) == ids


# --- holding ----------------------------------------------------------------------------------------


def test_a_renewal_says_what_is_lost_and_what_is_to_be_canceled(
    ledger: RunLedger, database: Database
) -> None:
    kept, canceled, taken, ended, retried = queued(database, 5, max_attempts=2)
    held = {c.run.id: c.held for c in ledger.claim("w", 5, 5)}
    ledger.request_cancel(canceled)
    changed(database, taken, worker="v")
    changed(database, ended, state="failed")
    expire(database, retried)
    ledger.reap("reaper")
    ledger.claim("w", 1, 30)
    observed = ledger.observe("w")
    assert observed.held == {held[kept], held[canceled], Held(retried, 2)}
    assert observed.cancel_requested == {held[canceled]}
    assert ledger.observe("x").held == frozenset()
    renewal = ledger.renew("w", held.values(), 3600)
    assert renewal.lost == {held[taken], held[ended], held[retried]}
    assert renewal.cancel_requested == {held[canceled]}
    soon = database.write(database.now) + timedelta(seconds=1000)
    assert [lease_of(database, r) > soon for r in (kept, canceled, taken, ended, retried)] == (
        [True, True, False, False, False]
    )


def test_a_lease_that_has_ended_is_renewed_as_long_as_nobody_took_the_run(
    ledger: RunLedger, database: Database
) -> None:
    [run_id] = queued(database)
    [claimed] = ledger.claim("w", 1, 30)
    expire(database, run_id)
    assert ledger.renew("w", [claimed.held], 30).lost == frozenset()
    assert ledger.reap("reaper") == []


def test_holding_nothing_renews_nothing(ledger: RunLedger) -> None:
    assert ledger.renew("w", [], 30).lost == frozenset()


def test_the_commit_is_written_down_by_its_holder_alone(
    ledger: RunLedger, database: Database
) -> None:
    [run_id] = queued(database)
    [claimed] = ledger.claim("w", 1, 30)
    assert not ledger.record_commit("v", claimed.held, "b" * 40)
    assert ledger.record_commit("w", claimed.held, "a" * 40)
    assert ledger.get(run_id).commit_hash == "a" * 40


# --- finishing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict("succeeded", None, 0, "a" * 40),
        FAILED,
        Verdict("canceled", Reason("canceled", "By hand.")),
        Verdict("failed", Reason("runner-error", "nul \0 and \ud800"), None),
    ],
)
def test_an_end_is_written_once(ledger: RunLedger, database: Database, verdict: Verdict) -> None:
    [run_id] = queued(database)
    [claimed] = ledger.claim("w", 1, 30)
    assert not ledger.finish("v", claimed.held, verdict)
    assert not ledger.finish("w", Held(run_id, 2), verdict)
    assert ledger.get(run_id).state == "running"
    assert ledger.finish("w", claimed.held, verdict)
    run = ledger.get(run_id)
    assert (run.state, run.exit_code, run.commit_hash) == (
        (verdict.state, verdict.exit_code, verdict.commit_hash)
    )
    assert (run.reason and run.reason.code) == (verdict.reason and verdict.reason.code)
    assert run.worker == "w"
    assert run.finished_at >= run.started_at >= run.queued_at
    assert not ledger.finish("w", claimed.held, Verdict("succeeded"))
    assert ledger.get(run_id) == run


def test_an_attempt_that_lost_its_worker_is_queued_again_while_attempts_are_left(
    ledger: RunLedger, database: Database
) -> None:
    [run_id] = queued(database, max_attempts=2)
    verdict = Verdict("failed", Reason("worker-lost", "It stood still."), 143)
    [claimed] = ledger.claim("w", 1, 30)
    assert ledger.finish("w", claimed.held, verdict)
    run = ledger.get(run_id)
    assert (run.state, run.attempt, run.worker, run.started_at) == ("queued", 1, None, None)
    [claimed] = ledger.claim("w", 1, 30)
    assert claimed.held == Held(run_id, 2)
    assert ledger.finish("w", claimed.held, verdict)
    assert ledger.get(run_id).reason == verdict.reason


# --- canceling --------------------------------------------------------------------------------------


def test_a_queued_run_is_canceled_at_once(ledger: RunLedger, database: Database) -> None:
    [run_id] = queued(database)
    run = ledger.request_cancel(run_id)
    assert (run.state, run.reason.code, run.attempt) == ("canceled", "canceled", 0)
    assert run.finished_at is not None
    assert ledger.get(run_id) == run
    assert ledger.claim("w", 1, 30) == []
    with pytest.raises(RunFinished):
        ledger.request_cancel(run_id)


def test_a_running_run_is_asked_to_end_and_remembers_the_first_request(
    ledger: RunLedger, database: Database
) -> None:
    [run_id] = queued(database)
    [claimed] = ledger.claim("w", 1, 30)
    asked = ledger.request_cancel(run_id)
    assert (asked.state, asked.reason, asked.finished_at) == ("running", None, None)
    assert ledger.request_cancel(run_id) == asked
    assert ledger.finish("w", claimed.held, FAILED)
    with pytest.raises(RunFinished):
        ledger.request_cancel(run_id)
    with pytest.raises(NotFound):
        ledger.request_cancel(run_id + 1)


# --- all at once ------------------------------------------------------------------------------------


def test_of_finish_cancel_and_reap_exactly_one_ends_a_run(
    ledger: RunLedger, database: Database
) -> None:
    for _ in range(25):
        [run_id] = queued(database)
        [claimed] = ledger.claim("w", 1, 30)
        expire(database, run_id)

        def cancel(run_id: int = run_id) -> str:
            try:
                return ledger.request_cancel(run_id).state
            except RunFinished:
                return "too late"

        def finish(held: Held = claimed.held) -> bool:
            return ledger.finish("w", held, Verdict("succeeded", None, 0))

        calls = [
            finish,
            lambda: len(ledger.reap("reaper")),
            lambda: len(ledger.reap("reaper")),
            cancel,
        ]
        finished, first, second, canceled = at_once(calls)
        assert int(finished) + first + second == 1
        run = ledger.get(run_id)
        if finished:
            assert (run.state, run.reason) == ("succeeded", None)
        elif canceled == "running":
            assert run.state == "canceled"
        else:
            assert (run.state, run.reason.code) == ("failed", "worker-lost")


def test_a_queued_run_is_either_claimed_or_canceled(ledger: RunLedger, database: Database) -> None:
    for _ in range(25):
        [run_id] = queued(database)
        claimed, canceled = at_once(
            [lambda: ledger.claim("w", 1, 30), lambda r=run_id: ledger.request_cancel(r)]
        )
        run = ledger.get(run_id)
        if claimed:
            assert run.state == "running"
            assert run.cancel_requested_at is not None
        else:
            # SKIP LOCKED may also have passed over the row that was just being canceled.
            assert run.state == "canceled"
            assert canceled.state == "canceled"
