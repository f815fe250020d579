"""Firing: what a claim costs against the bare driver, how late runs are, what an idle scheduler takes.

``python -m benchmarks.firing [--scale 0.01] [--database sqlite …]`` prints one JSON line per figure. Each
is measured on a database made for it; PostgreSQL and MariaDB are left out, with a line that says
so, where no server answers (TEST_POSTGRESQL_URL and TEST_MARIADB_URL name others).
"""

import argparse
import gc
import json
import logging
import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import bindparam, text

from app.clock import SystemClock
from app.db import Database
from app.db.types import Instant
from app.nodes.registry import NodeRegistry
from app.scheduling.claiming import Claiming
from app.scheduling.expressions import EnabledExpressions
from app.scheduling.metrics import SchedulerMetrics
from app.scheduling.occurrences import OccurrenceLedger
from app.scheduling.service import SchedulerService
from app.scheduling.values import Claimed, Due
from benchmarks.firing_database import (
    bare_insert,
    clear,
    database,
    expression,
    fill,
    one_job_each,
    settle,
    unreachable,
    yearly,
)

DUE_AT = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
REPEATS = 3

TARGETS: dict[str, dict[str, float]] = {
    "one-expression": {"sqlite": 2.5, "postgresql": 2.0, "mariadb": 2.5},
    "500-expressions": {"sqlite": 3.5, "postgresql": 3.5, "mariadb": 3.5},
    "one-job-each": {"sqlite": 50, "postgresql": 50, "mariadb": 50},
    "lateness-p99-10000": {"sqlite": 500, "postgresql": 500, "mariadb": 500},
    "lateness-whole-10000": {"sqlite": 500, "postgresql": 500, "mariadb": 500},
    "lateness-p99-10": {"sqlite": 50, "postgresql": 50, "mariadb": 50},
    "reconcile": {"sqlite": 5, "postgresql": 5, "mariadb": 12},
    "idle-cpu-percent": {"sqlite": 1, "postgresql": 1, "mariadb": 1},
    "memory-growth-kib": {"sqlite": 1024, "postgresql": 1024, "mariadb": 1024},
}


class StandingClock(SystemClock):
    """Shows the instant at which everything is due, whenever that is."""

    def now(self) -> datetime:
        return DUE_AT


