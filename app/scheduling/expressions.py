"""Reads which expressions are enabled, at a cost that grows with the expressions, not the triggers."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, String, bindparam, text

from app.db import Database
from app.db.types import Instant

OPEN_WRITES = timedelta(seconds=30)
"""How long before it was seen a definition may have been armed, its transaction being slow."""

# A plain DISTINCT reads every trigger on SQLite and PostgreSQL; this jumps from one to the next.
_LOOSE_SCAN = """
WITH RECURSIVE found(expression) AS (
    SELECT * FROM (
        SELECT expression FROM automation_triggers WHERE enabled = 1 ORDER BY expression LIMIT 1
    ) AS smallest
    UNION ALL
    SELECT (
        SELECT t.expression FROM automation_triggers t
        WHERE t.enabled = 1 AND t.expression > found.expression
        ORDER BY t.expression LIMIT 1
    ) FROM found WHERE found.expression IS NOT NULL
)
SELECT 1 AS enabled, expression FROM found WHERE expression IS NOT NULL"""

# MariaDB scans loosely by itself, if nothing is asked of ``enabled``.
_DISTINCT = "SELECT DISTINCT enabled, expression FROM automation_triggers"

_RECENTLY_ARMED = (
    text(
        """SELECT t.expression, min(r.armed_at) AS armed_at
        FROM automation_trigger_arms r
        JOIN automation_triggers t
            ON t.automation_id = r.automation_id AND t.id = r.trigger_id AND t.enabled = 1
        WHERE r.armed_at > :since GROUP BY t.expression"""
    )
    .bindparams(bindparam("since", type_=Instant()))
    .columns(expression=String(), armed_at=Instant())
)


class EnabledExpressions:
    """Reads the enabled expressions; each method may raise DatabaseUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._query = text(_DISTINCT if database.dialect == "mariadb" else _LOOSE_SCAN)

    def read(self) -> tuple[datetime, frozenset[str]]:
        """Return the distinct enabled expressions, and an instant before they were read."""

        def work(connection: Connection) -> tuple[datetime, frozenset[str]]:
            now = self._database.now(connection)
            rows = connection.execute(self._query)
            return now, frozenset(expression for enabled, expression in rows if enabled == 1)

        return self._database.read(work)

    def recently_armed(self, before: datetime) -> dict[str, datetime]:
        """Return, by expression, the first trigger armed in the last seconds before ``before``."""
        since = {"since": before - OPEN_WRITES}
        return self._database.read(
            lambda c: {row.expression: row.armed_at for row in c.execute(_RECENTLY_ARMED, since)}
        )
