"""A directory of 10,000 legacy files imported, against tomllib and bare inserts of the same rows."""

import argparse
import hashlib
import shutil
import tempfile
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.automations.legacy import import_directory
from app.clock import SystemClock
from app.db import Database
from benchmarks.databases import answering, benchmark_database, driver, example, report

FILE = """\
name = "{name}"
description = "{description}"

[target]
repository = "{repository}"
ref = "main"
workflow = "release"
{triggers}"""

TRIGGER = """
[[triggers]]
type = "schedule"
id = "{id}"
enabled = true
expression = "{expression}"
"""


def write_files(directory: Path, number: int) -> None:
    """Write the examples out as files."""
    directory.mkdir()
    for n in range(number):
        made = example(n)
        (directory / f"{made.id}.toml").write_text(
            FILE.format(
                name=made.draft.name,
                description=made.draft.description,
                repository=made.draft.target.repository,
                triggers="".join(
                    TRIGGER.format(id=t.id, expression=t.expression) for t in made.draft.schedules
                ),
            )
        )


def bare(url: str, directory: Path, mark: str) -> None:
    """Read the files with tomllib and insert what they say, in one transaction and unjudged."""
    parents, children, arms, history = [], [], [], []
    now = datetime.now(UTC).replace(tzinfo=None)
    for file in sorted(directory.glob("*.toml")):
        raw = file.read_bytes()
        document = tomllib.loads(raw.decode())
        revision = hashlib.sha256(raw).hexdigest()
        target = document["target"]
        names = (target["repository"], target["ref"], target["workflow"])
        parents.append((file.stem, revision, document["name"], document["description"], 0, *names))
        children += [(file.stem, t["id"], 1, t["expression"]) for t in document["triggers"]]
        arms += [(file.stem, t["id"], str(now)) for t in document["triggers"]]
        history.append((file.stem, "import", revision, raw.decode(), "import", str(now)))
    connection = driver(url)
    cursor = connection.cursor()
    cursor.execute("BEGIN")
    for table, columns, rows in (
        ("automations", "", parents),
        ("automation_triggers", "", children),
        ("automation_trigger_arms", "", arms),
        (
            "automation_history",
            "(automation_id, action, revision, document, actor, recorded_at)",
            history,
        ),
    ):
        marks = ", ".join([mark] * len(rows[0]))
        cursor.executemany(f"INSERT INTO {table} {columns} VALUES ({marks})", rows)
    cursor.execute("COMMIT")
    connection.close()


def measure(backend: str, number: int, rounds: int) -> None:
    """Print the figure for one database."""
    best: list[float] = [float("inf"), float("inf")]
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source"
        write_files(source, number)
        for _ in range(rounds):
            for index in (0, 1):
                seconds = _once(backend, source, Path(name), number, bool(index))
                best[index] = min(best[index], seconds)
    report("import", f"{number} files", backend, best[0], best[1], "s", "<= 2.5")


def _once(backend: str, source: Path, directory: Path, number: int, is_baseline: bool) -> float:
    copy = directory / "automations"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    with benchmark_database(backend, directory) as url:
        database: Any = Database(url)
        began = time.perf_counter()
        if is_baseline:
            bare(url, copy, "?" if backend == "sqlite" else "%s")
        else:
            done = import_directory(database, copy, SystemClock())
            assert len(done.imported) == number
        elapsed = time.perf_counter() - began
        database.close()
    for backup in directory.glob("*.bak"):
        shutil.rmtree(backup)
    return elapsed


def main() -> None:
    """Measure on each database that answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="a small one is a smoke run")
    scale = parser.parse_args().scale
    for backend in answering():
        measure(backend, max(10, int(10_000 * scale)), 2 if scale >= 1 else 1)


if __name__ == "__main__":
    main()
