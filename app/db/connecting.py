"""How a connection is opened, per driver, so that nothing waits without a limit."""

import inspect
import sqlite3
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import psycopg
import pymysql
from sqlalchemy import URL, Engine, create_engine, event, make_url

from app.database_url import normalize_url

__all__ = ["DatabaseLimits", "build_engine", "normalize_url"]


@dataclass(frozen=True, slots=True)
class DatabaseLimits:
    """How long anything may wait, in seconds, and how many connections a process may hold.

    ``connect`` bounds reaching the server, ``statement`` one statement, ``lock`` waiting for a row,
    ``idle_transaction`` a transaction whose client fell silent (the server ends it), ``write`` all
    tries of one write together. ``pool`` connections are kept for reads and as many for writes.
    """

    connect: float = 5
    statement: float = 30
    lock: float = 5
    idle_transaction: float = 10
    write: float = 10
    pool: int = 5


def build_engine(url: str, limits: DatabaseLimits, *, autocommit: bool) -> Engine:
    """Return an engine that has not connected yet.

    With ``autocommit`` each statement is a transaction of its own (SQLite does so by itself, as long
    as nobody says BEGIN). Raises ValueError for an option in the URL that the driver does not know.
    """
    parsed = make_url(url)
    backend = parsed.get_backend_name()
    options: dict[str, Any] = {
        "pool_size": limits.pool,
        "max_overflow": limits.pool,
        "pool_timeout": limits.connect,
        "pool_recycle": 1800,
        "hide_parameters": True,
    }
    if backend == "sqlite":
        engine = create_engine(
            url, **options, connect_args={"timeout": limits.lock, "check_same_thread": False}
        )
        event.listen(engine, "connect", _sqlite_connected(limits, reading=autocommit))
        return engine
    _refuse_unknown_options(parsed)
    options["isolation_level"] = "AUTOCOMMIT" if autocommit else "READ COMMITTED"
    if backend == "postgresql":
        arguments = _postgres_arguments(limits, parsed.query.get("options", ""))
        engine = create_engine(url, **options, connect_args=arguments)
        event.listen(engine, "do_connect", _bounded_connect(limits))
        return engine
    engine = create_engine(url, **options, connect_args=_mariadb_arguments(limits))
    event.listen(engine, "connect", _mariadb_connected(limits))
    return engine


def _refuse_unknown_options(url: URL) -> None:
    """Raise ValueError now for what would else fail at each connection."""
    _, given = url.get_dialect()().create_connect_args(url)
    for name in sorted(given.keys() - _OPTIONS[url.get_backend_name()]):
        raise ValueError(f"the driver knows no option {name!r}")


def _named_by(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


_OPTIONS = {
    "postgresql": _named_by(psycopg.Connection.connect)
    | {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()},
    "mariadb": _named_by(pymysql.connect),
}


def _sqlite_connected(limits: DatabaseLimits, *, reading: bool) -> Callable[..., None]:
    # A writer retries BEGIN IMMEDIATE itself: SQLite's busy handler starves it under load.
    busy = int(limits.lock * 1000) if reading else 20

    def connected(connection: sqlite3.Connection, _record: object) -> None:
        # The driver would begin transactions of its own accord, and never IMMEDIATE ones.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(limits.lock * 1000)}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA busy_timeout = {busy}")

    return connected


def _postgres_arguments(limits: DatabaseLimits, own: object) -> dict[str, Any]:
    milliseconds = {
        "statement_timeout": limits.statement,
        "lock_timeout": limits.lock,
        "idle_in_transaction_session_timeout": limits.idle_transaction,
    }
    options = " ".join(f"-c {name}={int(s * 1000)}" for name, s in milliseconds.items())
    return {
        "connect_timeout": max(1, int(limits.connect)),
        # The last one counts, and ours are what bounds every wait.
        "options": f"{own} {options} -c timezone=UTC".strip(),
        "application_name": "bellringer",
        "tcp_user_timeout": int(limits.statement * 1000),
    }


def _bounded_connect(limits: DatabaseLimits) -> Callable[..., Any]:
    class BoundedConnection(psycopg.Connection[Any]):
        """A connection that gives up on a server that fell silent.

        ``statement_timeout`` is the server's own promise, and a hung server keeps none.
        """

        def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
            return super().wait(_until(gen, self, limits.statement + 2), *args, **kwargs)

    def connect(_dialect: Any, _record: Any, args: Any, params: Any) -> Any:
        return BoundedConnection.connect(*args, **params)

    return connect


def _until(gen: Any, connection: Any, seconds: float) -> Generator[Any, Any, Any]:
    """Pass through psycopg's I/O generator until ``seconds`` have passed without its end."""
    deadline = time.monotonic() + seconds
    try:
        wish = next(gen)
        while True:
            ready = yield wish
            if not ready and time.monotonic() > deadline:
                connection.pgconn.finish()
                raise psycopg.OperationalError(f"the server did not answer within {seconds:g} s")
            wish = gen.send(ready)
    except StopIteration as done:
        return done.value


def _mariadb_arguments(limits: DatabaseLimits) -> dict[str, Any]:
    return {
        "connect_timeout": max(1, int(limits.connect)),
        "read_timeout": limits.statement + 2,
        "write_timeout": limits.statement + 2,
        "charset": "utf8mb4",
    }


def _mariadb_connected(limits: DatabaseLimits) -> Callable[..., None]:
    settings = (
        f"SET SESSION innodb_lock_wait_timeout = {max(1, int(limits.lock))}, "
        f"max_statement_time = {limits.statement:g}, "
        f"idle_transaction_timeout = {max(1, int(limits.idle_transaction))}, "
        "time_zone = '+00:00', "
        "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'"
    )

    def connected(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(settings)

    return connected
