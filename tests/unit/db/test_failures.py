"""What the drivers' errors mean, as far as no server is needed to raise them."""

import sqlite3

import psycopg
import pymysql
import pytest
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.db.failures import Failure, classify, reason_of


def wrapped(cause: Exception, *, dead: bool = False) -> DBAPIError:
    return DBAPIError("SELECT secret", {"p": "secret"}, cause, connection_invalidated=dead)


def of_sqlite(code: int | None, text: str = "") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    if code is not None:
        error.sqlite_errorcode = code
    return error


def of_postgres(state: str) -> psycopg.Error:
    return psycopg.errors.lookup(state)("x")


@pytest.mark.parametrize(
    ("cause", "failure"),
    [
        (of_sqlite(sqlite3.SQLITE_BUSY), Failure.RACE),
        (of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), Failure.RACE),
        (of_sqlite(sqlite3.SQLITE_LOCKED), Failure.RACE),
        (of_sqlite(sqlite3.SQLITE_READONLY_DBMOVED), Failure.AWAY),
        (of_sqlite(sqlite3.SQLITE_IOERR_WRITE), Failure.AWAY),
        (of_sqlite(sqlite3.SQLITE_FULL), Failure.AWAY),
        (of_sqlite(sqlite3.SQLITE_CANTOPEN), Failure.AWAY),
        (of_sqlite(sqlite3.SQLITE_CORRUPT), Failure.AWAY),
        (of_sqlite(sqlite3.SQLITE_NOTADB), Failure.AWAY),
        (of_sqlite(sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY), Failure.UNIQUE),
        (of_sqlite(sqlite3.SQLITE_CONSTRAINT_UNIQUE), Failure.UNIQUE),
        (of_sqlite(sqlite3.SQLITE_CONSTRAINT_CHECK), Failure.CONSTRAINT),
        (of_sqlite(sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY), Failure.CONSTRAINT),
        (of_sqlite(sqlite3.SQLITE_CONSTRAINT_TRIGGER), Failure.CONSTRAINT),
        (of_sqlite(sqlite3.SQLITE_ERROR, "no such table: x"), Failure.SCHEMA),
        (of_sqlite(sqlite3.SQLITE_ERROR, "no such column: x"), Failure.SCHEMA),
        (of_sqlite(sqlite3.SQLITE_ERROR, 'near "SELEC": syntax error'), Failure.BUG),
        (of_sqlite(None, "Could not decode to UTF-8 column"), Failure.BUG),
        (of_postgres("23505"), Failure.UNIQUE),
        (of_postgres("23514"), Failure.CONSTRAINT),
        (of_postgres("23503"), Failure.CONSTRAINT),
        (of_postgres("40001"), Failure.RACE),
        (of_postgres("40P01"), Failure.RACE),
        (of_postgres("55P03"), Failure.RACE),
        (of_postgres("57014"), Failure.SLOW),
        (of_postgres("57P01"), Failure.AWAY),
        (of_postgres("53300"), Failure.AWAY),
        (of_postgres("25006"), Failure.AWAY),
        (of_postgres("28P01"), Failure.AWAY),
        (of_postgres("3D000"), Failure.AWAY),
        (of_postgres("42501"), Failure.AWAY),
        (of_postgres("42P01"), Failure.SCHEMA),
        (of_postgres("42703"), Failure.SCHEMA),
        (of_postgres("42601"), Failure.BUG),
        (of_postgres("22021"), Failure.BUG),
        (psycopg.OperationalError("connection refused"), Failure.AWAY),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL"), Failure.BUG),
        (pymysql.err.IntegrityError(1062, "x"), Failure.UNIQUE),
        (pymysql.err.OperationalError(4025, "x"), Failure.CONSTRAINT),
        (pymysql.err.IntegrityError(1452, "x"), Failure.CONSTRAINT),
        (pymysql.err.DataError(1406, "x"), Failure.CONSTRAINT),
        (pymysql.err.OperationalError(1644, "SIGNAL"), Failure.CONSTRAINT),
        (pymysql.err.OperationalError(1205, "x"), Failure.RACE),
        (pymysql.err.OperationalError(1213, "x"), Failure.RACE),
        (pymysql.err.OperationalError(2003, "x"), Failure.AWAY),
        (pymysql.err.OperationalError(2013, "x"), Failure.AWAY),
        (pymysql.err.OperationalError(1969, "x"), Failure.SLOW),
        (pymysql.err.OperationalError(1290, "x"), Failure.AWAY),
        (pymysql.err.ProgrammingError(1146, "x"), Failure.SCHEMA),
        (pymysql.err.OperationalError(1054, "x"), Failure.SCHEMA),
        (pymysql.err.ProgrammingError(1064, "x"), Failure.BUG),
        (pymysql.err.InterfaceError(0, ""), Failure.BUG),
    ],
    ids=lambda value: value.name if isinstance(value, Failure) else repr(value)[:60],
)
def test_an_error_is_classified(cause: Exception, failure: Failure) -> None:
    assert classify(wrapped(cause)) is failure


def test_a_dead_connection_is_away_whatever_its_words() -> None:
    assert classify(wrapped(RuntimeError("?"), dead=True)) is Failure.AWAY
    assert classify(InterfaceError("", {}, pymysql.err.InterfaceError(0, ""))) is Failure.AWAY


def test_a_full_pool_is_away() -> None:
    assert classify(PoolTimeout("x")) is Failure.AWAY
    assert reason_of(PoolTimeout("x")) == "no connection became free in time"


def test_an_error_of_ours_is_a_bug() -> None:
    assert classify(ArgumentError("x")) is Failure.BUG


def test_a_reason_is_one_short_line_without_sql_or_parameters() -> None:
    cause = pymysql.err.OperationalError(2003, "cannot\n  connect " + "x" * 500)
    reason = reason_of(OperationalError("SELECT secret", {"p": "secret"}, cause))
    assert reason.startswith("cannot connect x")
    assert len(reason) <= 200
    assert "secret" not in reason
    assert reason_of(wrapped(RuntimeError())) == "RuntimeError"


@pytest.mark.parametrize(
    "cause",
    [
        pymysql.err.OperationalError(1698, "Access denied: no such plugin"),
        pymysql.err.OperationalError(1130, "Host is not allowed to connect"),
        psycopg.ProgrammingError("missing '=' in the connection string"),
    ],
)
def test_what_happens_outside_our_statements_is_a_database_that_is_away(cause: Exception) -> None:
    reaching = OperationalError(None, None, cause)
    assert classify(reaching) is Failure.AWAY
