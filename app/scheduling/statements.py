"""The SQL of a claim, for each kind of database.

Sets of rows are handed over as one JSON parameter, whatever their number, and joined like a table.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Literal

from sqlalchemy import Integer, String, TextClause, bindparam, text

from app.db.types import Instant

Kind = Literal["text", "instant", "number"]

DUE: Mapping[str, Kind] = {"expression": "text", "due_at": "instant"}
OCCURRENCE: Mapping[str, Kind] = {**DUE, "state": "text"}
COUNTED: Mapping[str, Kind] = {**DUE, "runs": "number"}
SPAN: Mapping[str, Kind] = {"expression": "text", "first": "instant", "last": "instant"}
MISSED: Mapping[str, Kind] = {**DUE, "first": "instant", "detail": "text"}
MISSED_SINCE_ARMED: Mapping[str, Kind] = {
    **DUE,
    "automation_id": "text",
    "trigger_id": "text",
    "detail": "text",
}

_TYPES: Mapping[str, Mapping[Kind, str]] = {
    "postgresql": {"text": 'text COLLATE "C"', "instant": "timestamptz", "number": "integer"},
    "mariadb": {
        "text": "VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        "instant": "DATETIME(6)",
        "number": "INTEGER",
    },
}

_INSTANTS = {"now", "horizon", "armed_after", "first", "last"}

_ENABLED = "JOIN automation_triggers t ON t.enabled = 1 AND t.expression = due.expression"
_ARM = """LEFT JOIN automation_trigger_arms r
    ON r.automation_id = t.automation_id AND r.trigger_id = t.id"""
_PORTION = "AND t.automation_id > :after AND t.automation_id <= :until"
_RUN_COLUMNS = """automation_id, automation_name, automation_revision, trigger_type, trigger_id,
    target_repository, target_ref, target_workflow, due_at, queued_at, attempt, max_attempts,
    events, state, finished_at, reason_code, reason_detail"""
_RUN_VALUES = """a.id, a.name, a.revision, 'schedule', due.trigger_id, a.target_repository, a.target_ref,
    a.target_workflow, due.due_at, :now, 0, :max_attempts, 0"""


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements of one dialect. Those that take ``:rows`` name the columns they read."""

    newest: TextClause
    """DUE → expression, newest: the newest recorded occurrence up to :horizon."""
    armed: TextClause
    """DUE → expression, earliest, unarmed: from when the enabled triggers count."""
    arms_within: TextClause
    """SPAN → expression, automation_id, trigger_id, armed_at of what was armed after first, up to last."""
    insert_occurrences: TextClause
    """OCCURRENCE → expression, due_at of those that were not there yet."""
    insert_runs: TextClause
    """DUE: a run of each trigger that is enabled and was armed in time."""
    insert_portion_of_runs: TextClause
    """The same for automations with ids above :after, up to :until."""
    insert_missed: TextClause
    """MISSED: a run in state missed of each trigger that counted from first on."""
    insert_portion_of_missed: TextClause
    """The same for automations with ids above :after, up to :until."""
    insert_missed_since_armed: TextClause
    """MISSED_SINCE_ARMED: a run in state missed of the trigger that it names, if that is enabled still."""
    late: TextClause
    """→ expression, due_at of what fired from :first to :last, where a trigger that was armed in time,
    but after :armed_after, has no run."""
    insert_late_runs: TextClause
    """The runs that ``late`` misses."""
    count_runs: TextClause
    """Of the runs after :last_id → expression, due_at, runs."""
    add_counts: TextClause
    """COUNTED: add to the number of runs of each occurrence."""
    last_run: TextClause


