"""What the schema promises beyond its CHECKs: cascades, byte order, and ids that never come again."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.db import Database
from app.db.failures import Failure, classify
from app.models import metadata
from tests.support.rows import GOOD, insert_all, insert_row


def counted(database: Database, table: str) -> int:
    return database.read(lambda c: c.scalar(text(f"SELECT count(*) FROM {table}")))


@pytest.mark.parametrize(
    ("parent", "children"),
    [
        ("automations", {"automation_triggers", "automation_trigger_arms"}),
        ("runs", {"run_events", "run_idempotency_keys", "run_log_lines"}),
    ],
)
def test_children_go_with_their_parent_and_nothing_else_does(
    database: Database, parent: str, children: set[str]
) -> None:
    database.write(insert_all)
    database.write(lambda c: c.execute(text(f"DELETE FROM {parent}")))
    gone = {table for table in GOOD if counted(database, table) == 0}
    assert gone == {parent, *children}


@pytest.mark.parametrize(
    "child",
    [t.name for t in metadata.sorted_tables if any(c.foreign_keys for c in t.columns)],
)
def test_a_child_without_its_parent_is_refused(database: Database, child: str) -> None:
    with database.writer.connect() as connection, pytest.raises(DBAPIError) as caught:
        insert_row(connection, child)
    assert classify(caught.value) is Failure.CONSTRAINT


def test_trigger_ids_are_unique_in_their_automation_only(database: Database) -> None:
    def work(connection) -> None:
        for automation in ("one", "two"):
            insert_row(connection, "automations", id=automation)
            insert_row(connection, "automation_triggers", automation_id=automation)

    database.write(work)
    with database.writer.connect() as connection, pytest.raises(DBAPIError) as caught:
        insert_row(connection, "automation_triggers", automation_id="one", enabled=0)
    assert classify(caught.value) is Failure.UNIQUE


def test_ids_sort_by_byte(database: Database) -> None:
    ids = ["a", "a-b", "a-", "ab", "a0", "0", "z", "b", "9a", "a--b"]
    for automation in ids:
        database.write(lambda c, a=automation: insert_row(c, "automations", id=a))
    read = database.read(lambda c: c.scalars(text("SELECT id FROM automations ORDER BY id")).all())
    assert read == sorted(ids)
    after = database.read(
        lambda c: c.scalars(text("SELECT id FROM automations WHERE id > 'a-' ORDER BY id")).all()
    )
    assert after == sorted(i for i in ids if i > "a-")


def test_expressions_compare_and_sort_by_byte(database: Database) -> None:
    expressions = ["0 3 * * mon", "0 3 * * MON", "0 3 * * MON ", "0 3 * * Mon", "0 3 * * é"]

    def work(connection) -> None:
        for expression in expressions:
            insert_row(connection, "schedule_occurrences", expression=expression)

    database.write(work)
    for expression in expressions:
        found = database.read(
            lambda c, e=expression: c.scalars(
                text("SELECT expression FROM schedule_occurrences WHERE expression = :e"), {"e": e}
            ).all()
        )
        assert found == [expression]
    read = database.read(
        lambda c: c.scalars(
            text("SELECT expression FROM schedule_occurrences ORDER BY expression")
        ).all()
    )
    assert read == sorted(expressions, key=str.encode)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("run_idempotency_keys", "key"),
        ("automations", "id"),
        ("api_tokens", "id"),
        ("nodes", "id"),
    ],
)
def test_an_id_does_not_match_another_case_or_trailing_space(
    database: Database, table: str, key: str
) -> None:
    database.write(insert_all)
    value = str(GOOD[table][key])
    quoted = f"`{key}`" if database.dialect == "mariadb" else key
    for other in (value.upper(), f"{value} ", f"{value}\n"):
        found = database.read(
            lambda c, o=other: c.execute(
                text(f"SELECT 1 FROM {table} WHERE {quoted} = :o"), {"o": o}
            )
        )
        assert found.all() == []


@pytest.mark.parametrize("table", ["runs", "automation_history"])
def test_a_number_is_never_used_again(database: Database, table: str) -> None:
    def insert(connection) -> int:
        row = {k: v for k, v in GOOD[table].items() if k != "id"}
        return connection.execute(
            metadata.tables[table].insert().values(**_instants(row))
        ).inserted_primary_key[0]

    first = database.write(insert)
    database.write(lambda c: c.execute(text(f"DELETE FROM {table}")))
    assert database.write(insert) > first


def _instants(row: dict[str, object]) -> dict[str, object]:
    from datetime import UTC, datetime

    return {
        name: datetime.fromisoformat(value).replace(tzinfo=UTC)
        if name.endswith("_at") and isinstance(value, str)
        else value
        for name, value in row.items()
    }


def test_microseconds_are_kept_in_order(database: Database) -> None:
    def work(connection) -> None:
        for micro in ("000001", "999999", "5"):
            insert_row(
                connection, "schedule_occurrences", due_at=f"2026-01-01 12:00:00.{micro:0<6}"
            )

    database.write(work)
    table = metadata.tables["schedule_occurrences"]
    instants = database.read(
        lambda c: c.scalars(
            table.select().with_only_columns(table.c.due_at).order_by("due_at")
        ).all()
    )
    assert [i.microsecond for i in instants] == [1, 500_000, 999_999]
    assert all(i.utcoffset().total_seconds() == 0 for i in instants)
