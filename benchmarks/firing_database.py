"""Databases for the benchmark of firing, and what others would do with them."""

import gc
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from app.clock import SystemClock
from app.db import Database, DatabaseLimits
from app.db.connecting import normalize_url
from app.db.migrating import migrate

SERVERS = {
    "postgresql": os.environ.get("TEST_POSTGRESQL_URL", "postgresql://root@127.0.0.1/postgres"),
    "mariadb": os.environ.get("TEST_MARIADB_URL", "mariadb://root@127.0.0.1/test"),
}
ARMED_AT = "2026-11-01 00:00:00.000000"


def expression(number: int) -> str:
    """Return one of 1,440 expressions that are due at every minute."""
    return f"*,{number % 60} *,{number // 60} * * *"


def yearly(number: int) -> str:
    """Return one of many expressions that are due on the first of January only."""
    return f"{number % 60} {number // 60} 1 1 *"


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


# --- what others do ---------------------------------------------------------------------------------


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
