"""A process that hosts a runner and carries one run out; it prints the outcome as JSON.

Run as ``python -m tests.support.runner_host DATA_DIR URL_TEMPLATE LEASE GRACE``.
"""

import dataclasses
import json
import sys
from pathlib import Path

from app.clock import SystemClock
from app.runners.child import Timing
from app.runners.git import GitAccess
from app.runners.process import ProcessRunner, RunnerOptions
from app.runners.stopping import Stop
from app.runners.values import RunTask


def task(**changes: object) -> RunTask:
    """Return a task like most others."""
    values = {
        "run_id": 4711,
        "automation_id": "nightly",
        "trigger_type": "api",
        "trigger_id": "manual",
        "due_at": None,
        "attempt": 1,
        "repository": "acme/shop",
        "ref": "main",
        "workflow": "w",
        "events": {"data": [], "meta": {}, "input": None},
        "timeout": 60.0,
    }
    return RunTask(**(values | changes))  # type: ignore[arg-type]


def main() -> None:
    """Carry the run out."""
    data_dir, template, lease, grace = sys.argv[1:]
    options = RunnerOptions(
        Path(data_dir),
        GitAccess(template),
        SystemClock(),
        timing=Timing(float(lease), float(grace), 0.2),
    )
    outcome = ProcessRunner(options).run(
        task(), log=lambda lines: None, stop=Stop(), on_commit=lambda commit: None
    )
    sys.stdout.write(json.dumps(dataclasses.asdict(outcome)))


if __name__ == "__main__":
    main()
