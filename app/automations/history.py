"""What each automation was: one row per change; it outlives the automation."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from app.automations.models import automation_history

_table = automation_history


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: its running number, what was done, by whom, when, and the document as it was after.

    For a delete, the document as it was before.
    """

    number: int
    automation_id: str
    action: str
    revision: str
    actor: str
    recorded_at: datetime
    document: Mapping[str, Any]


def page(connection: Connection, automation_id: str, before: int | None, limit: int) -> list[Entry]:
    """Return at most ``limit`` entries with numbers below ``before``, newest first."""
    query = select(_table).where(_table.c.automation_id == automation_id)
    if before is not None:
        query = query.where(_table.c.id < before)
    rows = connection.execute(query.order_by(_table.c.id.desc()).limit(limit))
    return [_entry(row) for row in rows]


def entry(connection: Connection, automation_id: str, number: int) -> Entry | None:
    """Return one entry, or None."""
    row = connection.execute(
        select(_table).where(_table.c.automation_id == automation_id, _table.c.id == number)
    ).one_or_none()
    return None if row is None else _entry(row)


def _entry(row: Any) -> Entry:
    return Entry(
        number=row.id,
        automation_id=row.automation_id,
        action=row.action,
        revision=row.revision,
        actor=row.actor,
        recorded_at=row.recorded_at,
        document=json.loads(row.document),
    )
