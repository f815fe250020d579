"""Firing: what a claim costs against the bare driver, how late runs are, what an idle scheduler takes.

``python -m benchmarks.firing [--scale 0.01] [--database sqlite …]`` prints one JSON line per figure. Each
is measured on a database made for it; PostgreSQL and MariaDB are left out, with a line that says
so, where no server answers (TEST_POSTGRESQL_URL and TEST_MARIADB_URL name others).
"""

import argparse
import gc
import json
import logging
import os
import secrets
import statistics
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from app.clock import SystemClock
from app.db import Database, DatabaseLimits
from app.db.connecting import normalize_url
from app.db.migrating import migrate
from app.nodes.registry import NodeRegistry
from app.scheduling.claiming import Claiming
from app.scheduling.expressions import EnabledExpressions
from app.scheduling.metrics import SchedulerMetrics
from app.scheduling.occurrences import OccurrenceLedger
from app.scheduling.service import SchedulerService
from app.scheduling.values import Claimed, Due

SERVERS = {
    "postgresql": os.environ.get("TEST_POSTGRESQL_URL", "postgresql://root@127.0.0.1/postgres"),
    "mariadb": os.environ.get("TEST_MARIADB_URL", "mariadb://root@127.0.0.1/test"),
}
DUE_AT = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
ARMED_AT = "2026-11-01 00:00:00.000000"
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

    def run(self) -> None:
        triggers, expressions = self.scaled(100_000), self.scaled(500)
        with database(self.dialect, StandingClock()) as db:
            fill(db, triggers, 1)
            self._claims(db, "one-expression", triggers, 1)
        with database(self.dialect, StandingClock()) as db:
            fill(db, triggers, expressions)
            self._claims(db, "500-expressions", triggers, expressions)
            self._reconcile(db)
        with database(self.dialect, None) as db:
            fill(db, triggers, expressions, yearly)
            self._idle(db, triggers)
        with database(self.dialect, StandingClock()) as db:
            fill(db, self.scaled(10_000), 1)
            self._one_job_each(db, self.scaled(10_000))
        for figure, count, kinds in (
            ("lateness-p99-10000", self.scaled(10_000), expressions),
            ("lateness-p99-10", 10, 10),
        ):
            with database(self.dialect, StandingClock()) as db:
                fill(db, count, kinds)
                self._lateness(db, figure, kinds)
        if self.scale >= 1:
            with database(self.dialect, None) as db:
                fill(db, 10_000, expressions)
                self._end_to_end(db)

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

    def _one_job_each(self, db: Database, triggers: int) -> None:
        clear(db)
        settle(db)
        ours, _ = timed(lambda: claim_all(db, 1))
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

    def _end_to_end(self, db: Database) -> None:
        """Let a whole scheduler fire at the next full minute of the machine's clock."""
        service = SchedulerService(db, NodeRegistry(db), SystemClock())
        service.start()
        clock = SystemClock()
        time.sleep(3)
        due_at = clock.now().replace(second=0, microsecond=0) + timedelta(minutes=1)
        time.sleep((due_at - clock.now()).total_seconds() - 0.5)
        query = text("SELECT 1 FROM runs LIMIT 1")
        while db.read(lambda c: c.scalar(query)) is None:
            time.sleep(0.002)
            assert clock.now() < due_at + timedelta(seconds=30)
        self.say("lateness-whole-10000", (clock.now() - due_at).total_seconds() * 1000, None, None)
        service.stop()

    def _reconcile(self, db: Database) -> None:
        reader = EnabledExpressions(db)
        for _ in range(5):
            reader.read()
        times = [timed(reader.read)[0] for _ in range(30)]
        self.say("reconcile", statistics.median(times) * 1000, None, None)

    def _idle(self, db: Database, triggers: int) -> None:
        """Let a scheduler idle: processor time, and what it holds more than with a hundredth."""
        other = Database(db.url)
        try:
            many = idle(other, 10 if self.scale >= 1 else 1)
            keep = max(10, triggers // 100)
            db.write(
                lambda c: c.execute(
                    text("DELETE FROM automations WHERE id >= :id"), {"id": f"a{keep:06d}"}
                )
            )
            settle(db)
            few = idle(other, 1)
        finally:
            other.close()
        self.say("idle-cpu-percent", many.percent, None, None)
        self.say("memory-growth-kib", many.kibibytes, few.kibibytes, None)


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


def expression(number: int) -> str:
    """Return one of 1,440 expressions that are due at every minute."""
    return f"*,{number % 60} *,{number // 60} * * *"


def yearly(number: int) -> str:
    """Return one of many expressions that are due on the first of January only."""
    return f"{number % 60} {number // 60} 1 1 *"


def dues(expressions: int) -> list[Due]:
    since = DUE_AT - timedelta(seconds=1)
    return [Due(expression(n), DUE_AT, since) for n in range(expressions)]


def bare_insert(db: Database) -> None:
    """Insert as many rows as a claim does, with the driver alone."""
    connection = db.writer.raw_connection()
    try:
        cursor = connection.cursor()
        if db.dialect == "sqlite":
            cursor.execute("BEGIN IMMEDIATE")
        cursor.execute(
            "INSERT INTO runs (state, automation_id, automation_name, automation_revision,"
            " trigger_type, trigger_id, target_repository, target_ref, target_workflow, due_at,"
            " queued_at, attempt, max_attempts, events)"
            " SELECT 'queued', id, name, revision, 'schedule', 'nightly', target_repository,"
            f" target_ref, target_workflow, '{ARMED_AT}', '{ARMED_AT}', 0, 1, 0 FROM automations"
        )
        cursor.execute("COMMIT") if db.dialect == "sqlite" else connection.commit()
    finally:
        connection.close()


def one_job_each(db: Database, jobs: int) -> float:
    """Return how long it takes until that many APScheduler jobs have each written their run."""
    left = threading.Semaphore(0)

    def job(number: int) -> None:
        def work(connection: Connection) -> None:
            connection.execute(
                text(
                    "INSERT INTO runs (state, automation_id, automation_name, automation_revision,"
                    " trigger_type, trigger_id, target_repository, target_ref, target_workflow,"
                    " due_at, queued_at, attempt, max_attempts, events)"
                    " SELECT 'queued', id, name, revision, 'schedule', 'nightly',"
                    " target_repository, target_ref, target_workflow,"
                    f" '{ARMED_AT}', '{ARMED_AT}', 0, 1, 0 FROM automations WHERE id = :id"
                ),
                {"id": f"a{number:06d}"},
            )

        db.write(work)
        left.release()

    scheduler = BackgroundScheduler(timezone="UTC", executors={"default": ThreadPoolExecutor(4)})
    scheduler.start(paused=True)
    at = datetime.now(UTC)
    for number in range(jobs):
        scheduler.add_job(job, "date", args=(number,), run_date=at, misfire_grace_time=None)
    began = time.perf_counter()
    scheduler.resume()
    for _ in range(jobs):
        assert left.acquire(timeout=120)
    seconds = time.perf_counter() - began
    scheduler.shutdown()
    return seconds


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


# --- databases --------------------------------------------------------------------------------------


@contextmanager
def database(dialect: str, clock: SystemClock | None) -> Iterator[Database]:
    """Give a new database at head, and drop it afterwards."""
    limits = DatabaseLimits(statement=120)
    with tempfile.TemporaryDirectory(prefix="bellringer-bench-") as directory:
        if dialect == "sqlite":
            db = Database(f"sqlite:///{Path(directory) / 'bench.db'}", limits=limits, clock=clock)
            migrate(db)
            yield db
            db.close()
            return
        server = make_url(normalize_url(SERVERS[dialect]))
        admin = create_engine(server, isolation_level="AUTOCOMMIT")
        name = f"bellringer_bench_{os.getpid()}_{secrets.token_hex(4)}"
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        url = server.set(database=name).render_as_string(hide_password=False)
        db = Database(url, limits=limits, clock=clock)
        try:
            migrate(db)
            yield db
        finally:
            db.close()
            with admin.connect() as connection:
                connection.execute(text(f"DROP DATABASE {name}"))
            admin.dispose()


def fill(
    db: Database, triggers: int, expressions: int, write: Callable[[int], str] = expression
) -> None:
    """Store that many automations of one trigger each, evenly over the expressions."""

    def insert(connection: Connection, table: str, rows: Sequence[str]) -> None:
        for low in range(0, len(rows), 1000):
            values = ", ".join(rows[low : low + 1000])
            connection.exec_driver_sql(f"INSERT INTO {table} VALUES {values}".replace("%", "%%"))

    def work(connection: Connection) -> None:
        insert(
            connection,
            "automations (id, revision, name, api_enabled, target_repository, target_ref,"
            " target_workflow)",
            [
                f"('a{n:06d}', '{n:064x}', 'Automation {n}', 1, 'acme/shop', 'main', 'release')"
                for n in range(triggers)
            ],
        )
        insert(
            connection,
            "automation_triggers (automation_id, id, enabled, expression)",
            [f"('a{n:06d}', 'nightly', 1, '{write(n % expressions)}')" for n in range(triggers)],
        )
        insert(
            connection,
            "automation_trigger_arms (automation_id, trigger_id, armed_at)",
            [f"('a{n:06d}', 'nightly', '{ARMED_AT}')" for n in range(triggers)],
        )

    db.write(work)
    tables = "automations, automation_triggers, automation_trigger_arms"
    statement = f"ANALYZE TABLE {tables}" if db.dialect == "mariadb" else "ANALYZE"
    db.write(lambda c: c.exec_driver_sql(statement))


def clear(db: Database) -> None:
    """Leave no run and no occurrence."""

    def work(connection: Connection) -> None:
        for table in ("runs", "schedule_occurrences"):
            connection.exec_driver_sql(
                f"TRUNCATE {table} CASCADE"
                if db.dialect == "postgresql"
                else f"DELETE FROM {table}"
            )

    db.write(work)


def settle(db: Database) -> None:
    """Let no work of before count against what is measured next."""
    if db.dialect == "sqlite":
        db.read(lambda c: c.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all())
    elif db.dialect == "postgresql":
        db.read(lambda c: c.exec_driver_sql("CHECKPOINT"))
    gc.collect()


def unreachable(dialect: str) -> str | None:
    """Return why the server of ``dialect`` can't be used, or None."""
    if dialect == "sqlite":
        return None
    engine = create_engine(normalize_url(SERVERS[dialect]), connect_args={"connect_timeout": 3})
    try:
        with engine.connect():
            return None
    except SQLAlchemyError as error:
        return type(error).__name__
    finally:
        engine.dispose()


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
        Bench(dialect, arguments.scale).run()


if __name__ == "__main__":
    main()
