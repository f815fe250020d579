"""The database's last line: every CHECK refuses what it is for, whoever writes."""

import pytest
from sqlalchemy import CheckConstraint, Column, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from app.db import Database
from app.db.failures import Failure, classify
from app.models import metadata
from tests.migrations.bad_rows import BAD_ROWS
from tests.support.rows import GOOD, Sql, insert_all, insert_row

PARENTS = ("automations", "runs")


def every_check() -> set[str]:
    preparer = sqlite.dialect().identifier_preparer
    return {
        str(preparer.format_constraint(constraint))
        for table in metadata.sorted_tables
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }


def refusal(database: Database, table: str, row: dict[str, object]) -> str:
    with database.writer.connect() as connection:
        if database.dialect == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        for parent in PARENTS:
            if parent != table:
                insert_row(connection, parent)
        with pytest.raises(DBAPIError) as caught:
            insert_row(connection, table, **row)
    assert classify(caught.value) is Failure.CONSTRAINT
    return str(caught.value.orig)


def test_every_check_has_bad_rows() -> None:
    assert set(BAD_ROWS) == every_check()


def test_every_table_has_a_good_row() -> None:
    assert set(GOOD) == {table.name for table in metadata.sorted_tables}


def test_good_rows_are_taken(database: Database) -> None:
    database.write(insert_all)


@pytest.mark.parametrize("name", sorted(BAD_ROWS))
def test_a_check_refuses_its_bad_rows(database: Database, name: str) -> None:
    table, rows = BAD_ROWS[name]
    for row in rows:
        assert name in refusal(database, table, dict(row)), row


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("automations", {"id": "a"}),
        ("automations", {"id": "0" + "-" * 62}),
        ("automations", {"name": "é" * 1_000, "description": "🔔" * 100_000}),
        ("automations", {"name": "\u00a0", "description": ""}),
        ("automations", {"target_ref": "r" * 255, "target_workflow": "w" * 255}),
        ("automations", {"target_repository": "r" * 140, "revision": "0123456789abcdef" * 4}),
        ("automation_triggers", {"id": "0_-" + "z" * 60}),
        ("automation_triggers", {"expression": "e" * 255, "enabled": 0}),
    ],
)
def test_what_stands_on_the_edge_is_taken(
    database: Database, table: str, row: dict[str, object]
) -> None:
    def work(connection) -> None:
        if table != "automations":
            insert_row(connection, "automations")
        insert_row(connection, table, **row)

    database.write(work)


@pytest.mark.parametrize("table", ["automations", "automation_triggers"])
def test_an_empty_id_is_refused(database: Database, table: str) -> None:
    assert f"ck_{table}_id_" in refusal(database, table, {"id": ""})


def test_nul_in_an_id_is_refused_where_the_database_can_see_it(database: Database) -> None:
    nul = {"mariadb": "CONCAT('a', CHAR(0))", "postgresql": "'a' || chr(0)"}.get(database.dialect)
    if nul is None:
        # SQLite's GLOB and length() stop at NUL; the domain refuses the row when it reads it.
        database.write(lambda c: insert_row(c, "automations", id=Sql("'a' || char(0) || 'B'")))
        return
    with database.writer.connect() as connection, pytest.raises(DBAPIError):
        insert_row(connection, "automations", id=Sql(nul))


def _is_lone_number(table: Table, column: Column) -> bool:
    return column.type.python_type is int and table.primary_key.columns.values() == [column]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table.name, column.name)
        for table in metadata.sorted_tables
        for column in table.columns
        # SQLite gives a lone integer key a number of its own.
        if not column.nullable and not _is_lone_number(table, column)
    ],
)
def test_what_must_not_be_null_is_not(database: Database, table: str, column: str) -> None:
    assert column in refusal(database, table, {column: None})