@dataclass
class Bench:
    """One kind of database: makes databases and prints figures."""

    dialect: str
    scale: float

    def say(self, figure: str, ours: float, baseline: float | None, ratio: float | None) -> None:
        line = {
            "benchmark": "firing",
            "figure": figure,
            "database": self.dialect,
            "ours": round(ours, 4),
            "baseline": None if baseline is None else round(baseline, 4),
            "ratio": None if ratio is None else round(ratio, 2),
            "target": TARGETS[figure][self.dialect],
        }
        print(json.dumps(line), flush=True)

    def scaled(self, count: int, least: int = 10) -> int:
        return max(least, int(count * self.scale))

    # --- figures ------------------------------------------------------------------------------------

    def run(self, only: str | None) -> None:
        parts = {
            "claims": self._all_claims,
            "idle": self._idle,
            "jobs": self._one_job_each,
            "lateness": self._all_lateness,
            "whole": self._end_to_end,
        }
        for name, part in parts.items():
            if only in (None, name):
                part()

    def _all_claims(self) -> None:
        triggers, expressions = self.scaled(100_000), self.scaled(500)
        with database(self.dialect, StandingClock()) as db:
            fill(db, triggers, 1)
            self._claims(db, "one-expression", triggers, 1)
        with database(self.dialect, StandingClock()) as db:
            fill(db, triggers, expressions)
            self._claims(db, "500-expressions", triggers, expressions)
            self._reconcile(db)

    def _all_lateness(self) -> None:
        for figure, count, kinds in (
            ("lateness-p99-10000", self.scaled(10_000), self.scaled(500)),
            ("lateness-p99-10", 10, 10),
        ):
            with database(self.dialect, StandingClock()) as db:
                fill(db, count, kinds)
                self._lateness(db, figure, kinds)

    def _claims(self, db: Database, figure: str, triggers: int, expressions: int) -> None:
        ours, bare = [], []
        for warm in (True, *[False] * REPEATS):
            clear(db)
            settle(db)
            seconds, claimed = timed(lambda: claim_all(db, expressions))
            assert sum(f.runs for f in claimed.fired) == triggers
            clear(db)
            settle(db)
            bare_seconds, _ = timed(lambda: bare_insert(db))
            if not warm:
                ours.append(seconds)
                bare.append(bare_seconds)
        one, other = statistics.median(ours), statistics.median(bare)
        self.say(figure, one, other, one / other)

    def _one_job_each(self) -> None:
        triggers = self.scaled(10_000)
        with database(self.dialect, StandingClock()) as db:
            fill(db, triggers, 1)
            claims = []
            for _ in range(1 + REPEATS):
                clear(db)
                settle(db)
                claims.append(timed(lambda: claim_all(db, 1))[0])
            ours = statistics.median(claims[1:])
            clear(db)
            settle(db)
            # A part of them is enough: what each costs does not depend on how many there are.
            part = max(10, triggers // 20)
            theirs = one_job_each(db, part) * (triggers / part)
        self.say("one-job-each", ours, theirs, theirs / ours)

    def _lateness(self, db: Database, figure: str, expressions: int) -> None:
        """Hand what is due to the claiming thread, and see when the runs can be read."""
        claiming = Claiming(ledger(db), "bench", SchedulerMetrics())
        claiming.start()
        late: list[float] = []
        for warm in (True, *[False] * REPEATS):
            clear(db)
            settle(db)
            began = time.perf_counter()
            claiming.hand_on(dues(expressions))
            while db.read(lambda c: c.scalar(text("SELECT 1 FROM runs LIMIT 1"))) is None:
                time.sleep(0.001)
            if not warm:
                late.append(time.perf_counter() - began)
        claiming.stop(10)
        # All runs of one instant become visible in one commit, so each is as late as the last.
        self.say(figure, max(late) * 1000, None, None)

    def _end_to_end(self) -> None:
        """Let a whole scheduler fire at the next full minute of the machine's clock."""
        if self.scale < 1:
            return
        with database(self.dialect, None) as db:
            fill(db, 10_000, 500)
            service = SchedulerService(db, NodeRegistry(db), SystemClock())
            service.start()
            clock = SystemClock()
            time.sleep(3)
            clear(db)
            due_at = clock.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
            time.sleep((due_at - clock.now()).total_seconds() - 0.5)
            query = text("SELECT 1 FROM runs WHERE due_at = :due_at LIMIT 1").bindparams(
                bindparam("due_at", due_at, type_=Instant())
            )
            while db.read(lambda c: c.scalar(query)) is None:
                time.sleep(0.002)
                assert clock.now() < due_at + timedelta(seconds=30)
            late = (clock.now() - due_at).total_seconds() * 1000
            service.stop()
        self.say("lateness-whole-10000", late, None, None)

    def _reconcile(self, db: Database) -> None:
        reader = EnabledExpressions(db)
        for _ in range(5):
            reader.read()
        times = [timed(reader.read)[0] for _ in range(50)]
        self.say("reconcile", statistics.median(times) * 1000, None, None)

    def _idle(self) -> None:
        """Let a scheduler idle: processor time, and what it holds more than with a hundredth."""
        triggers, seconds = self.scaled(100_000), 10 if self.scale >= 1 else 1
        found = []
        for count in (triggers, max(10, triggers // 100)):
            with database(self.dialect, None) as db:
                fill(db, count, min(count, self.scaled(500)), yearly)
                found.append(idle(db, seconds))
        many, few = found
        self.say("idle-cpu-percent", many.percent, None, None)
        self.say("memory-growth-kib", many.kibibytes - few.kibibytes, None, None)


@dataclass(frozen=True, slots=True)
class Idle:
    """What an idle scheduler took: processor time in percent, Python objects in KiB."""

    percent: float
    kibibytes: float


def idle(db: Database, seconds: float) -> Idle:
    """Measure a scheduler that has nothing to fire."""
    service = SchedulerService(db, NodeRegistry(db), SystemClock())
    service.start()
    time.sleep(3)
    cpu, began = time.process_time(), time.monotonic()
    time.sleep(seconds)
    percent = (time.process_time() - cpu) / (time.monotonic() - began) * 100
    service.stop()
    gc.collect()
    tracemalloc.start()
    service = SchedulerService(db, NodeRegistry(db), SystemClock())
    service.start()
    time.sleep(4)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] / 1024
    tracemalloc.stop()
    service.stop()
    return Idle(percent, held)


# --- what is measured -------------------------------------------------------------------------------


def ledger(db: Database) -> OccurrenceLedger:
    return OccurrenceLedger(db, catch_up=timedelta(seconds=300), max_attempts=1)


def claim_all(db: Database, expressions: int) -> Claimed:
    return ledger(db).claim(dues(expressions), "bench")


def dues(expressions: int) -> list[Due]:
    since = DUE_AT - timedelta(seconds=1)
    return [Due(expression(n), DUE_AT, since) for n in range(expressions)]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the sizes, as 0.01")
    parser.add_argument("--only", help="the one part to run: claims, jobs, lateness, whole, idle")
    parser.add_argument("--database", nargs="*", default=["sqlite", "postgresql", "mariadb"])
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for dialect in arguments.database:
        if why := unreachable(dialect):
            skipped = {"benchmark": "firing", "database": dialect, "skipped": why}
            print(json.dumps(skipped), flush=True)
            continue
        Bench(dialect, arguments.scale).run(arguments.only)


if __name__ == "__main__":
    main()