@cache
def statements(dialect: str) -> Statements:
    """Return the statements for ``dialect``: sqlite, postgresql or mariadb."""
    due, maria = _rows(dialect, DUE), dialect == "mariadb"
    ignore = "IGNORE" if maria else ""
    nothing = "" if maria else "ON CONFLICT DO NOTHING"
    # IGNORE would swallow every error, not only a run that is there already.
    keep = (
        "ON DUPLICATE KEY UPDATE automation_id = runs.automation_id"
        if maria
        else "ON CONFLICT (automation_id, trigger_id, due_at) DO NOTHING"
    )
    late = _late(dialect)
    join = "CROSS JOIN" if dialect == "sqlite" else "JOIN"

    def insert_runs(portion: str = "") -> TextClause:
        return _statement(
            f"""INSERT INTO runs ({_RUN_COLUMNS})
            SELECT {_RUN_VALUES}, 'queued', NULL, NULL, NULL
            FROM {_triggers(dialect, DUE, portion)}
            WHERE r.armed_at IS NULL OR r.armed_at <= due.due_at {keep}"""
        )

    def insert_missed(portion: str = "") -> TextClause:
        return _statement(
            f"""INSERT INTO runs ({_RUN_COLUMNS})
            SELECT {_RUN_VALUES}, 'missed', :now, 'missed', due.detail
            FROM {_triggers(dialect, MISSED, portion)}
            WHERE r.armed_at IS NULL OR r.armed_at <= due.first {keep}"""
        )

    return Statements(
        newest=_result(
            f"""SELECT due.expression, (
                SELECT o.due_at FROM schedule_occurrences o
                WHERE o.expression = due.expression AND o.due_at <= :horizon
                ORDER BY o.due_at DESC LIMIT 1
            ) AS newest FROM {due}""",
            newest=Instant(),
        ),
        armed=_result(
            f"""SELECT due.expression, min(r.armed_at) AS earliest,
                count(*) - count(r.armed_at) AS unarmed
            FROM {due} {_ENABLED} {_ARM} GROUP BY due.expression""",
            earliest=Instant(),
            unarmed=Integer(),
        ),
        arms_within=_result(
            f"""SELECT due.expression, t.automation_id, t.id AS trigger_id, r.armed_at
            FROM {_rows(dialect, SPAN)} {_ENABLED} {_ARM}
            WHERE r.armed_at > due.first AND r.armed_at <= due.last""",
            armed_at=Instant(),
        ),
        insert_occurrences=_result(
            f"""INSERT {ignore} INTO schedule_occurrences
                (expression, due_at, state, claimed_at, node, runs)
            SELECT due.expression, due.due_at, due.state, :now, :node, 0
            FROM {_rows(dialect, OCCURRENCE)} WHERE 1 = 1
            ORDER BY due.expression, due.due_at
            {nothing} RETURNING expression, due_at""",
            due_at=Instant(),
        ),
        insert_runs=insert_runs(),
        insert_portion_of_runs=insert_runs(_PORTION),
        insert_missed=insert_missed(),
        insert_portion_of_missed=insert_missed(_PORTION),
        insert_missed_since_armed=_statement(
            f"""INSERT INTO runs ({_RUN_COLUMNS})
            SELECT {_RUN_VALUES}, 'missed', :now, 'missed', due.detail
            FROM {_rows(dialect, MISSED_SINCE_ARMED)}
            {join} automation_triggers t ON t.automation_id = due.automation_id
                AND t.id = due.trigger_id AND t.enabled = 1 AND t.expression = due.expression
            {join} automations a ON a.id = due.automation_id WHERE 1 = 1 {keep}"""
        ),
        late=_result(
            f"SELECT DISTINCT due.expression, due.due_at FROM {late}",
            due_at=Instant(),
        ),
        insert_late_runs=_statement(
            f"""INSERT INTO runs ({_RUN_COLUMNS})
            SELECT {_RUN_VALUES}, 'queued', NULL, NULL, NULL
            FROM {late} JOIN automations a ON a.id = due.automation_id
            ORDER BY due.automation_id, due.trigger_id {keep}"""
        ),
        # Joined with ``due``, planners compared each run with each of them: 30 s instead of 0.1 s.
        count_runs=_result(
            """SELECT t.expression, x.due_at, count(*) AS runs
            FROM runs x
            JOIN automation_triggers t ON t.automation_id = x.automation_id AND t.id = x.trigger_id
            WHERE x.id > :last_id AND x.due_at IS NOT NULL AND x.state = 'queued'
            GROUP BY t.expression, x.due_at""",
            due_at=Instant(),
            runs=Integer(),
        ),
        add_counts=text(
            f"""UPDATE schedule_occurrences o JOIN {_rows(dialect, COUNTED)}
                ON o.expression = due.expression AND o.due_at = due.due_at
            SET o.runs = o.runs + due.runs"""
            if maria
            else f"""UPDATE schedule_occurrences SET runs = schedule_occurrences.runs + due.runs
            FROM {_rows(dialect, COUNTED)}
            WHERE schedule_occurrences.expression = due.expression
                AND schedule_occurrences.due_at = due.due_at"""
        ),
        last_run=text("SELECT coalesce(max(id), 0) FROM runs"),
    )


