"""Runs are taken from workers that fell silent, and what was claimed unawares is given back."""

import pytest

from app.db import Database
from app.runs.ledger import Held, RunLedger, Verdict
from tests.support.runs import expire, queued, state_of


@pytest.fixture
def ledger(database: Database) -> RunLedger:
    return RunLedger(database)


def test_a_run_whose_lease_has_ended_is_lost_and_its_worker_writes_nothing_more(
    ledger: RunLedger, database: Database
) -> None:
    gone, alive = queued(database, 2)
    held = {c.run.id: c.held for c in ledger.claim("w-1", 2, 30)}
    assert ledger.reap("reaper") == []
    expire(database, gone)
    [reaped] = ledger.reap("reaper")
    assert (reaped.held, reaped.worker, reaped.state) == (held[gone], "w-1", "failed")
    run = ledger.get(gone)
    assert (run.state, run.reason.code) == ("failed", "worker-lost")
    assert "w-1" in run.reason.detail
    assert state_of(database, alive) == "running"
    assert not ledger.finish("w-1", held[gone], Verdict("succeeded", None, 0))
    assert not ledger.record_commit("w-1", held[gone], "a" * 40)
    assert ledger.renew("w-1", [held[gone]], 30).lost == {held[gone]}
    assert ledger.get(gone) == run


def test_a_lost_run_is_queued_again_while_attempts_are_left(
    ledger: RunLedger, database: Database
) -> None:
    [run_id] = queued(database, max_attempts=2)
    [first] = ledger.claim("w", 1, 30)
    ledger.record_commit("w", first.held, "a" * 40)
    expire(database, run_id)
    assert [r.state for r in ledger.reap("reaper")] == ["queued"]
    run = ledger.get(run_id)
    assert (run.state, run.worker, run.commit_hash, run.reason) == ("queued", None, None, None)
    [second] = ledger.claim("w", 1, 30)
    assert second.held == Held(run_id, 2)
    assert not ledger.finish("w", first.held, Verdict("succeeded"))
    expire(database, run_id)
    assert [r.state for r in ledger.reap("reaper")] == ["failed"]


def test_a_lost_run_that_was_to_be_canceled_is_not_tried_again(
    ledger: RunLedger, database: Database
) -> None:
    [run_id] = queued(database, max_attempts=2)
    ledger.claim("w", 1, 30)
    ledger.request_cancel(run_id)
    expire(database, run_id)
    assert [r.state for r in ledger.reap("reaper")] == ["canceled"]
    assert ledger.get(run_id).reason.code == "canceled"


def test_a_worker_does_not_reap_what_it_holds_itself(ledger: RunLedger, database: Database) -> None:
    """Its renewals come late on a machine that is short of time; it lives all the same."""
    [run_id] = queued(database)
    [claimed] = ledger.claim("w", 1, 30)
    expire(database, run_id)
    assert ledger.reap("w") == []
    assert ledger.renew("w", [claimed.held], 30).lost == frozenset()
    assert ledger.reap("another") == []


def test_reaping_is_bounded(ledger: RunLedger, database: Database) -> None:
    ids = queued(database, 5)
    ledger.claim("w", 5, 30)
    for run_id in ids:
        expire(database, run_id)
    assert [r.held.run_id for r in ledger.reap("reaper", 3)] == ids[:3]
    assert [r.held.run_id for r in ledger.reap("reaper", 3)] == ids[3:]


def test_what_was_claimed_unawares_is_given_back_uncounted(
    ledger: RunLedger, database: Database
) -> None:
    kept, unaware, others = queued(database, 3)
    held = ledger.claim("w", 1, 30)[0].held
    ledger.claim("w", 1, 30)
    ledger.claim("v", 1, 30)
    assert ledger.give_back("w", [held]) == 1
    run = ledger.get(unaware)
    assert (run.state, run.attempt, run.worker) == ("queued", 0, None)
    assert [state_of(database, r) for r in (kept, others)] == ["running", "running"]
    assert ledger.give_back("w", []) == 1
