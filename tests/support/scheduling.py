"""A database on a clock that a test drives, with automations in it and what came of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert, select, text

from app.automations.models import automation_triggers, automations
from app.automations.store import ANY, AutomationStore
from app.automations.values import Draft, ScheduleTrigger, Target
from app.db import Database
from app.runs.models import runs
from app.scheduling.models import schedule_occurrences
from app.scheduling.occurrences import OccurrenceLedger
from app.scheduling.values import Claimed, Due

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
EVERY_MINUTE = "* * * * *"


class DrivenClock:
    """Stands still until a test moves it."""

    def __init__(self, instant: datetime = NOON) -> None:
        self.instant = instant

    def now(self) -> datetime:
        return self.instant

    def monotonic(self) -> float:
        return time.monotonic()

    def forward(self, **amount: float) -> None:
        self.instant += timedelta(**amount)


@dataclass
class World:
    """A database under test; everything here goes the way the product goes, but ``dba_adds``."""

    database: Database
    clock: DrivenClock

    def __post_init__(self) -> None:
        self.store = AutomationStore(self.database)

    def ledger(self, catch_up: float = 300) -> OccurrenceLedger:
        return OccurrenceLedger(self.database, catch_up=timedelta(seconds=catch_up), max_attempts=3)

    def claim(self, *due: Due, node: str = "one", catch_up: float = 300) -> Claimed:
        return self.ledger(catch_up).claim(due, node)

    def save(self, automation_id: str, *expressions: str, enabled: bool = True) -> None:
        """Create or replace an automation with the triggers t0, t1 and so on."""
        draft = draft_of(*expressions, enabled=enabled)
        if self.store.revision(automation_id) is None:
            self.store.create(automation_id, draft, "test")
        else:
            self.store.replace(automation_id, ANY, draft, "test")

    def dba_adds(self, automation_id: str, expression: str, **columns: Any) -> None:
        """Insert an automation by plain SQL, as somebody at a prompt would."""

        def work(connection: Any) -> None:
            row = {
                "id": automation_id,
                "revision": "0" * 64,
                "name": automation_id,
                "api_enabled": False,
                "target_repository": "acme/shop",
                "target_ref": "main",
                "target_workflow": "release",
            }
            connection.execute(insert(automations).values(**{**row, **columns}))
            connection.execute(
                insert(automation_triggers).values(
                    automation_id=automation_id, id="t0", enabled=True, expression=expression
                )
            )

        self.database.write(work)

    def runs(self, state: str | None = None) -> Sequence[Any]:
        query = select(runs).order_by(runs.c.automation_id, runs.c.due_at, runs.c.trigger_id)
        if state is not None:
            query = query.where(runs.c.state == state)
        return self.database.read(lambda c: c.execute(query).all())

    def fired(self) -> list[tuple[str, datetime]]:
        return [(run.automation_id, run.due_at) for run in self.runs("queued")]

    def occurrences(self) -> Sequence[Any]:
        query = select(schedule_occurrences).order_by(
            schedule_occurrences.c.expression, schedule_occurrences.c.due_at
        )
        return self.database.read(lambda c: c.execute(query).all())

    def execute(self, sql: str, **parameters: Any) -> None:
        self.database.write(lambda c: c.execute(text(sql), parameters))


def draft_of(*expressions: str, enabled: bool = True, name: str = "Nightly") -> Draft:
    return Draft(
        name,
        None,
        Target("acme/shop", "main", "release"),
        False,
        tuple(ScheduleTrigger(f"t{n}", enabled, e) for n, e in enumerate(expressions)),
    )


def due(at: datetime, expression: str = EVERY_MINUTE, since: datetime | None = None) -> Due:
    return Due(expression, at, since)
