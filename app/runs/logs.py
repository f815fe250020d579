"""The logs of runs, written by the worker that holds a run and read by everyone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, insert, select

from app.db import Database
from app.runs.models import run_log_lines, runs
from app.runs.values import LogLine, storable

_lines = run_log_lines
LINE_LIMIT = 20_000
"""Characters that a line may have here; what writes lines cuts them well before."""


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line that has no number yet."""

    stream: str
    logged_at: datetime
    text: str


class RunLogs:
    """Keeps the lines of runs in SQL. Every method may raise DatabaseUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(
        self,
        run_id: int,
        worker: str,
        attempt: int,
        lines: Sequence[NewLine],
        *,
        after: int | None = None,
    ) -> int | None:
        """Add ``lines`` if ``worker`` still holds the attempt; return the last number, else None.

        ``after`` is what the call before for this attempt returned, None for the first one. So lines
        that were written although their answer was lost are not written twice.
        """

        def work(connection: Connection) -> int | None:
            # The lock keeps a reaper from taking the run until the lines are committed.
            holds = connection.scalar(
                select(runs.c.id)
                .where(
                    runs.c.id == run_id,
                    runs.c.state == "running",
                    runs.c.worker == worker,
                    runs.c.attempt == attempt,
                )
                .with_for_update(key_share=True)
            )
            if holds is None:
                return None
            base = _last_of_others(connection, run_id, attempt) if after is None else after
            there = _last(connection, run_id) or base
            number = max(there, base)
            new = [
                {
                    "run_id": run_id,
                    "number": number + offset,
                    "attempt": attempt,
                    "stream": line.stream,
                    "logged_at": line.logged_at,
                    "text": storable(line.text, LINE_LIMIT),
                }
                for offset, line in enumerate(lines[number - base :], start=1)
            ]
            if new:
                connection.execute(insert(_lines), new)
            return number + len(new)

        return self._database.write(work)

    def read(
        self, run_id: int, after: int = 0, attempt: int | None = None, limit: int = 1000
    ) -> list[LogLine]:
        """Return at most ``limit`` lines with numbers above ``after``, of one attempt or of all."""
        query = select(_lines).where(_lines.c.run_id == run_id, _lines.c.number > after)
        if attempt is not None:
            query = query.where(_lines.c.attempt == attempt)
        query = query.order_by(_lines.c.number).limit(limit)
        return self._database.read(
            lambda c: [
                LogLine(row.number, row.attempt, row.stream, row.logged_at, row.text)
                for row in c.execute(query)
            ]
        )


def _last(connection: Connection, run_id: int) -> int | None:
    query = select(func.max(_lines.c.number)).where(_lines.c.run_id == run_id)
    last: int | None = connection.scalar(query)
    return last


def _last_of_others(connection: Connection, run_id: int, attempt: int) -> int:
    query = select(func.max(_lines.c.number)).where(
        _lines.c.run_id == run_id, _lines.c.attempt < attempt
    )
    return connection.scalar(query) or 0
