"""Turns rows of the ledger into runs, and finds those that are asked for."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, func, literal, or_, select

from app.runs.models import runs
from app.runs.values import Page, Reason, Run, RunFilter

COUNT_LIMIT = 10_000
"""Up to how many runs a total is exact."""

COLUMNS = tuple(column for column in runs.c if column.name != "lease_until")
"""What a run is made of: the lease concerns the workers alone."""

_PLAIN = tuple(c.name for c in COLUMNS if not c.name.startswith("reason_"))
_TEXTS = (
    *("automation_id", "automation_name", "automation_revision", "trigger_id"),
    *("target_repository", "target_ref", "target_workflow"),
)


def run_of(row: Any) -> Run:
    """Return the run of a row of :data:`COLUMNS`."""
    values = {name: getattr(row, name) for name in _PLAIN}
    for name in _TEXTS:
        # SQLite lets anything stand in a text column, and a run copies what a DBA wrote.
        if not isinstance(values[name], str):
            values[name] = _as_text(values[name])
    code = row.reason_code
    return Run(**values, reason=None if code is None else Reason(code, row.reason_detail or ""))


def one(connection: Connection, run_id: int) -> Run | None:
    """Return one run, or None."""
    row = connection.execute(select(*COLUMNS).where(runs.c.id == run_id)).one_or_none()
    return None if row is None else run_of(row)


def page(connection: Connection, where: RunFilter, before: int | None, limit: int) -> Page:
    """Return at most ``limit`` runs with ids below ``before``, newest first."""
    conditions = list(_conditions(where))
    counted = select(literal(1)).select_from(runs).where(*conditions).limit(COUNT_LIMIT + 1)
    total = connection.scalar(select(func.count()).select_from(counted.subquery())) or 0
    if before is not None:
        conditions.append(runs.c.id < before)
    query = select(*COLUMNS).where(*conditions).order_by(runs.c.id.desc()).limit(limit + 1)
    found = [run_of(row) for row in connection.execute(query)]
    shown = found[:limit]
    return Page(
        runs=shown,
        total=total if total <= COUNT_LIMIT else None,
        next_before=shown[-1].id if len(found) > limit else None,
    )


def automation_has_runs(connection: Connection, automation_id: str) -> bool:
    """Tell whether the ledger has runs of that automation."""
    return bool(connection.scalar(select(exists().where(runs.c.automation_id == automation_id))))


def _conditions(where: RunFilter) -> Iterator[ColumnElement[bool]]:
    if where.automation is not None:
        yield runs.c.automation_id == where.automation
    if where.states:
        yield runs.c.state.in_(sorted(where.states))
    if where.trigger is not None:
        yield or_(runs.c.trigger_type == where.trigger, runs.c.trigger_id == where.trigger)
    if where.since is not None:
        yield runs.c.queued_at >= where.since
    if where.until is not None:
        yield runs.c.queued_at < where.until


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
