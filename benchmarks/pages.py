"""A page of 1,000 of 100,000 automations, as JSON text, against the driver's rows and ``json.dumps``.

The baseline judges nothing and builds the same document from one join.
"""

import argparse
import json
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

from app.api import documents
from app.automations.store import AutomationStore
from app.db import Database
from benchmarks.databases import alternately, answering, benchmark_database, driver, fill, report

TARGETS = {"sqlite": "<= 3.5", "postgresql": "<= 2.5"}

QUERY = """
SELECT p.id, p.revision, p.name, p.description, p.api_enabled, p.target_repository, p.target_ref,
       p.target_workflow, t.id, t.enabled, t.expression
FROM (SELECT * FROM automations WHERE id > {mark} ORDER BY id LIMIT {limit}) AS p
LEFT JOIN automation_triggers AS t ON t.automation_id = p.id
ORDER BY p.id, t.id
"""


def bare(connection: Any, after: str, limit: int, mark: str) -> str:
    """Return the page's text from the driver's rows."""
    cursor = connection.cursor()
    cursor.execute(QUERY.format(mark=mark, limit=limit), (after,))
    data = []
    for _, rows in groupby(cursor.fetchall(), key=lambda row: row[0]):
        group = list(rows)
        first = group[0]
        triggers = [{"type": "api", "id": "manual", "enabled": True}] if first[4] else []
        triggers += [
            {"type": "schedule", "id": row[8], "enabled": row[9] == 1, "expression": row[10]}
            for row in group
            if row[8] is not None
        ]
        data.append(
            {
                "id": first[0],
                "revision": first[1],
                "name": first[2],
                "description": first[3],
                "target": {"repository": first[5], "ref": first[6], "workflow": first[7]},
                "triggers": triggers,
            }
        )
    return json.dumps({"data": data}, separators=(",", ":"))


def measure(backend: str, number: int, page: int, rounds: int) -> None:
    """Print both figures for one database."""
    with tempfile.TemporaryDirectory() as name, benchmark_database(backend, Path(name)) as url:
        database = Database(url)
        fill(database, number)
        store = AutomationStore(database)
        connection = driver(url)
        mark = "?" if backend == "sqlite" else "%s"
        for figure, after in (("first page", ""), ("last page", f"a-{number - page - 1:06}")):

            def ours(after: str = after) -> str:
                found = store.list(after or None, page)
                return json.dumps(
                    {"data": [documents.automation(a) for a in found]}, separators=(",", ":")
                )

            def baseline(after: str = after) -> str:
                return bare(connection, after, page, mark)

            assert json.loads(ours()) == json.loads(baseline())
            seconds = alternately(rounds, ours, baseline)
            report(
                "pages", figure, backend, *(s * 1000 for s in seconds), "ms", TARGETS.get(backend)
            )
        connection.close()
        database.close()


def main() -> None:
    """Measure on each database that answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="a small one is a smoke run")
    scale = parser.parse_args().scale
    for backend in answering():
        number = max(10, int(100_000 * scale))
        measure(backend, number, min(1_000, number // 2), max(2, int(30 * scale)))


if __name__ == "__main__":
    main()
