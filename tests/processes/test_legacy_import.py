"""Imports by real processes: several at once, and one that is killed in the middle."""

import signal
import subprocess
import time
from pathlib import Path

from app.automations.store import AutomationStore
from app.db import Database
from tests.support.processes import outputs, release, start

PROGRAM = """
import sys
from pathlib import Path
from app.automations.legacy import import_directory
from app.clock import SystemClock
from app.db import Database
print('ready', flush=True); sys.stdin.readline()
report = import_directory(Database(sys.argv[1]), Path(sys.argv[2]), SystemClock())
print(len(report.imported), report.rename_problem)
"""


def write_files(directory: Path, number: int) -> None:
    directory.mkdir()
    for n in range(number):
        (directory / f"a{n:04}.toml").write_text(
            f'name = "Number {n}"\n'
            'target = { repository = "acme/shop", ref = "main", workflow = "release" }\n'
            f'triggers = [{{ type = "schedule", id = "t", enabled = true, '
            f'expression = "{n % 60} 3 * * *" }}]\n'
        )


def test_processes_that_import_at_once_import_everything_once(
    database: Database, tmp_path: Path
) -> None:
    directory = tmp_path / "automations"
    write_files(directory, 300)
    running = [start(PROGRAM, database.url, str(directory)) for _ in range(4)]
    release(running)
    printed = outputs(running)
    assert sum(int(line.split()[0]) for line in printed) == 300, printed
    assert all(line.endswith("None") for line in printed), printed
    store = AutomationStore(database)
    assert store.count() == 300
    assert all(len(a.draft.schedules) == 1 for a in store.list())
    assert len(store.history("a0000")) == 1
    assert [p.name for p in tmp_path.iterdir() if p.is_dir() and "automations" in p.name] == [
        p.name for p in tmp_path.glob("automations.imported-*.bak")
    ]
    assert len(list(tmp_path.glob("automations.imported-*.bak"))) == 1


def test_an_import_that_is_killed_has_written_all_or_nothing(
    database: Database, tmp_path: Path
) -> None:
    directory = tmp_path / "automations"
    write_files(directory, 400)
    store = AutomationStore(database)
    for pause in (0.05, 0.15, 0.25, 0.35, 0.5):
        if store.count():
            break
        process = start(PROGRAM, database.url, str(directory))
        release([process])
        deadline = time.monotonic() + pause
        while time.monotonic() < deadline and process.poll() is None:
            try:
                process.wait(0.01)
            except subprocess.TimeoutExpired:
                continue
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        assert store.count() in (0, 400)
    process = start(PROGRAM, database.url, str(directory))
    release([process])
    outputs([process])
    assert store.count() == 400
    assert all(len(a.draft.schedules) == 1 for a in store.list())
    assert all(len(store.history(a.id)) == 1 for a in store.list(limit=20))
    assert not directory.exists()
