"""Conditional replaces per second by one writer, against the driver's same transaction."""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from app.automations.revision import canonical_form
from app.automations.store import AutomationStore
from app.automations.values import Automation, Draft
from app.db import Database
from benchmarks.databases import answering, benchmark_database, driver, example, fill, report

TARGETS = {"sqlite": ">= 0.15", "postgresql": ">= 0.4"}
NOW = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now')",
    "postgresql": "clock_timestamp()",
    "mariadb": "utc_timestamp(6)",
}
STATEMENTS = (
    "UPDATE automations SET revision = {m}, name = {m}, description = {m}, api_enabled = {m},"
    " target_repository = {m}, target_ref = {m}, target_workflow = {m}"
    " WHERE id = {m} AND revision = {m}",
    "SELECT id, expression FROM automation_triggers WHERE automation_id = {m} AND enabled = 1",
    "SELECT trigger_id, armed_at FROM automation_trigger_arms WHERE automation_id = {m}",
    "DELETE FROM automation_triggers WHERE automation_id = {m}",
    "DELETE FROM automation_trigger_arms WHERE automation_id = {m}",
    "INSERT INTO automation_triggers VALUES ({m}, {m}, {m}, {m})",
    "INSERT INTO automation_history"
    " (automation_id, action, revision, document, actor, recorded_at)"
    " VALUES ({m}, 'replace', {m}, {m}, 'x', {now})",
)


def renamed(made: Automation, name: str) -> Draft:
    """Return its draft under another name."""
    draft = made.draft
    return Draft(name, draft.description, draft.target, draft.api_enabled, draft.schedules)


class Bare:
    """The same transaction in the driver's own words."""

    def __init__(self, connection: Any, backend: str) -> None:
        self.connection = connection
        mark = "?" if backend == "sqlite" else "%s"
        self.begin = "BEGIN IMMEDIATE" if backend == "sqlite" else "BEGIN"
        self.statements = [s.format(m=mark, now=NOW[backend]) for s in STATEMENTS]

    def replace(self, made: Automation, was: str, revision: str, document: str, name: str) -> None:
        """Replace, rewriting triggers and appending to the history."""
        update, enabled, arms, delete, disarm, insert, record = self.statements
        draft = made.draft
        names = (draft.target.repository, draft.target.ref, draft.target.workflow)
        cursor = self.connection.cursor()
        cursor.execute(self.begin)
        changed = (revision, name, draft.description, int(draft.api_enabled), *names)
        cursor.execute(update, (*changed, made.id, was))
        assert cursor.rowcount == 1
        for query in (enabled, arms):
            cursor.execute(query, (made.id,))
            cursor.fetchall()
        for statement in (delete, disarm):
            cursor.execute(statement, (made.id,))
        cursor.executemany(insert, [(made.id, t.id, 1, t.expression) for t in draft.schedules])
        cursor.execute(record, (made.id, revision, document))
        cursor.execute("COMMIT")


def measure(backend: str, number: int, rounds: int) -> None:
    """Print the figure for one database."""
    with tempfile.TemporaryDirectory() as name, benchmark_database(backend, Path(name)) as url:
        database = Database(url)
        fill(database, 1_000)
        store = AutomationStore(database)
        connection = driver(url)
        bare = Bare(connection, backend)
        made = example(1)
        current = made.revision
        best = [0.0, 0.0]
        for round_ in range(rounds + 1):
            began = time.perf_counter()
            for n in range(number):
                draft = renamed(made, f"{round_} {n}")
                current = store.replace(
                    made.id, frozenset({current}), draft, "x"
                ).automation.revision
            ours = number / (time.perf_counter() - began)
            document = canonical_form(draft).decode()
            began = time.perf_counter()
            for n in range(number):
                revision = f"{round_ * number + n:064x}"
                bare.replace(made, current, revision, document, f"{n}")
                current = revision
            baseline = number / (time.perf_counter() - began)
            if round_:  # the first one warms up
                best = [max(best[0], ours), max(best[1], baseline)]
        assert json.loads(document)["name"]
        connection.close()
        database.close()
    report("replaces", "one writer", backend, *best, "replaces/s", TARGETS.get(backend))


def main() -> None:
    """Measure on each database that answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="a small one is a smoke run")
    scale = parser.parse_args().scale
    for backend in answering():
        measure(backend, max(5, int(500 * scale)), max(1, int(3 * scale)))


if __name__ == "__main__":
    main()
