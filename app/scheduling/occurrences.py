"""Claims occurrences: whichever node inserts the row ``(expression, due_at)`` starts its runs.

A claim is one write transaction for all that is due together. It reads the definitions as they are
committed, so that nobody's memory decides what fires.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, select

from app import cron
from app.cron import Expression
from app.db import Database
from app.errors import DatabaseTooSlow, DatabaseUnavailable
from app.scheduling.missed import Plan, baseline, fires_straight, plan
from app.scheduling.models import schedule_occurrences
from app.scheduling.starting import RunWriter, due_rows
from app.scheduling.statements import parameter, statements
from app.scheduling.values import AHEAD, Claimed, Due, Gap

_TRIES = 50
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_LATE_WRITERS = timedelta(minutes=2)
"""How long before an occurrence a trigger may have been armed by a transaction that was still open."""


class OccurrenceLedger:
    """Keeps the table of occurrences; any number of nodes may use it at the same time.

    ``catch_up`` is how old an occurrence may be to be still fired, ``max_attempts`` what its runs get.
    """

    def __init__(self, database: Database, *, catch_up: timedelta, max_attempts: int) -> None:
        self._database = database
        self._sql = statements(database.dialect)
        self._catch_up = catch_up
        self._runs = RunWriter(self._sql, database.dialect, max_attempts)
        self._large: set[str] = set()
        """Expressions with more triggers than one statement can serve within its time limit."""

    def claim(self, due: Sequence[Due], node: str) -> Claimed:
        """Claim what of ``due`` nobody has claimed yet, at most one instant of each expression.

        Starts a run of every trigger that is enabled and was armed in time, and writes down what was
        missed before. Raises DatabaseUnavailable, with nothing done.
        """
        for tries in range(_TRIES):
            try:
                claimed = self._database.write(lambda c: self._claim(c, due, node))
            except _Overtaken:
                continue
            except DatabaseTooSlow:
                expressions = {d.expression for d in due}
                if expressions <= self._large:
                    raise
                self._large |= expressions
                continue
            return replace(claimed, overtaken=tries)
        raise DatabaseUnavailable("other nodes kept claiming the same occurrences; try again")

    def sweep(self, due: Sequence[Due]) -> int:
        """Start the runs of triggers that were armed in time but committed after the claim.

        Returns how many. It is cheap where there are none. Raises DatabaseUnavailable.
        """
        span = {
            "first": min(d.due_at for d in due),
            "last": max(d.due_at for d in due),
            "armed_after": min(d.due_at for d in due) - _LATE_WRITERS,
        }
        late = self._database.read(lambda c: c.execute(self._sql.late, span).all())
        found = {(row.expression, row.due_at) for row in late}
        if not found:
            return 0

        def work(connection: Connection) -> int:
            return self._runs.start_late(connection, span, found, self._database.now(connection))

        return self._database.write(work)

    def purge_occurrences(self, older_than: datetime, batch: int = 1_000) -> int:
        """Delete occurrences due before ``older_than``, and return how many.

        At most ``batch`` of one expression in one transaction. The newest of each expression is
        kept, as it says from where on something can have been missed. Raises DatabaseUnavailable.
        """
        return sum(
            self._purge(expression, older_than, batch)
            for expression in self._recorded_expressions()
        )

    # --- a claim ------------------------------------------------------------------------------------

    def _claim(self, connection: Connection, due: Sequence[Due], node: str) -> Claimed:
        now = self._database.now(connection)
        ready = {d.expression: d for d in due if d.due_at <= now + AHEAD}
        early = tuple(d for d in due if d.due_at > now + AHEAD)
        if not ready:
            return Claimed(now, early=early)
        parsed = {expression: cron.parse(expression) for expression in ready}
        plans = self._plans(connection, ready, parsed, now)
        gaps = tuple(p.gap for p in plans if p.gap is not None)
        fires = [p.due for p in plans if p.due is not None]
        won = self._insert_occurrences(connection, fires, gaps, node, now)
        if any((gap.expression, instant) not in won for gap in gaps for instant in gap.kept):
            raise _Overtaken
        ours = [d for d in fires if (d.expression, d.due_at) in won]
        in_portions = not self._large.isdisjoint(ready)
        fired = self._runs.start(connection, ours, now, in_portions=in_portions) if ours else []
        if gaps:
            self._runs.write_missed(connection, gaps, parsed, now, in_portions=in_portions)
        return Claimed(now, tuple(fired), gaps, early)

    def _plans(
        self,
        connection: Connection,
        ready: Mapping[str, Due],
        parsed: Mapping[str, Expression],
        now: datetime,
    ) -> list[Plan]:
        rows = connection.execute(
            self._sql.newest, {"rows": due_rows(ready.values()), "horizon": now + AHEAD}
        )
        newest: dict[str, datetime | None] = {row.expression: row.newest for row in rows}
        new = {e: d for e, d in ready.items() if (newest[e] or _LONG_AGO) < d.due_at}
        odd = [d for e, d in new.items() if not fires_straight(d, newest[e], parsed[e], now)]
        armed = self._armed(connection, odd, newest) if odd else {}
        return [
            plan(d, newest[e], armed.get(e), parsed[e], now, self._catch_up) for e, d in new.items()
        ]

    def _armed(
        self, connection: Connection, due: Sequence[Due], newest: Mapping[str, datetime | None]
    ) -> dict[str, datetime]:
        """Return from when the triggers of each expression count.

        One without an arm counts from where the records end; where there are none, nothing tells.
        """
        known = {d.expression: baseline(d, newest[d.expression]) for d in due}
        found = {}
        for row in connection.execute(self._sql.armed, {"rows": due_rows(due)}):
            unarmed = known[row.expression] if row.unarmed else None
            candidates = [instant for instant in (row.earliest, unarmed) if instant is not None]
            if candidates:
                found[row.expression] = min(candidates)
        return found

    def _insert_occurrences(
        self,
        connection: Connection,
        fires: Sequence[Due],
        gaps: Sequence[Gap],
        node: str,
        now: datetime,
    ) -> set[tuple[str, datetime]]:
        rows: list[dict[str, object]] = [
            {"expression": d.expression, "due_at": d.due_at, "state": "fired"} for d in fires
        ]
        for gap in gaps:
            rows += (
                {"expression": gap.expression, "due_at": instant, "state": "missed"}
                for instant in gap.kept
            )
        if not rows:
            return set()
        inserted = connection.execute(
            self._sql.insert_occurrences, {"rows": parameter(rows), "now": now, "node": node}
        )
        return {(row.expression, row.due_at) for row in inserted}

    # --- purging ------------------------------------------------------------------------------------

    def _recorded_expressions(self) -> list[str]:
        """Return the recorded expressions, one index look-up each."""
        column = schedule_occurrences.c.expression
        found: list[str] = []
        query = select(column).order_by(column).limit(1)
        while True:
            after = query.where(column > found[-1]) if found else query
            expression = self._database.read(lambda c, q=after: c.scalar(q))  # type: ignore[misc]
            if expression is None:
                return found
            found.append(expression)

    def _purge(self, expression: str, older_than: datetime, batch: int) -> int:
        table = schedule_occurrences
        of_this = table.c.expression == expression
        due_at = select(table.c.due_at).where(of_this)

        def work(connection: Connection) -> int:
            horizon = self._database.now(connection) + AHEAD
            newest = connection.scalar(
                due_at.where(table.c.due_at <= horizon).order_by(table.c.due_at.desc()).limit(1)
            )
            if newest is None:
                return 0
            old = due_at.where(table.c.due_at < min(older_than, newest)).order_by(table.c.due_at)
            last = connection.scalars(old.limit(batch)).all()
            if not last:
                return 0
            gone = delete(table).where(of_this, table.c.due_at <= last[-1])
            return connection.execute(gone).rowcount

        purged = 0
        while count := self._database.write(work):
            purged += count
        return purged


class _Overtaken(Exception):
    """Another node recorded something in the gap meanwhile, so the plan no longer holds."""
