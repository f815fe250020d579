"""Writes the runs of a claim, inside its transaction: those that it starts, and those that were missed."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, TextClause, select

from app.automations.models import automations
from app.cron import Expression
from app.scheduling.missed import in_words, in_words_since
from app.scheduling.statements import Statements, parameter
from app.scheduling.values import Due, Fired, Gap

PORTION = 10_000
"""Automations, or triggers that are told one by one, whose runs one statement writes."""


class RunWriter:
    """Writes runs of triggers by few statements, each of which is bounded by the database's time limit.

    ``in_portions``: the automations are gone through a portion at a time, which takes a little longer
    and lets no single statement grow with them.
    """

    def __init__(self, sql: Statements, dialect: str, max_attempts: int) -> None:
        self._sql = sql
        self._dialect = dialect
        self._max_attempts = max_attempts

    def start(
        self, connection: Connection, due: Sequence[Due], now: datetime, *, in_portions: bool
    ) -> list[Fired]:
        """Insert the runs of ``due`` and write down how many."""
        sql, keys = self._sql, [(d.expression, d.due_at) for d in due]
        last_id = connection.scalar(sql.last_run)
        values = {"rows": due_rows(due), **self._values(now)}
        inserted = (
            _by_portions(connection, sql.insert_portion_of_runs, values)
            if in_portions
            else _inserted(connection, sql.insert_runs, values)
        )
        if len(keys) == 1 and self._dialect != "mariadb":
            # MariaDB counts rows that it found as well.
            counts = {keys[0]: inserted}
            self._write_counts(connection, counts)
        else:
            counts = self._count(connection, last_id, set(keys))
        return [Fired(*key, counts.get(key, 0)) for key in keys]

    def start_late(
        self,
        connection: Connection,
        span: Mapping[str, object],
        late: Set[tuple[str, datetime]],
        now: datetime,
    ) -> int:
        """Insert the runs of ``late`` occurrences that a claim could not see yet; return how many."""
        last_id = connection.scalar(self._sql.last_run)
        connection.execute(self._sql.insert_late_runs, {**span, **self._values(now)})
        return sum(self._count(connection, last_id, late).values())

    def write_missed(
        self,
        connection: Connection,
        gaps: Collection[Gap],
        parsed: Mapping[str, Expression],
        now: datetime,
        *,
        in_portions: bool,
    ) -> None:
        """Give each trigger that missed something one run that says what.

        Triggers that were armed in the gap are told one by one. A join by when they were armed took
        minutes for 10,000 of them.
        """
        sql, values = self._sql, self._values(now)
        whole = {"rows": parameter(map(_missed, gaps)), **values}
        if in_portions:
            _by_portions(connection, sql.insert_portion_of_missed, whole)
        else:
            connection.execute(sql.insert_missed, whole)
        rows = list(self._since_armed(connection, gaps, parsed))
        for start in range(0, len(rows), PORTION):
            portion = {"rows": parameter(rows[start : start + PORTION]), **values}
            connection.execute(sql.insert_missed_since_armed, portion)

    def _since_armed(
        self, connection: Connection, gaps: Collection[Gap], parsed: Mapping[str, Expression]
    ) -> Iterable[Mapping[str, object]]:
        spans = parameter(
            {"expression": gap.expression, "first": gap.first, "last": gap.last} for gap in gaps
        )
        armed: dict[str, list[Any]] = {}
        for row in connection.execute(self._sql.arms_within, {"rows": spans}):
            armed.setdefault(row.expression, []).append(row)
        for gap in gaps:
            rows = armed.get(gap.expression, [])
            words = in_words_since(gap, parsed[gap.expression], (row.armed_at for row in rows))
            for row in sorted(rows, key=lambda row: (row.automation_id, row.trigger_id)):
                yield {
                    "expression": gap.expression,
                    "due_at": gap.last,
                    "automation_id": row.automation_id,
                    "trigger_id": row.trigger_id,
                    "detail": words[row.armed_at],
                }

    # --- counting -----------------------------------------------------------------------------------

    def _count(
        self, connection: Connection, last_id: int, wanted: Set[tuple[str, datetime]]
    ) -> dict[tuple[str, datetime], int]:
        """Write down and return how many of the runs after ``last_id`` belong to each of the ``wanted``."""
        rows = connection.execute(self._sql.count_runs, {"last_id": last_id})
        found = {(row.expression, row.due_at): row.runs for row in rows}
        counts = {key: runs for key, runs in found.items() if key in wanted}
        self._write_counts(connection, counts)
        return counts

    def _write_counts(
        self, connection: Connection, counts: Mapping[tuple[str, datetime], int]
    ) -> None:
        if counts:
            rows = (
                {"expression": expression, "due_at": due_at, "runs": runs}
                for (expression, due_at), runs in counts.items()
            )
            connection.execute(self._sql.add_counts, {"rows": parameter(rows)})

    def _values(self, now: datetime) -> dict[str, object]:
        return {"now": now, "max_attempts": self._max_attempts}


def due_rows(due: Iterable[Due]) -> str:
    """Return ``due`` as the statements take it."""
    return parameter({"expression": d.expression, "due_at": d.due_at} for d in due)


def _missed(gap: Gap) -> Mapping[str, object]:
    return {
        "expression": gap.expression,
        "due_at": gap.last,
        "first": gap.first,
        "detail": in_words(gap),
    }


def _inserted(connection: Connection, statement: TextClause, values: Mapping[str, object]) -> int:
    options = {"preserve_rowcount": True}
    return connection.execute(statement, values, execution_options=options).rowcount


def _by_portions(
    connection: Connection, statement: TextClause, values: Mapping[str, object]
) -> int:
    """Execute ``statement`` for one portion of the automations after the other."""
    ids = select(automations.c.id).order_by(automations.c.id)
    inserted, after = 0, ""
    while True:
        last = connection.scalar(ids.where(automations.c.id > after).offset(PORTION - 1).limit(1))
        # Beyond any id, which has small letters, digits and hyphens.
        bounds = {"after": after, "until": "~" if last is None else last}
        inserted += _inserted(connection, statement, {**values, **bounds})
        if last is None:
            return inserted
        after = last
