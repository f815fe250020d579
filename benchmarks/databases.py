"""Databases to measure on: made for the benchmark, migrated, and dropped after it."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from app.automations import rows
from app.automations.models import automation_triggers, automations
from app.automations.revision import revision_of
from app.automations.values import Automation, Draft, ScheduleTrigger, Target
from app.db import Database
from tests.support.databases import DIALECTS, SERVERS, migrated_database

BACKENDS = DIALECTS


@contextmanager
def benchmark_database(backend: str, directory: Path) -> Iterator[str]:
    """Give the URL of a new, empty database at head."""
    with migrated_database(backend, directory) as url:
        yield url


def answering() -> list[str]:
    """Return the databases of which there is a server."""
    return [backend for backend in BACKENDS if backend == "sqlite" or _answers(backend)]


def _answers(backend: str) -> bool:
    try:
        engine = create_engine(Database(SERVERS[backend]).url, connect_args={"connect_timeout": 3})
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    except SQLAlchemyError:
        return False
    return True


def driver(url: str) -> Any:
    """Connect with nothing but the database's driver, as the fastest program there could be would."""
    parsed = make_url(url)
    match parsed.get_backend_name():
        case "sqlite":
            import sqlite3

            connection = sqlite3.connect(str(parsed.database), isolation_level=None, timeout=30)
            connection.execute("PRAGMA foreign_keys = ON")
            return connection
        case "postgresql":
            import psycopg

            return psycopg.connect(
                host=parsed.host, user=parsed.username, dbname=parsed.database, autocommit=True
            )
        case _:
            import pymysql

            return pymysql.connect(
                host=parsed.host,
                user=parsed.username,
                database=parsed.database,
                autocommit=True,
                charset="utf8mb4",
            )


def example(number: int) -> Automation:
    """Return an automation as people have them: a sentence about it, two schedules, an API trigger."""
    draft = Draft(
        f"Nightly release {number}",
        "Cuts a release from main and tells the others.",
        Target(f"acme/shop-{number % 100}", "main", "release"),
        number % 3 == 0,
        (
            ScheduleTrigger("nightly", True, f"{number % 60} 3 * * *"),
            ScheduleTrigger("weekly", True, f"{number % 60} 6 * * MON"),
        ),
    )
    return Automation(f"a-{number:06}", revision_of(draft), draft)


def fill(database: Database, number: int) -> None:
    """Store ``number`` examples the short way."""
    for start in range(0, number, 5_000):
        made = [example(n) for n in range(start, min(number, start + 5_000))]

        def insert(connection: Any, made: list[Automation] = made) -> None:
            connection.execute(automations.insert(), [rows.parent(a) for a in made])
            connection.execute(
                automation_triggers.insert(), [row for a in made for row in rows.triggers(a)]
            )

        database.write(insert)


def alternately(
    rounds: int, ours: Callable[[], object], baseline: Callable[[], object]
) -> tuple[float, float]:
    """Return the best seconds of both, measured in turn after a first time that does not count."""
    ours()
    baseline()
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for index, work in enumerate((ours, baseline)):
            began = time.perf_counter()
            work()
            best[index] = min(best[index], time.perf_counter() - began)
    return best[0], best[1]


def report(
    benchmark: str,
    figure: str,
    database: str,
    ours: float,
    baseline: float,
    unit: str,
    target: str | None,
) -> None:
    """Print one figure as a line of JSON; the ratio is ours to the baseline's."""
    line = {
        "benchmark": benchmark,
        "figure": figure,
        "database": database,
        "ours": float(f"{ours:.4g}"),
        "baseline": float(f"{baseline:.4g}"),
        "unit": unit,
        "ratio": round(ours / baseline, 3),
        "target": target,
    }
    print(json.dumps(line), flush=True)
