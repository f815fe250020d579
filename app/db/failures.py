"""What a driver's error means: a broken constraint, a lost race, a database that is away, or a bug.

The drivers disagree about classes (MariaDB reports a CHECK as OperationalError 4025, psycopg a read-only
server as InternalError), so codes decide: SQLSTATE on PostgreSQL, the error number on MariaDB, the
extended result code on SQLite.
"""

import sqlite3
from enum import Enum, auto

import psycopg
from sqlalchemy.exc import DBAPIError, InterfaceError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout


class Failure(Enum):
    """What to do about an error."""

    UNIQUE = auto()
    """A key is taken."""
    CONSTRAINT = auto()
    """Another constraint refused the row, or a trigger that is not ours."""
    RACE = auto()
    """A deadlock, a lock that was not had in time, a snapshot that went stale: try again."""
    AWAY = auto()
    """The database is unreachable, full, read-only or shutting down."""
    SLOW = auto()
    """The server ended a statement that took longer than its limit."""
    SCHEMA = auto()
    """A table or a column is missing: the migrations have not run."""
    BUG = auto()
    """Ours."""


# The first two characters of a SQLSTATE, unless the whole one says more.
_POSTGRES_CLASSES = {
    "08": Failure.AWAY,
    "23": Failure.CONSTRAINT,
    "25": Failure.AWAY,
    "28": Failure.AWAY,
    "3D": Failure.AWAY,
    "40": Failure.RACE,
    "53": Failure.AWAY,
    "55": Failure.RACE,
    "57": Failure.AWAY,
    "58": Failure.AWAY,
    "P0": Failure.CONSTRAINT,
    "XX": Failure.AWAY,
}
_POSTGRES_CODES = {
    "23505": Failure.UNIQUE,
    "42P01": Failure.SCHEMA,
    "42703": Failure.SCHEMA,
    "42501": Failure.AWAY,
    "57014": Failure.SLOW,
}

_MARIADB_CODES = {
    1062: Failure.UNIQUE,
    1048: Failure.CONSTRAINT,
    1406: Failure.CONSTRAINT,
    1451: Failure.CONSTRAINT,
    1452: Failure.CONSTRAINT,
    1644: Failure.CONSTRAINT,
    4025: Failure.CONSTRAINT,
    1020: Failure.RACE,
    1205: Failure.RACE,
    1213: Failure.RACE,
    1054: Failure.SCHEMA,
    1146: Failure.SCHEMA,
    1021: Failure.AWAY,
    1040: Failure.AWAY,
    1044: Failure.AWAY,
    1045: Failure.AWAY,
    1049: Failure.AWAY,
    1053: Failure.AWAY,
    1114: Failure.AWAY,
    1129: Failure.AWAY,
    1142: Failure.AWAY,
    1152: Failure.AWAY,
    1159: Failure.AWAY,
    1161: Failure.AWAY,
    1180: Failure.AWAY,
    1203: Failure.AWAY,
    1226: Failure.AWAY,
    1290: Failure.AWAY,
    1317: Failure.AWAY,
    1792: Failure.AWAY,
    1836: Failure.AWAY,
    1927: Failure.AWAY,
    1969: Failure.SLOW,
    2002: Failure.AWAY,
    2003: Failure.AWAY,
    2006: Failure.AWAY,
    2013: Failure.AWAY,
    2014: Failure.AWAY,
    3024: Failure.SLOW,
}

# The low byte of SQLite's extended result code.
_SQLITE_CODES = {
    sqlite3.SQLITE_BUSY: Failure.RACE,
    sqlite3.SQLITE_LOCKED: Failure.RACE,
    sqlite3.SQLITE_CONSTRAINT: Failure.CONSTRAINT,
    sqlite3.SQLITE_CANTOPEN: Failure.AWAY,
    sqlite3.SQLITE_CORRUPT: Failure.AWAY,
    sqlite3.SQLITE_FULL: Failure.AWAY,
    sqlite3.SQLITE_INTERRUPT: Failure.AWAY,
    sqlite3.SQLITE_IOERR: Failure.AWAY,
    sqlite3.SQLITE_NOTADB: Failure.AWAY,
    sqlite3.SQLITE_PERM: Failure.AWAY,
    sqlite3.SQLITE_AUTH: Failure.AWAY,
    sqlite3.SQLITE_PROTOCOL: Failure.RACE,
    sqlite3.SQLITE_READONLY: Failure.AWAY,
    sqlite3.SQLITE_SCHEMA: Failure.RACE,
}
_SQLITE_UNIQUE = {
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
}


def classify(error: SQLAlchemyError) -> Failure:
    """Return what ``error`` means."""
    if isinstance(error, PoolTimeout):
        return Failure.AWAY
    if not isinstance(error, DBAPIError):
        return Failure.BUG
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return _of_sqlite(cause)
    number = cause.args[0] if cause is not None and cause.args else None
    if isinstance(number, int):
        if number in _MARIADB_CODES:
            return _MARIADB_CODES[number]
    elif state := getattr(cause, "sqlstate", None):
        return _POSTGRES_CODES.get(state) or _POSTGRES_CLASSES.get(state[:2], Failure.BUG)
    # Without a statement of ours the server was being reached, or a transaction was ending.
    if error.connection_invalidated or error.statement is None or isinstance(error, InterfaceError):
        return Failure.AWAY
    # psycopg's OperationalError has no SQLSTATE when the server was not reached, or fell silent.
    return Failure.AWAY if isinstance(cause, psycopg.OperationalError) else Failure.BUG


def _of_sqlite(cause: sqlite3.Error) -> Failure:
    code = getattr(cause, "sqlite_errorcode", None)
    if code in _SQLITE_UNIQUE:
        return Failure.UNIQUE
    if code is not None and code != sqlite3.SQLITE_ERROR:
        return _SQLITE_CODES.get(code & 0xFF, Failure.BUG)
    text = str(cause)
    if text.startswith(("no such table", "no such column")):
        return Failure.SCHEMA
    return Failure.BUG


def reason_of(error: SQLAlchemyError) -> str:
    """Return one line for the operator: the driver's own word, without SQL, parameters or URL."""
    cause = getattr(error, "orig", None) or error
    if isinstance(error, PoolTimeout):
        return "no connection became free in time"
    parts = [str(a) for a in cause.args if isinstance(a, str) and a] or [type(cause).__name__]
    line = " ".join(" ".join(parts).split())
    return line[:200]
