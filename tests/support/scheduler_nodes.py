"""Real scheduler processes on a clock that runs fast."""

import itertools
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.scheduler_node import FastClock
from tests.support.scheduling import World

ROOT = Path(__file__).parents[2]
START = datetime(2026, 12, 1, 11, 59, 30, tzinfo=UTC)
SPEED = 120.0
"""A minute passes in half a second."""


@dataclass
class Nodes:
    """Scheduler processes of one database, and the world that they share."""

    url: str
    world: World
    clock: FastClock
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(
        self, count: int = 1, *, url: str | None = None, catch_up: float = 300
    ) -> list[subprocess.Popen[bytes]]:
        command = [
            *(sys.executable, "-m", "tests.support.scheduler_node", url or self.url),
            *(str(self.clock.epoch), START.isoformat(), str(SPEED), str(catch_up)),
        ]
        started = [
            subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
            for _ in range(count)
        ]
        self.processes += started
        return started

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill_one(self) -> None:
        living = [p for p in self.processes if p.poll() is None]
        victim = random.choice(living)
        victim.kill()
        victim.wait()


def check_that_nothing_is_lost(world: World, expression_minutes: int = 1) -> int:
    """Check each trigger's ledger against the occurrences; return how many occurrences there are.

    Occurrences follow on one another without a hole, each is there once (it is the key), and each one
    that fired started one run of each trigger that was armed.
    """
    occurrences = world.occurrences()
    assert occurrences
    instants = [o.due_at for o in occurrences]
    step = timedelta(minutes=expression_minutes)
    holes = [(a, b) for a, b in itertools.pairwise(instants) if b - a != step]
    assert holes == []
    by_instant: dict[datetime, list[str]] = {}
    for run in world.runs():
        if run.state == "queued":
            by_instant.setdefault(run.due_at, []).append(run.automation_id)
    for occurrence in occurrences:
        started = by_instant.pop(occurrence.due_at, [])
        assert len(started) == len(set(started)) == occurrence.runs, occurrence
        assert occurrence.state == "fired" or started == []
    assert by_instant == {}
    return len(occurrences)
