"""Logs of runs: who may write them, how lines are numbered, how they are read."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from app.db import Database
from app.runs.ledger import ClaimedRun, RunLedger, Verdict
from app.runs.logs import NewLine, RunLogs
from app.runs.models import run_log_lines
from tests.support.runs import changed, queued

AT = datetime(2026, 12, 1, 3, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def logs(database: Database) -> RunLogs:
    return RunLogs(database)


@pytest.fixture
def claimed(database: Database) -> ClaimedRun:
    queued(database, max_attempts=2)
    return RunLedger(database).claim("w", 1, 30)[0]


def lines(*texts: str, stream: str = "stdout") -> list[NewLine]:
    return [NewLine(stream, AT, text) for text in texts]


def test_lines_are_numbered_from_one_and_read_back(logs: RunLogs, claimed: ClaimedRun) -> None:
    run_id = claimed.run.id
    assert logs.append(run_id, "w", 1, lines("a", "é 🔔")) == 2
    assert logs.append(run_id, "w", 1, lines("", stream="system"), after=2) == 3
    assert [(line.number, line.stream, line.text) for line in logs.read(run_id)] == [
        (1, "stdout", "a"),
        (2, "stdout", "é 🔔"),
        (3, "system", ""),
    ]
    assert logs.read(run_id)[0].logged_at == AT
    assert [line.number for line in logs.read(run_id, after=1, limit=1)] == [2]
    assert logs.read(run_id + 1) == []


def test_numbers_go_on_over_attempts(
    logs: RunLogs, claimed: ClaimedRun, database: Database
) -> None:
    run_id, ledger = claimed.run.id, RunLedger(database)
    logs.append(run_id, "w", 1, lines("a", "b"))
    changed(database, run_id, lease_until=AT - timedelta(days=9999))
    assert [r.state for r in ledger.reap("reaper")] == ["queued"]
    ledger.claim("v", 1, 30)
    assert logs.append(run_id, "v", 2, lines("c")) == 3
    assert [(line.number, line.attempt) for line in logs.read(run_id)] == [(1, 1), (2, 1), (3, 2)]
    assert [line.text for line in logs.read(run_id, attempt=2)] == ["c"]


def test_who_does_not_hold_the_run_writes_nothing(
    logs: RunLogs, claimed: ClaimedRun, database: Database
) -> None:
    run_id = claimed.run.id
    assert logs.append(run_id, "v", 1, lines("no")) is None
    assert logs.append(run_id, "w", 2, lines("no")) is None
    assert logs.append(run_id + 1, "w", 1, lines("no")) is None
    RunLedger(database).finish("w", claimed.held, Verdict("succeeded", None, 0))
    assert logs.append(run_id, "w", 1, lines("no")) is None
    assert logs.read(run_id) == []


def test_a_batch_whose_answer_was_lost_is_not_written_twice(
    logs: RunLogs, claimed: ClaimedRun
) -> None:
    run_id = claimed.run.id
    logs.append(run_id, "w", 1, lines("a", "b"))
    assert logs.append(run_id, "w", 1, lines("a", "b", "c")) == 3
    assert logs.append(run_id, "w", 1, lines("c", "d"), after=2) == 4
    assert [line.text for line in logs.read(run_id)] == ["a", "b", "c", "d"]


def test_text_that_no_database_keeps_is_mended(logs: RunLogs, claimed: ClaimedRun) -> None:
    logs.append(claimed.run.id, "w", 1, lines("nul \0 \ud800", "x" * 30_000))
    first, second = logs.read(claimed.run.id)
    assert first.text == "nul  ?"
    assert len(second.text) == 20_000


def test_lines_are_never_written_beside_a_reaper(logs: RunLogs, database: Database) -> None:
    ledger = RunLedger(database)
    for _ in range(20):
        [run_id] = queued(database)
        ledger.claim("w", 1, 30)
        changed(database, run_id, lease_until=AT - timedelta(days=9999))
        start = threading.Barrier(2)

        def write(run_id: int = run_id, start: threading.Barrier = start) -> int | None:
            start.wait(10)
            return logs.append(run_id, "w", 1, lines("a"))

        def reap(start: threading.Barrier = start) -> int:
            start.wait(10)
            return len(ledger.reap("reaper"))

        with ThreadPoolExecutor(2) as pool:
            written, reaped = pool.submit(write), pool.submit(reap)
            assert reaped.result(30) == 1
            assert [line.number for line in logs.read(run_id)] == (
                [1] if written.result(30) else []
            )


def test_lines_go_with_their_run(logs: RunLogs, claimed: ClaimedRun, database: Database) -> None:
    database.write(
        lambda c: c.execute(
            insert(run_log_lines).values(
                run_id=claimed.run.id,
                number=1,
                attempt=1,
                stream="stdout",
                logged_at=AT,
                text="x",
            )
        )
    )
    database.write(lambda c: c.exec_driver_sql("DELETE FROM runs"))
    assert logs.read(claimed.run.id) == []