def parameter(rows: Iterable[Mapping[str, object]]) -> str:
    """Return the JSON that the statements take as ``:rows``."""
    return json.dumps([{key: _plain(value) for key, value in row.items()} for row in rows])


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    return value


def _rows(dialect: str, columns: Mapping[str, Kind]) -> str:
    """Return a table named ``due`` that reads ``columns`` from the JSON parameter ``:rows``."""
    if dialect == "sqlite":
        listed = ", ".join(f"value ->> '$.{name}' AS {name}" for name in columns)
        return f"(SELECT {listed} FROM json_each(:rows)) AS due"
    types = _TYPES[dialect]
    if dialect == "postgresql":
        listed = ", ".join(f"{name} {types[kind]}" for name, kind in columns.items())
        return f"json_to_recordset(CAST(:rows AS json)) AS due({listed})"
    listed = ", ".join(f"{name} {types[kind]} PATH '$.{name}'" for name, kind in columns.items())
    return f"JSON_TABLE(:rows, '$[*]' COLUMNS({listed})) AS due"


def _triggers(dialect: str, columns: Mapping[str, Kind], portion: str) -> str:
    """Return the enabled triggers of the given rows, with their automation ``a`` and arm ``r``.

    SQLite goes through them in the order of the tables' keys: in the order of the expressions, each
    look-up and each insert would go to another page (7 s instead of 1 s for 100,000).
    """
    sqlite = dialect == "sqlite"
    order = "ORDER BY t.automation_id, t.id LIMIT -1" if sqlite else ""
    listed = ", ".join(f"due.{name} AS {name}" for name in columns)
    return f"""(SELECT t.automation_id AS automation_id, t.id AS trigger_id, {listed}
            FROM {_rows(dialect, columns)} {_ENABLED} {portion} {order}) AS due
        {"CROSS JOIN" if sqlite else "JOIN"} automations a ON a.id = due.automation_id
        LEFT JOIN automation_trigger_arms r
            ON r.automation_id = due.automation_id AND r.trigger_id = due.trigger_id"""


def _late(dialect: str) -> str:
    """Return the triggers that should have fired but were committed too late to be seen.

    It begins with the arms, of which few are recent; SQLite has to be told.
    """
    join = "CROSS JOIN" if dialect == "sqlite" else "JOIN"
    return f"""(SELECT o.expression, o.due_at, t.automation_id, t.id AS trigger_id
        FROM automation_trigger_arms r
        {join} automation_triggers t
            ON t.automation_id = r.automation_id AND t.id = r.trigger_id AND t.enabled = 1
        {join} schedule_occurrences o
            ON o.expression = t.expression AND o.due_at >= :first AND o.due_at <= :last
            AND o.due_at >= r.armed_at AND o.state = 'fired'
        LEFT JOIN runs x ON x.automation_id = t.automation_id AND x.trigger_id = t.id
            AND x.due_at = o.due_at
        WHERE r.armed_at > :armed_after AND r.armed_at <= :last AND x.id IS NULL) AS due"""


def _statement(sql: str) -> TextClause:
    """Return ``sql`` with its instants told apart from text."""
    instants = sorted(_INSTANTS & set(re.findall(r":(\w+)", sql)))
    return text(sql).bindparams(*(bindparam(name, type_=Instant()) for name in instants))


def _result(sql: str, **types: object) -> TextClause:
    statement = _statement(sql)
    return statement.columns(expression=String(), **types)  # type: ignore[arg-type,return-value]
