"""Real worker processes, and a real repository for them to run workflows from."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import select

from app.db import Database
from app.nodes.models import nodes
from app.runs.ledger import RunLedger
from app.runs.models import runs
from app.runs.values import Run
from tests.support.repositories import SourceRepository
from tests.support.waiting import until

MAIN = """
import os, sys
from app.settings import load
from app.worker.service import serve
sys.exit(serve(load(os.environ)))
"""


class WorkerProcess:
    """A worker with settings of its own; what it says goes to a file."""

    def __init__(self, directory: Path, database_url: str, **settings: object) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.said = directory / "worker.log"
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "BELLRINGER_DATABASE_URL": database_url,
            "BELLRINGER_DATA_DIR": str(directory / "data"),
            "BELLRINGER_LOG_FORMAT": "json",
            **{f"BELLRINGER_{name.upper()}": str(value) for name, value in settings.items()},
        }
        with self.said.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", MAIN],
                env=environment,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker itself."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill it as a machine that fails would."""
        self.process.kill()
        self.process.wait(10)

    def ended(self, limit: float = 20.0) -> int:
        """Return its exit code, once it has ended."""
        return self.process.wait(limit)

    def log(self) -> str:
        """Return all that it said."""
        return self.said.read_text(encoding="utf-8", errors="replace")


@contextmanager
def fleet(directory: Path, source_root: Path) -> Iterator["Fleet"]:
    """Give a fleet whose workers are ended in the end, whatever state they are in."""
    fleet_ = Fleet(directory, source_root)
    try:
        yield fleet_
    finally:
        for worker in fleet_.workers:
            if worker.process.poll() is None:
                worker.signal(signal.SIGCONT)
                worker.kill()


class Fleet:
    """Workers that serve one repository, ``acme/shop``."""

    def __init__(self, directory: Path, source_root: Path) -> None:
        self.directory = directory
        self.source_root = source_root
        self.source = SourceRepository(source_root / "acme" / "shop.git")
        self.workers: list[WorkerProcess] = []

    def workflow(self, script: str) -> str:
        """Commit a shell script as the workflow ``release``; return the commit."""
        return self.source.commit({".bellringer/workflows/release.sh": script})

    def start(self, database_url: str, **settings: object) -> WorkerProcess:
        """Start one more worker."""
        worker = WorkerProcess(
            self.directory / f"worker-{len(self.workers)}",
            database_url,
            **{"git_url": f"file://{self.source_root}/{{repository}}.git", **settings},
        )
        self.workers.append(worker)
        return worker


def run_in(database: Database, run_id: int, *states: str, limit: float = 30.0) -> Run:
    """Return the run once it is in one of ``states``."""
    ledger = RunLedger(database)

    def there() -> Run | None:
        run = ledger.get(run_id)
        return run if run is not None and run.state in states else None

    return until(there, limit)


def states_of(database: Database) -> Mapping[int, str]:
    """Return the states of all runs."""
    query = select(runs.c.id, runs.c.state)
    return database.read(lambda c: {row.id: row.state for row in c.execute(query)})


def node_rows(database: Database) -> list[tuple[int, str | None]]:
    """Return process id and problem of every node."""
    query = select(nodes.c.pid, nodes.c.problem)
    return database.read(lambda c: [(row.pid, row.problem) for row in c.execute(query)])
