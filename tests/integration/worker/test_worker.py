"""The worker with a runner that a test drives, on a real ledger whose answers can be lost."""

import inspect
import queue
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from app.clock import SystemClock
from app.db import Database
from app.errors import DatabaseUnavailable
from app.nodes.registry import NodeRegistry, new_node_id
from app.runners.process import ProcessRunner
from app.runners.values import Outcome
from app.runs.ledger import RunLedger
from app.runs.logs import RunLogs
from app.runs.models import run_idempotency_keys
from app.worker.metrics import WorkerMetrics
from app.worker.presence import Presence
from app.worker.worker import Worker, WorkerOptions
from tests.support.runs import changed, queued, stored_automation
from tests.support.waiting import until
from tests.support.workers import node_rows, run_in, states_of


class DrivenRunner:
    """Ends a run when it is told to, or asked to stop."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.may_end = threading.Event()
        self.outcome = Outcome("succeeded", exit_code=0)

    def run(self, task, *, log, stop, on_commit) -> Outcome:
        self.begun.append((task.run_id, task.attempt))
        on_commit("a" * 40)
        woken = threading.Event()
        with stop.waking(woken):
            until(lambda: self.may_end.is_set() or woken.is_set(), limit=60)
        match stop.reason:
            case None:
                return self.outcome
            case "lost":
                return Outcome("lost", "worker-lost")
            case _:
                return Outcome("canceled", "canceled", "Stopped.")


def test_the_driven_runner_is_called_like_the_real_one() -> None:
    def parameters(runner: type) -> list[tuple[str, object]]:
        return [(p.name, p.kind) for p in inspect.signature(runner.run).parameters.values()]

    assert parameters(DrivenRunner) == parameters(ProcessRunner)


class LosingLedger(RunLedger):
    """Does what it is asked, and then loses the answers of as many claims as it is told to."""

    answers_to_lose = 0

    def claim(self, worker: str, limit: int, lease: float):
        claimed = super().claim(worker, limit, lease)
        if claimed and self.answers_to_lose:
            self.answers_to_lose -= 1
            raise DatabaseUnavailable("the connection broke")
        return claimed


class AtWork:
    """A worker at work on a thread."""

    def __init__(self, database: Database, places: int = 2) -> None:
        self.runner = DrivenRunner()
        self.ledger = LosingLedger(database)
        self.metrics = WorkerMetrics()
        self.orders: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.all_written: bool | None = None
        name = new_node_id("worker")
        clock = SystemClock()
        self.worker = Worker(
            name,
            self.ledger,
            RunLedger(database),
            RunLogs(database),
            self.runner,
            Presence(NodeRegistry(database), name, "worker", "default", clock),
            clock,
            WorkerOptions(places=places, lease=3, drain=30, poll=0.05),
            self.metrics,
        )
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.all_written = self.worker.run(self.orders)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self.orders.put("stop")
            self.orders.put("now")
        self._thread.join(40)
        assert not self._thread.is_alive()

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"bellringer_{name}", labels) or 0.0


@pytest.fixture
def at_work(database: Database) -> Iterator[AtWork]:
    at_work = AtWork(database)
    yield at_work
    at_work.stop()


def test_a_claim_whose_answer_was_lost_is_given_back_and_carried_out_once(
    at_work: AtWork, database: Database
) -> None:
    ids = queued(database, 2)
    at_work.ledger.answers_to_lose = 2
    at_work.runner.may_end.set()
    at_work.start()
    for run_id in ids:
        assert run_in(database, run_id, "succeeded").attempt == 1
    assert sorted(at_work.runner.begun) == [(run_id, 1) for run_id in ids]


def test_what_the_ledger_says_is_held_and_is_not_is_given_back(
    at_work: AtWork, database: Database
) -> None:
    [run_id] = queued(database)
    at_work.start()
    run = run_in(database, run_id, "running")
    # As if a claim of this worker's had been committed by the server long after it was given up.
    [late] = queued(database)
    lease = database.write(database.now).replace(year=2999)
    changed(database, late, state="running", attempt=1, worker=run.worker, lease_until=lease)
    until(lambda: (late, 1) in at_work.runner.begun)
    at_work.runner.may_end.set()
    assert run_in(database, late, "succeeded").attempt == 1


def test_a_run_that_was_taken_is_stopped_and_forgotten(at_work: AtWork, database: Database) -> None:
    [run_id] = queued(database)
    at_work.start()
    until(lambda: at_work.runner.begun)
    changed(database, run_id, worker="another")
    until(lambda: at_work.counted("runs_lost_total") == 1)
    run = RunLedger(database).get(run_id)
    assert (run.state, run.worker) == ("running", "another")
    assert at_work.counted("worker_running") == 0


def test_an_end_that_the_database_refuses_is_written_as_such(
    at_work: AtWork, database: Database
) -> None:
    [run_id] = queued(database)
    at_work.runner.outcome = Outcome("odd", "exit-code", "No such state.", 1)
    at_work.runner.may_end.set()
    at_work.start()
    run = run_in(database, run_id, "failed")
    assert run.reason.code == "runner-error"
    assert "could not be written down" in run.reason.detail


def test_a_worker_that_is_stopped_leaves_nothing_behind(
    at_work: AtWork, database: Database
) -> None:
    running = queued(database, 2)
    at_work.start()
    until(lambda: len(at_work.runner.begun) == 2)
    until(lambda: node_rows(database))
    waiting = queued(database, 1)
    at_work.stop()
    assert at_work.all_written
    assert states_of(database) == (
        dict.fromkeys(running, "canceled") | dict.fromkeys(waiting, "queued")
    )
    assert node_rows(database) == []
    assert at_work.worker.fault() is None


def test_a_row_that_was_taken_away_is_written_again(at_work: AtWork, database: Database) -> None:
    at_work.start()
    until(lambda: node_rows(database))
    database.write(lambda c: c.exec_driver_sql("DELETE FROM nodes"))
    until(lambda: node_rows(database))


def test_old_keys_are_forgotten_without_a_pause_while_there_are_more(
    at_work: AtWork, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.worker.worker.KEYS_AT_A_TIME", 2)
    stored_automation(database)
    for number in range(5):
        at_work.ledger.open_api_run("nightly", idempotency_key=f"k{number}")
    keys = run_idempotency_keys
    long_ago = database.write(database.now) - timedelta(hours=25)
    database.write(lambda c: c.execute(update(keys).values(used_at=long_ago)))
    at_work.runner.may_end.set()
    at_work.start()
    left = select(func.count()).select_from(keys)
    until(lambda: database.read(lambda c: c.scalar(left)) == 0, limit=20)
