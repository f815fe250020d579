"""A good row for every table, and plain SQL to insert it with, as a DBA would."""

from collections.abc import Mapping

from sqlalchemy import Connection

HASH = "0" * 64
NOON = "2026-01-01 12:00:00"

GOOD: Mapping[str, Mapping[str, object]] = {
    "automations": {
        "id": "nightly",
        "revision": HASH,
        "name": "Nightly",
        "description": None,
        "api_enabled": 1,
        "target_repository": "acme/shop",
        "target_ref": "main",
        "target_workflow": "release",
    },
    "automation_triggers": {
        "automation_id": "nightly",
        "id": "at-three",
        "enabled": 1,
        "expression": "0 3 * * *",
    },
    "automation_history": {
        "automation_id": "nightly",
        "action": "create",
        "revision": HASH,
        "document": "{}",
        "actor": "a",
        "recorded_at": NOON,
    },
    "automation_trigger_arms": {
        "automation_id": "nightly",
        "trigger_id": "at-three",
        "armed_at": NOON,
    },
    "nodes": {
        "id": "n",
        "role": "worker",
        "host": "h",
        "pid": 1,
        "version": "1",
        "worker_group": None,
        "started_at": NOON,
        "heartbeat_at": NOON,
        "problem": None,
    },
    "schedule_occurrences": {
        "expression": "0 3 * * *",
        "due_at": NOON,
        "state": "fired",
        "claimed_at": NOON,
        "node": "n",
        "runs": 1,
    },
    "runs": {
        "id": 1,
        "state": "queued",
        "automation_id": "nightly",
        "automation_name": "Nightly",
        "automation_revision": HASH,
        "trigger_type": "schedule",
        "trigger_id": "at-three",
        "target_repository": "acme/shop",
        "target_ref": "main",
        "target_workflow": "release",
        "due_at": NOON,
        "queued_at": NOON,
        "attempt": 0,
        "max_attempts": 1,
        "events": 0,
        "worker": None,
        "lease_until": None,
    },
    "run_events": {"run_id": 1, "document": "{}"},
    "run_idempotency_keys": {
        "automation_id": "nightly",
        "key": "k",
        "run_id": 1,
        "body_hash": HASH,
        "used_at": NOON,
    },
    "run_log_lines": {
        "run_id": 1,
        "number": 1,
        "attempt": 1,
        "stream": "stdout",
        "logged_at": NOON,
        "text": "hello",
    },
    "api_tokens": {
        "id": "t",
        "name": "CI",
        "role": "viewer",
        "token_hash": HASH,
        "created_at": NOON,
        "created_by": "a",
    },
}
"""Parents stand before their children."""


class Sql(str):
    """An SQL expression, to stand in a row as it is."""


def insert_row(connection: Connection, table: str, **changed: object) -> None:
    """Insert the good row of ``table``, changed here and there, by plain SQL and nothing else."""
    row = {**GOOD[table], **changed}
    names = ", ".join(f"`{n}`" if connection.dialect.name == "mariadb" else n for n in row)
    literals = ", ".join(_literal(value) for value in row.values())
    statement = f"INSERT INTO {table} ({names}) VALUES ({literals})"
    # Percent signs would be taken for parameters.
    connection.exec_driver_sql(statement.replace("%", "%%") if "%" in statement else statement)


def insert_all(connection: Connection) -> None:
    """Insert one good row into every table that there is."""
    for table in GOOD:
        if connection.dialect.has_table(connection, table):
            insert_row(connection, table)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Sql | int):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
