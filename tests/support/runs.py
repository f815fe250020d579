"""Automations and runs for tests of the ledger and of what works from it."""

from datetime import datetime, timedelta

from sqlalchemy import insert, update

from app.automations.store import AutomationStore
from app.automations.values import Draft, ScheduleTrigger, Target
from app.db import Database
from app.runs.ledger import RunLedger
from app.runs.models import runs


def stored_automation(
    database: Database,
    automation_id: str = "nightly",
    *,
    api_enabled: bool = True,
    workflow: str = "release",
) -> None:
    """Store an automation with an API trigger and a schedule."""
    draft = Draft(
        name="Nightly",
        description=None,
        target=Target("acme/shop", "main", workflow),
        api_enabled=api_enabled,
        schedules=(ScheduleTrigger("at-three", True, "0 3 * * *"),),
    )
    AutomationStore(database).create(automation_id, draft, "test")


def queued(database: Database, count: int = 1, *, max_attempts: int = 1) -> list[int]:
    """Queue runs as the scheduler does, without an automation; return their ids in order."""
    row = {
        "state": "queued",
        "automation_id": "nightly",
        "automation_name": "Nightly",
        "automation_revision": "0" * 64,
        "trigger_type": "schedule",
        "trigger_id": "at-three",
        "target_repository": "acme/shop",
        "target_ref": "main",
        "target_workflow": "release",
        "attempt": 0,
        "max_attempts": max_attempts,
        "events": 0,
    }

    def work(connection):
        now = database.now(connection)
        return [
            connection.execute(insert(runs).values(queued_at=now, **row)).inserted_primary_key[0]
            for _ in range(count)
        ]

    return database.write(work)


def changed(database: Database, run_id: int, **values: object) -> None:
    """Change a row of the ledger behind its back."""
    database.write(lambda c: c.execute(update(runs).where(runs.c.id == run_id).values(**values)))


def expire(database: Database, run_id: int) -> None:
    """Let the lease of a run have ended."""
    changed(database, run_id, lease_until=database.write(database.now) - timedelta(seconds=1))


def lease_of(database: Database, run_id: int) -> datetime | None:
    """Return until when a run is leased."""
    return database.read(
        lambda c: c.scalar(
            runs.select().with_only_columns(runs.c.lease_until).where(runs.c.id == run_id)
        )
    )


def state_of(database: Database, run_id: int) -> str:
    """Return the state of a run."""
    run = RunLedger(database).get(run_id)
    assert run is not None
    return run.state
