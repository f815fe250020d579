"""One claimed run on its way to the runner and back: what is judged, what becomes of an outcome."""

from datetime import UTC, datetime

import pytest

from app.runners.stopping import Stop
from app.runners.values import Outcome
from app.runs.ledger import ClaimedRun, Verdict
from app.runs.values import Reason, Run
from app.worker.carrying import carry_out

AT = datetime(2026, 12, 1, 3, tzinfo=UTC)


def claimed(events_json: str | None = None, **changes: object) -> ClaimedRun:
    values = {
        "id": 7,
        "state": "running",
        "automation_id": "nightly",
        "automation_name": "Nightly",
        "automation_revision": "0" * 64,
        "trigger_type": "schedule",
        "trigger_id": "at-three",
        "target_repository": "acme/shop",
        "target_ref": "main",
        "target_workflow": "release",
        "due_at": AT,
        "queued_at": AT,
        "started_at": AT,
        "finished_at": None,
        "attempt": 2,
        "max_attempts": 3,
        "commit_hash": None,
        "exit_code": None,
        "reason": None,
        "events": 0,
        "worker": "w",
        "rerun_of": None,
    }
    return ClaimedRun(Run(**(values | changes)), events_json)


class FakeRunner:
    """Returns what it is told to, and keeps what it was given."""

    def __init__(self, outcome: Outcome | Exception) -> None:
        self.outcome = outcome
        self.tasks = []

    def run(self, task, *, log, stop, on_commit) -> Outcome:
        self.tasks.append(task)
        on_commit("a" * 40)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Heard:
    """Takes down nothing but the commit."""

    commit_hash = None

    def log(self, lines) -> None: ...

    def commit(self, commit_hash: str) -> None:
        self.commit_hash = commit_hash


def carried(run: ClaimedRun, outcome: Outcome | Exception):
    runner, heard = FakeRunner(outcome), Heard()
    return carry_out(run, runner, heard, Stop(), 60.0), runner.tasks, heard


def test_the_runner_is_told_what_the_run_was_started_with() -> None:
    verdict, [task], heard = carried(claimed('[{"a": 1}]'), Outcome("succeeded", exit_code=0))
    assert verdict == Verdict("succeeded", None, 0)
    assert (task.run_id, task.attempt, task.due_at, task.timeout) == (7, 2, AT, 60.0)
    assert (task.repository, task.ref, task.workflow) == ("acme/shop", "main", "release")
    assert (task.automation_id, task.trigger_type, task.trigger_id) == (
        ("nightly", "schedule", "at-three")
    )
    assert task.events == {
        "data": [{"data": {"a": 1}, "meta": {}}],
        "meta": {"size": 1, "attempt": 2},
        "input": {"a": 1},
    }
    assert heard.commit_hash == "a" * 40


@pytest.mark.parametrize(
    "changes",
    [
        {"target_repository": "../etc"},
        {"target_ref": "--upload-pack=x"},
        {"target_workflow": "../../bin/sh"},
        {"target_workflow": ""},
    ],
)
def test_a_target_that_a_dba_broke_never_reaches_git(changes) -> None:
    verdict, tasks, _ = carried(claimed(**changes), Outcome("succeeded"))
    assert (verdict.state, verdict.reason.code) == ("failed", "target-invalid")
    assert tasks == []


@pytest.mark.parametrize("document", ["{", '{"a": 1}', "null"])
def test_events_that_cannot_be_read_fail_the_run(document: str) -> None:
    verdict, tasks, _ = carried(claimed(document), Outcome("succeeded"))
    assert (verdict.state, verdict.reason.code) == ("failed", "runner-error")
    assert tasks == []


def test_an_outcome_becomes_the_verdict() -> None:
    outcome = Outcome("failed", "exit-code", "It ended with 3.", 3, "b" * 40)
    verdict, _, _ = carried(claimed(), outcome)
    assert verdict == Verdict("failed", Reason("exit-code", "It ended with 3."), 3, "b" * 40)


def test_of_a_run_that_is_somebody_elses_nothing_is_written() -> None:
    assert carried(claimed(), Outcome("lost", "worker-lost"))[0] is None


def test_a_runner_that_raises_fails_the_run_without_its_words() -> None:
    verdict, _, _ = carried(claimed(), RuntimeError("secret"))
    assert (verdict.state, verdict.reason.code) == ("failed", "runner-error")
    assert "secret" not in verdict.reason.detail
