"""Real workers on real databases and a real repository: runs, their end, and workers' end."""

import re
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db import Database, DatabaseLimits
from app.errors import DatabaseUnavailable
from app.runs.ledger import RunLedger
from app.runs.logs import RunLogs
from tests.support.runs import changed, lease_of, queued, stored_automation
from tests.support.waiting import processes_with, until
from tests.support.workers import Fleet, WorkerProcess, fleet, node_rows, run_in, states_of

TWO = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path / "workers", tmp_path / "git") as found:
        yield found


def mark(tmp_path: Path) -> Path:
    return tmp_path / "mark"


def stop_between_writes(worker: WorkerProcess, database_url: str) -> None:
    """Stop the worker, but not inside a transaction: on SQLite it would hold everybody's lock.

    A try that failed ends well before a lease does.
    """
    impatient = Database(database_url, limits=DatabaseLimits(write=0.2, lock=0.2))

    def stopped() -> bool:
        worker.signal(signal.SIGSTOP)
        try:
            impatient.write(lambda c: c.exec_driver_sql("DELETE FROM nodes WHERE id = 'nobody'"))
        except DatabaseUnavailable:
            worker.signal(signal.SIGCONT)
            return False
        return True

    until(stopped)
    impatient.close()


def waiting_for(path: Path) -> str:
    """A script that says that it runs and goes on until ``path`` is there."""
    return f"echo begun\nwhile [ ! -e {path} ]; do sleep 0.05; done\necho ended\n"


def test_a_run_is_carried_out_and_written_down(
    database: Database, database_url: str, workers: Fleet
) -> None:
    stored_automation(database)
    commit = workers.workflow(
        'cat "$BELLRINGER_EVENTS"; echo; echo "attempt $BELLRINGER_ATTEMPT" >&2'
    )
    workers.start(database_url)
    run_id = RunLedger(database).open_api_run("nightly", input={"a": [1]}).run.id
    run = run_in(database, run_id, "succeeded", "failed")
    assert (run.state, run.reason, run.exit_code) == ("succeeded", None, 0)
    assert (run.commit_hash, run.attempt) == (commit, 1)
    assert run.queued_at <= run.started_at <= run.finished_at
    said = {(line.stream, line.text) for line in RunLogs(database).read(run_id)}
    assert ("stderr", "attempt 1") in said
    events = (
        '{"data": [{"data": {"a": [1]}, "meta": {}}], "meta": {"size": 1, "attempt": 1}, '
        '"input": {"a": [1]}}'
    )
    assert ("stdout", events) in said
    [(pid, problem)] = node_rows(database)
    assert (pid, problem) == (workers.workers[0].process.pid, None)


@SQLITE
def test_what_fails_says_why(database: Database, database_url: str, workers: Fleet) -> None:
    workers.workflow("exit 3")
    ids = queued(database, 4)
    changed(database, ids[1], target_workflow="nowhere")
    changed(database, ids[2], target_ref="nowhere")
    changed(database, ids[3], target_repository="no slash")
    workers.start(database_url)
    reasons = [run_in(database, r, "failed").reason.code for r in ids]
    assert reasons == ["exit-code", "workflow-not-found", "ref-not-found", "target-invalid"]


