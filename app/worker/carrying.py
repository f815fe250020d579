"""Carries out one claimed run: judges it once more, hands it to the runner, says how it went."""

from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from app.automations.values import Target
from app.errors import InvalidInput
from app.runners.stopping import Stop
from app.runners.values import LogLine, Outcome, RunTask
from app.runs.ledger import ClaimedRun, Verdict
from app.runs.values import Reason, events_document

log = structlog.get_logger()


class Runner(Protocol):
    """What carries a run out, a call at a time per thread."""

    def run(
        self,
        task: RunTask,
        *,
        log: Callable[[Sequence[LogLine]], None],
        stop: Stop,
        on_commit: Callable[[str], None],
    ) -> Outcome:
        """Return how ``task`` went, once nothing of it is left running."""


class Recorder(Protocol):
    """What takes down what a run says of itself."""

    def log(self, lines: Sequence[LogLine]) -> None:
        """Take lines."""

    def commit(self, commit_hash: str) -> None:
        """Take the commit's hash."""


def carry_out(
    claimed: ClaimedRun, runner: Runner, record: Recorder, stop: Stop, timeout: float
) -> Verdict | None:
    """Return how the run went, or None if it is somebody else's by now. Raises nothing."""
    try:
        task = _task(claimed, timeout)
    except InvalidInput as error:
        rules = " ".join(violation.detail for violation in error.violations)
        return _failed("target-invalid", f"The stored target breaks a rule. {rules}")
    except ValueError:
        return _failed("runner-error", "The stored events of this run cannot be read.")
    try:
        outcome = runner.run(task, log=record.log, stop=stop, on_commit=record.commit)
    except Exception as error:
        log.exception("runner-failed", run=claimed.run.id)
        return _failed("runner-error", f"The runner failed ({type(error).__name__}).")
    return _verdict(outcome)


def _task(claimed: ClaimedRun, timeout: float) -> RunTask:
    run = claimed.run
    target = Target(run.target_repository, run.target_ref, run.target_workflow)
    return RunTask(
        run_id=run.id,
        automation_id=run.automation_id,
        trigger_type=run.trigger_type,
        trigger_id=run.trigger_id,
        due_at=run.due_at,
        attempt=run.attempt,
        repository=target.repository,
        ref=target.ref,
        workflow=target.workflow,
        events=events_document(claimed.payloads(), attempt=run.attempt),
        timeout=timeout,
    )


def _verdict(outcome: Outcome) -> Verdict | None:
    if outcome.state == "lost":
        return None
    reason = None
    if outcome.reason is not None:
        reason = Reason(outcome.reason, outcome.detail or "")
    return Verdict(outcome.state, reason, outcome.exit_code, outcome.commit)


def _failed(code: str, detail: str) -> Verdict:
    return Verdict("failed", Reason(code, detail))
