"""Schedulers and workers that are started on a database of another release."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.db import Database
from app.db.migrating import head, migrate
from app.nodes.registry import NodeRegistry
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
ROLES = pytest.mark.parametrize("role", ["scheduler", "worker"])


def started(role: str, url: str, directory: Path) -> subprocess.Popen[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "BELLRINGER_DATABASE_URL": url,
        "BELLRINGER_DATA_DIR": str(directory / "data"),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "app", role],
        cwd=directory,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@ROLES
@pytest.mark.parametrize("revision", [None, "0002_automation_history"])
def test_an_older_schema_is_refused_with_the_way_out(
    role: str, revision: str | None, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    if revision is not None:
        database = Database(url)
        migrate(database, revision)
        database.close()
    process = started(role, url, tmp_path)
    try:
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 5
    assert f"schema revision {revision or 'none'}, this release needs {head()}" in said
    assert "bellringer migrate" in said and "Traceback" not in said


@ROLES
def test_a_schema_of_a_later_release_is_worked_with(
    role: str, sqlite_url: str, sqlite_database: Database, tmp_path: Path
) -> None:
    sqlite_database.write(
        lambda c: c.exec_driver_sql("UPDATE alembic_version SET version_num = '9999_later'")
    )
    process = started(role, sqlite_url, tmp_path)
    try:
        until(lambda: [node.role for node in NodeRegistry(sqlite_database).list()] == [role])
        process.terminate()
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
