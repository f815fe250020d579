"""What a run has to tell, kept while the database can't take it: on a real ledger that fails at will."""

import threading
import time
from datetime import UTC, datetime

import pytest

from app.clock import SystemClock
from app.db import Database
from app.errors import DatabaseUnavailable
from app.runners.values import LogLine
from app.runs.ledger import RunLedger, Verdict
from app.runs.logs import RunLogs
from app.worker.record import RecordLimits, RunRecord
from tests.support.runs import changed, queued
from tests.support.waiting import until

AT = datetime(2026, 12, 1, 3, tzinfo=UTC)
SUCCEEDED = Verdict("succeeded", None, 0)


def lines(*texts: str) -> list[LogLine]:
    return [LogLine("stdout", text, AT) for text in texts]


class Switch:
    """Stands before a collaborator and raises ``error`` while there is one."""

    def __init__(self, inner: object) -> None:
        self.inner = inner
        self.error: Exception | None = None
        self.after_the_fact = False

    def __getattr__(self, name: str):
        method = getattr(self.inner, name)

        def call(*args, **kwargs):
            if self.error is not None and not self.after_the_fact:
                raise self.error
            answer = method(*args, **kwargs)
            if self.error is not None:
                raise self.error
            return answer

        return call


class Setup:
    """A record of a run that worker ``w`` holds, on a database that can be switched off."""

    def __init__(self, database: Database, limits: RecordLimits | None = None) -> None:
        self.database = database
        [self.run_id] = queued(database)
        self.ledger = Switch(RunLedger(database))
        self.logs = Switch(RunLogs(database))
        self.dropped = 0
        held = RunLedger(database).claim("w", 1, 30)[0].held
        self.record = RunRecord(
            "w",
            held,
            self.ledger,
            self.logs,
            SystemClock(),
            limits=limits,
            on_drop=self._drop,
        )

    def _drop(self, count: int) -> None:
        self.dropped += count

    def away(self, *, after_the_fact: bool = False) -> None:
        for switch in (self.ledger, self.logs):
            switch.error = DatabaseUnavailable("off")
            switch.after_the_fact = after_the_fact

    def back(self) -> None:
        self.ledger.error = self.logs.error = None

    def texts(self) -> list[str]:
        return [line.text for line in RunLogs(self.database).read(self.run_id, limit=100_000)]

    def run(self):
        return RunLedger(self.database).get(self.run_id)


@pytest.fixture
def setup(sqlite_database: Database) -> Setup:
    return Setup(sqlite_database)


def test_commit_lines_and_verdict_reach_the_ledger(setup: Setup) -> None:
    setup.record.commit("a" * 40)
    setup.record.log(lines("a", "b"))
    setup.record.flush()
    assert setup.run().commit_hash == "a" * 40
    assert setup.texts() == ["a", "b"]
    setup.record.log(lines("c"))
    assert setup.record.finish(SUCCEEDED)
    assert setup.texts() == ["a", "b", "c"]
    assert setup.run().state == "succeeded"


@pytest.mark.parametrize("after_the_fact", [False, True], ids=["refused", "answer lost"])
def test_nothing_is_lost_or_doubled_while_the_database_is_away(
    setup: Setup, after_the_fact: bool
) -> None:
    setup.record.log(lines("a"))
    setup.away(after_the_fact=after_the_fact)
    for text in ("b", "c"):
        setup.record.log(lines(text))
        with pytest.raises(DatabaseUnavailable):
            setup.record.flush()
    setup.record.commit("a" * 40)
    with pytest.raises(DatabaseUnavailable):
        setup.record.finish(SUCCEEDED)
    setup.back()
    setup.record.finish(SUCCEEDED)
    assert setup.texts() == ["a", "b", "c"]
    assert (setup.run().state, setup.run().commit_hash) == ("succeeded", "a" * 40)


def test_what_there_is_no_room_for_is_dropped_and_said(sqlite_database: Database) -> None:
    setup = Setup(sqlite_database, RecordLimits(lines=2, patience=30))
    setup.away()
    with pytest.raises(DatabaseUnavailable):
        setup.record.log(lines("a", "b"))
        setup.record.flush()
    began = time.monotonic()
    setup.record.log(lines("c", "d"))
    setup.record.log(lines("e"))
    assert time.monotonic() - began < 10
    assert setup.dropped == 3
    setup.back()
    setup.record.flush()
    setup.record.log(lines("f"))
    setup.record.flush()
    assert setup.texts() == [
        "a",
        "b",
        "Lines missing here, as the database could not take them: 3.",
        "f",
    ]


def test_what_was_dropped_last_is_said_at_the_end(sqlite_database: Database) -> None:
    setup = Setup(sqlite_database, RecordLimits(characters=1, patience=0))
    setup.record.log(lines("ab"))
    setup.record.log(lines("c"))
    setup.record.finish(SUCCEEDED)
    assert setup.texts() == ["ab", "Lines missing here, as the database could not take them: 1."]


def test_a_run_that_is_faster_than_the_database_waits_for_room(sqlite_database: Database) -> None:
    setup = Setup(sqlite_database, RecordLimits(lines=1, patience=30))
    setup.record.log(lines("a"))
    writer = threading.Thread(target=setup.record.log, args=(lines("b"),))
    writer.start()
    setup.record.flush()
    writer.join(10)
    assert not writer.is_alive()
    setup.record.flush()
    assert setup.texts() == ["a", "b"]
    assert setup.dropped == 0


def test_a_run_that_is_lost_holds_nobody_up_and_writes_nothing(
    sqlite_database: Database,
) -> None:
    setup = Setup(sqlite_database, RecordLimits(lines=1, patience=30))
    setup.record.log(lines("a"))
    changed(sqlite_database, setup.run_id, worker="v")
    writer = threading.Thread(target=setup.record.log, args=(lines("b"),))
    writer.start()
    setup.record.flush()
    until(lambda: setup.record.lost)
    writer.join(10)
    assert not writer.is_alive()
    assert not setup.record.finish(SUCCEEDED)
    assert setup.texts() == []
    assert setup.run().state == "running"


def test_lines_that_the_database_refuses_for_good_do_not_hold_up_the_rest(setup: Setup) -> None:
    setup.record.log(lines("poison"))
    setup.logs.error = ZeroDivisionError()
    for _ in range(9):
        with pytest.raises(DatabaseUnavailable, match="refused lines"):
            setup.record.flush()
    setup.record.flush()
    setup.logs.error = None
    setup.record.log(lines("fine"))
    setup.record.finish(SUCCEEDED)
    assert setup.texts() == [
        "Lines missing here, as the database could not take them: 1.",
        "fine",
    ]
    assert setup.dropped == 1