@TWO
def test_a_killed_worker_loses_its_run_and_nothing_of_it_goes_on(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    workers.workflow(waiting_for(mark(tmp_path)))
    [run_id] = queued(database)
    first = workers.start(database_url, lease=2)
    run = run_in(database, run_id, "running")
    until(lambda: RunLogs(database).read(run_id))
    first.kill()
    second = workers.start(database_url, lease=2)
    lost = run_in(database, run_id, "failed")
    assert lost.reason.code == "worker-lost"
    assert lost.worker == run.worker
    assert "run-reaped" in second.log()
    until(lambda: not processes_with(str(workers.directory / "worker-0")))


@TWO
def test_a_lost_run_is_tried_again_while_attempts_are_left(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    workers.workflow(waiting_for(mark(tmp_path)))
    [run_id] = queued(database, max_attempts=2)
    first = workers.start(database_url, lease=2)
    until(lambda: RunLogs(database).read(run_id))
    first.kill()
    workers.start(database_url, lease=2)
    until(lambda: RunLogs(database).read(run_id, attempt=2))
    mark(tmp_path).touch()
    run = run_in(database, run_id, "succeeded", "failed")
    assert (run.state, run.attempt) == ("succeeded", 2)
    numbers = [line.number for line in RunLogs(database).read(run_id)]
    assert numbers == list(range(1, len(numbers) + 1))


@TWO
def test_a_worker_that_stood_still_writes_nothing_over_the_verdict(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    workers.workflow(waiting_for(mark(tmp_path)))
    [run_id] = queued(database)
    stopped = workers.start(database_url, lease=3)
    until(lambda: RunLogs(database).read(run_id))
    stop_between_writes(stopped, database_url)
    workers.start(database_url, lease=2)
    lost = run_in(database, run_id, "failed")
    assert lost.reason.code == "worker-lost"
    lines = RunLogs(database).read(run_id)
    mark(tmp_path).touch()
    stopped.signal(signal.SIGCONT)
    until(lambda: "run-lost" in stopped.log())
    assert RunLedger(database).get(run_id) == lost
    assert RunLogs(database).read(run_id) == lines
    # It is well again, and works.
    workers.workflow("exit 0")
    workers.workers[1].kill()
    [another] = queued(database)
    run_in(database, another, "succeeded")


@TWO
def test_sigterm_lets_runs_end_and_takes_no_more(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    workers.workflow(waiting_for(mark(tmp_path)))
    [run_id] = queued(database)
    worker = workers.start(database_url)
    until(lambda: RunLogs(database).read(run_id))
    worker.signal(signal.SIGTERM)
    until(lambda: "worker-stopping" in worker.log())
    [later] = queued(database)
    mark(tmp_path).touch()
    assert worker.ended() == 0
    assert states_of(database) == {run_id: "succeeded", later: "queued"}
    assert node_rows(database) == []


@SQLITE
@pytest.mark.parametrize("settings", [{"drain": 0.5}, {"drain": 600}], ids=["drained", "hurried"])
def test_what_does_not_end_in_time_is_canceled_with_a_reason(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path, settings
) -> None:
    workers.workflow(waiting_for(mark(tmp_path)))
    [run_id] = queued(database)
    worker = workers.start(database_url, **settings)
    until(lambda: RunLogs(database).read(run_id))
    worker.signal(signal.SIGTERM)
    if settings["drain"] == 600:
        until(lambda: "worker-stopping" in worker.log())
        worker.signal(signal.SIGINT)
    assert worker.ended() == 0
    run = RunLedger(database).get(run_id)
    assert (run.state, run.reason.code) == ("canceled", "canceled")
    assert "shut down" in run.reason.detail
    assert node_rows(database) == []


@TWO
def test_a_cancel_is_noticed_within_two_seconds(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    workers.workflow(waiting_for(mark(tmp_path)))
    [run_id] = queued(database)
    worker = workers.start(database_url)
    until(lambda: RunLogs(database).read(run_id))
    RunLedger(database).request_cancel(run_id)
    asked = time.monotonic()
    until(lambda: "run-stopped" in worker.log(), limit=2)
    run = run_in(database, run_id, "canceled")
    assert time.monotonic() - asked < 10
    assert run.reason.code == "canceled"


def test_two_workers_carry_each_run_out_once(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    done.touch()
    workers.workflow(f'echo "$BELLRINGER_RUN_ID" >> {done}')
    ids = queued(database, 100 if database.dialect == "sqlite" else 40)
    for _ in range(2):
        workers.start(database_url, worker_concurrency=4)
    until(lambda: set(states_of(database).values()) == {"succeeded"}, limit=150)
    assert sorted(int(line) for line in done.read_text().split()) == ids


@SQLITE
def test_a_worker_takes_no_more_than_it_has_places_for(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    workers.workflow(waiting_for(mark(tmp_path)))
    ids = queued(database, 4)
    workers.start(database_url, worker_concurrency=2)
    until(lambda: all(RunLogs(database).read(r) for r in ids[:2]))
    assert [states_of(database)[r] for r in ids] == ["running", "running", "queued", "queued"]
    mark(tmp_path).touch()
    until(lambda: set(states_of(database).values()) == {"succeeded"})


@TWO
def test_a_long_run_keeps_its_lease(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    workers.workflow(waiting_for(mark(tmp_path)))
    [run_id] = queued(database)
    for _ in range(2):
        workers.start(database_url, lease=2)
    run_in(database, run_id, "running")
    first = lease_of(database, run_id)
    until(lambda: (lease_of(database, run_id) - first).total_seconds() > 6)
    mark(tmp_path).touch()
    assert run_in(database, run_id, "succeeded", "failed").state == "succeeded"


@SQLITE
def test_a_worker_shows_its_health_and_what_it_counts(
    database: Database, database_url: str, workers: Fleet
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    workers.workflow("exit 0")
    workers.start(database_url, metrics_bind=f"127.0.0.1:{port}")

    def page(path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    assert until(lambda: page("/readyz")) == until(lambda: page("/healthz")) == "ok\n"
    [run_id] = queued(database)
    run_in(database, run_id, "succeeded")
    counted = 'bellringer_runs_ended_total{state="succeeded"} 1.0'
    until(lambda: counted in page("/metrics"))
    figures = page("/metrics")
    for name in (
        *("runs_ended_total", "run_duration_seconds_count", "queue_depth", "queue_age_seconds"),
        *("database_retries_total", "log_lines_dropped_total", "worker_places", "worker_running"),
    ):
        assert re.search(rf"^bellringer_{name}[ {{]", figures, re.MULTILINE), name
    assert "nightly" not in figures
