"""One database, reached through two small pools: reads in AUTOCOMMIT, writes in one transaction each.

Nothing connects before the first use, and a child of ``fork()`` gets connections of its own. Work is
handed in as a function of a connection, so that what lost a race can be done again.
"""

import os
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from app.clock import Clock, SystemClock
from app.db.connecting import DatabaseLimits, build_engine, normalize_url
from app.db.failures import Failure, classify, reason_of
from app.errors import DatabaseTooSlow, DatabaseUnavailable, SettingsInvalid
from app.settings import Settings

T = TypeVar("T")


class Database:
    """What stores and ledgers read and write through; safe from any thread.

    ``clock`` stands in for the database's own clock. SQLite has none with microseconds and runs on
    the same machine, so there the process's clock is the default.
    """

    def __init__(
        self, url: str, *, limits: DatabaseLimits | None = None, clock: Clock | None = None
    ) -> None:
        self.url = normalize_url(url)
        self.limits = limits or DatabaseLimits()
        self.dialect = make_url(self.url).get_backend_name()
        self.retries = 0
        """How many tries of writes lost a race, since the process began; metrics show it."""
        if clock is None and self.dialect == "sqlite":
            clock = SystemClock()
        self._clock = clock
        self._pid = os.getpid()
        self._reader = build_engine(self.url, self.limits, autocommit=True)
        self._writer = build_engine(self.url, self.limits, autocommit=False)

    @property
    def reader(self) -> Engine:
        """The pool for one-statement reads; each statement is its own transaction."""
        self._notice_fork()
        return self._reader

    @property
    def writer(self) -> Engine:
        """The pool for write transactions; on SQLite they begin with BEGIN IMMEDIATE."""
        self._notice_fork()
        return self._writer

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` reads; it is called once more if a pooled connection turned out dead.

        Raises DatabaseUnavailable.
        """
        began = time.monotonic()
        try:
            return self._try_read(work)
        except SQLAlchemyError as error:
            dead = getattr(error, "connection_invalidated", False)
            if not dead or time.monotonic() - began > self.limits.connect:
                raise _translated(error) from error
        try:
            return self._try_read(work)
        except SQLAlchemyError as error:
            raise _translated(error) from error

    def write(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` returns, committed.

        ``work`` runs inside one transaction and may be called again when a try lost a race, so it
        must do nothing but talk to the connection. Raises DatabaseUnavailable when the tries have
        used up ``limits.write`` seconds, and whatever ``work`` raises, rolled back.
        """
        deadline = time.monotonic() + self.limits.write
        pause = 0.001
        revived = False
        while True:
            committing = False
            try:
                with self.writer.connect() as connection:
                    if self.dialect == "sqlite":
                        connection.exec_driver_sql("BEGIN IMMEDIATE")
                    result = work(connection)
                    committing = True
                    connection.commit()
                    return result
            except SQLAlchemyError as error:
                dead = getattr(error, "connection_invalidated", False)
                if dead and not committing and not revived:
                    # The server cut a pooled connection, and with it what was not committed.
                    revived = True
                    continue
                if classify(error) is not Failure.RACE or time.monotonic() >= deadline:
                    raise _translated(error) from error
            self.retries += 1
            # Short and random, so that writers that met once do not keep meeting.
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(pause * 2, 0.05 if self.dialect == "sqlite" else 0.5)

    def now(self, connection: Connection) -> datetime:
        """Return the database's own idea of the current instant, on which all nodes agree."""
        if self._clock is not None:
            return self._clock.now()
        if self.dialect == "postgresql":
            instant: datetime = connection.scalar(text("SELECT clock_timestamp()"))
            return instant.astimezone(UTC)
        naive: datetime = connection.scalar(text("SELECT utc_timestamp(6)"))
        return naive.replace(tzinfo=UTC)

    def close(self) -> None:
        """Close all pooled connections."""
        self._reader.dispose()
        self._writer.dispose()

    def _try_read(self, work: Callable[[Connection], T]) -> T:
        with self.reader.connect() as connection:
            return work(connection)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._reader.dispose(close=False)
            self._writer.dispose(close=False)


def open_database(settings: Settings) -> Database:
    """Return the database that the settings name; nothing connects yet. Raises SettingsInvalid."""
    limits = DatabaseLimits(statement=settings.database_timeout, pool=settings.database_pool)
    try:
        return Database(settings.database_url, limits=limits)
    except ValueError as error:
        raise SettingsInvalid([f"BELLRINGER_DATABASE_URL: {error}"]) from None


def _translated(error: SQLAlchemyError) -> Exception:
    """Return the error to raise instead: DatabaseUnavailable, or the same where it is not that."""
    match classify(error):
        case Failure.AWAY:
            return DatabaseUnavailable(reason_of(error))
        case Failure.SLOW:
            return DatabaseTooSlow(reason_of(error))
        case Failure.RACE:
            return DatabaseUnavailable("it stayed locked by other writers; try again")
        case Failure.SCHEMA:
            return DatabaseUnavailable(
                "a table or column is missing; run 'bellringer migrate' with this release"
            )
        case _:
            return error
