"""Deletes what belongs to automations: their triggers, and from when on those count."""

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, delete

from app.automations.models import automation_trigger_arms, automation_triggers

_DELETE = tuple(
    delete(table).where(table.c.automation_id == bindparam("owner"))
    for table in (automation_triggers, automation_trigger_arms)
)


def delete_of(connection: Connection, automation_id: str) -> None:
    """Delete the triggers and arms of one automation."""
    for statement in _DELETE:
        connection.execute(statement, {"owner": automation_id})


def delete_orphans(connection: Connection, new_ids: Iterable[str]) -> None:
    """Delete what bears the ids of automations that are only now created.

    Only on SQLite can there be any: whoever deletes an automation in its shell, where foreign keys are
    off, leaves its children. They would stand in the way of the new ones, or come back with them.
    """
    owners = [{"owner": new_id} for new_id in new_ids]
    if connection.dialect.name == "sqlite" and owners:
        for statement in _DELETE:
            connection.execute(statement, owners)
