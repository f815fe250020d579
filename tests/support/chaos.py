"""Schedulers and workers at work while somebody kills, stops and continues them at random.

What each workflow did, it wrote down itself; in the end that is held against the ledger.
"""

import itertools
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from app.errors import DatabaseUnavailable
from app.runs.ledger import RunLedger
from tests.support.scheduling import World

Process = subprocess.Popen[bytes]
_OVER = ("succeeded", "failed", "canceled", "missed")


def workflow(diary: Path, seconds: float = 0.3) -> str:
    """A script that writes down when it begins and when it ends."""
    line = '"$BELLRINGER_RUN_ID $BELLRINGER_ATTEMPT"'
    return f"echo begun {line} >> {diary}\nsleep {seconds}\necho ended {line} >> {diary}\n"


@dataclass
class Chaos:
    """Keeps as many processes of each role as there are in ``roles``, and torments them.

    ``roles`` gives for each what starts one of it. ``seed`` decides what is done to whom.
    """

    roles: Sequence[Callable[[], Process]]
    seed: int
    longest_stop: float = 7.0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._living = [start() for start in self.roles]
        self._stopped: dict[int, float] = {}

    def torment(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Kill, stop and continue for so long; ``meanwhile`` is called in between."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            place = self._random.randrange(len(self.roles))
            if self._random.random() < 0.4:
                self._kill(place)
            elif place not in self._stopped:
                self._living[place].send_signal(signal.SIGSTOP)
                pause = self._random.uniform(0.1, self.longest_stop)
                self._stopped[place] = time.monotonic() + pause
                self.counts["stopped"] += 1
            pause_until = time.monotonic() + self._random.uniform(0.1, 1.5)
            while time.monotonic() < pause_until:
                meanwhile()
                self._continue(time.monotonic())
                time.sleep(0.05)
        self._continue(float("inf"))

    def end(self, role: Callable[[], Process]) -> None:
        """Have all of one role end in order."""
        ended = [p for start, p in zip(self.roles, self._living, strict=True) if start is role]
        for process in ended:
            process.terminate()
        for process in ended:
            process.wait(60)

    def fail(self) -> None:
        """End all as the test is over anyhow."""
        for process in self._living:
            process.kill()
            process.wait()

    def _kill(self, place: int) -> None:
        self._stopped.pop(place, None)
        self._living[place].kill()
        self._living[place].wait()
        self._living[place] = self.roles[place]()
        self.counts["killed"] += 1

    def _continue(self, now: float) -> None:
        for place in [p for p, until_ in self._stopped.items() if until_ <= now]:
            del self._stopped[place]
            self._living[place].send_signal(signal.SIGCONT)


def check(world: World, diary: Path, triggers: int) -> Counter[str]:
    """Hold the ledger, in which every run has ended, against the diary; return what was counted."""
    runs = world.runs()
    counts = Counter(f"{run.state} {run.reason_code or ''}".strip() for run in runs)
    counts["runs"] = len(runs)
    counts.update(_occurrences(world, runs, triggers))
    counts.update(_executions(runs, diary))
    return counts


def all_ended(world: World) -> bool:
    """Tell whether no run is queued or running."""
    return all(run.state in _OVER for run in world.runs())


def _occurrences(world: World, runs: Sequence[Any], triggers: int) -> Counter[str]:
    """Each occurrence follows on the one before, and started one run of each trigger, or none."""
    counts: Counter[str] = Counter()
    started: dict[datetime, list[tuple[str, str]]] = {}
    for run in runs:
        if run.trigger_type == "schedule" and run.state != "missed":
            started.setdefault(run.due_at, []).append((run.automation_id, run.trigger_id))
    found = world.occurrences()
    for before, after in itertools.pairwise(found):
        assert after.due_at - before.due_at == timedelta(minutes=1), (before, after)
    for occurrence in found:
        counts[f"occurrences {occurrence.state}"] += 1
        of_this = started.pop(occurrence.due_at, [])
        wanted = triggers if occurrence.state == "fired" else 0
        assert len(of_this) == len(set(of_this)) == occurrence.runs == wanted, occurrence
    assert started == {}
    return counts


def _executions(runs: Sequence[Any], diary: Path) -> Counter[str]:
    """Nothing was begun twice at one attempt, and what succeeded ran from beginning to end."""
    words = [line.split() for line in diary.read_text().splitlines()] if diary.exists() else []
    done = Counter((what, int(run), int(attempt)) for what, run, attempt in words)
    assert max(done.values(), default=0) <= 1, [k for k, v in done.items() if v > 1]
    for run in runs:
        if run.state == "succeeded":
            assert ("ended", run.id, run.attempt) in done, run
        else:
            assert run.reason_code in ("worker-lost", "missed"), run
    return Counter(what for what, _, _ in done)


def api_runs(world: World, automation_id: str) -> Callable[[], None]:
    """Return what triggers ``automation_id`` by its API trigger, twice a second at most."""
    ledger = RunLedger(world.database, max_attempts=2)
    last = [0.0]

    def trigger() -> None:
        if time.monotonic() - last[0] >= 0.5:
            last[0] = time.monotonic()
            # On SQLite a writer that was stopped keeps the others out, and they are told so.
            with suppress(DatabaseUnavailable):
                ledger.open_api_run(automation_id)

    return trigger
