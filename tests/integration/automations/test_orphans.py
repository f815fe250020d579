"""What a shell of SQLite leaves behind, where foreign keys are off unless somebody turns them on."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import func, make_url, select

from app.automations.models import automation_trigger_arms, automation_triggers
from app.automations.store import AutomationStore
from app.db import Database
from tests.support.drafts import draft
from tests.support.legacy import GOOD, MINIMAL, run

SCHEDULES = {"at-three": "0 3 * * *", "old": "1 1 * * *"}


@pytest.fixture
def store(sqlite_database: Database) -> AutomationStore:
    """A store without automations, and with the children of one that a DBA deleted."""
    store = AutomationStore(sqlite_database)
    store.create("nightly", draft(schedules=SCHEDULES), "test")
    shell = sqlite3.connect(str(make_url(sqlite_database.url).database))
    shell.execute("DELETE FROM automations")
    shell.execute("DELETE FROM automation_history")
    shell.commit()
    shell.close()
    for table in (automation_triggers, automation_trigger_arms):
        count = select(func.count()).select_from(table)
        assert sqlite_database.read(lambda c, q=count: c.scalar(q)) == 2
    return store


@pytest.mark.parametrize("schedules", [{"at-three": "0 3 * * *"}, {}])
def test_an_automation_is_created_over_orphans_and_has_its_own_triggers_only(
    store: AutomationStore, sqlite_database: Database, schedules: dict[str, str]
) -> None:
    created = store.create("nightly", draft(schedules=schedules), "test")
    assert store.get("nightly") == created
    assert {s.id for s in created.draft.schedules} == set(schedules)
    arms = select(automation_trigger_arms.c.trigger_id)
    found = sqlite_database.read(lambda c: set(c.scalars(arms)))
    assert found == set(schedules)


@pytest.mark.parametrize("file", [GOOD, MINIMAL])
def test_an_automation_is_imported_over_orphans(
    store: AutomationStore, sqlite_database: Database, tmp_path: Path, file: str
) -> None:
    directory = tmp_path / "automations"
    directory.mkdir()
    (directory / "nightly.toml").write_text(file)
    assert run(sqlite_database, directory).imported == ("nightly",)
    imported = store.get("nightly")
    assert imported is not None
    assert "old" not in [schedule.id for schedule in imported.draft.schedules]
