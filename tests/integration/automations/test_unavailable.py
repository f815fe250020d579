"""A database that is away, locked, read-only or cut off is DatabaseUnavailable, and comes back."""

import shutil
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest
from sqlalchemy import create_engine, event, make_url, text

from app.automations.store import ANY, AutomationStore
from app.db import Database, DatabaseLimits
from app.db.migrating import migrate
from app.errors import DatabaseUnavailable
from tests.support.databases import fresh_database
from tests.support.drafts import draft
from tests.support.processes import outputs, start

UNREACHABLE = [
    "postgresql://root:s3cret@127.0.0.1:1/x",
    "mariadb://root:s3cret@127.0.0.1:1/x",
    "postgresql://root:s3cret@127.0.0.1/no_such_database_here",
    "mariadb://root:s3cret@127.0.0.1/no_such_database_here",
    "sqlite:////no/such/directory/x.db",
]


def every_call(store: AutomationStore):
    return [
        store.list,
        store.count,
        lambda: store.get("a"),
        lambda: store.revision("a"),
        lambda: store.history("a"),
        lambda: store.history_entry("a", 1),
        lambda: store.create("new", draft(), "x"),
        lambda: store.replace("a", ANY, draft("new"), "x"),
        lambda: store.delete("a", ANY, "x"),
    ]


@pytest.mark.parametrize("url", UNREACHABLE)
def test_an_unreachable_database_is_unavailable_to_every_call(url: str) -> None:
    database = Database(url, limits=DatabaseLimits(connect=1))
    for call in every_call(AutomationStore(database)):
        with pytest.raises(DatabaseUnavailable) as caught:
            call()
        told = f"{caught.value} {caught.value.reason}"
        assert "s3cret" not in told
        assert "SELECT" not in told
        assert "INSERT" not in told
    with pytest.raises(DatabaseUnavailable):
        migrate(database) if database.dialect != "sqlite" else database.read(lambda c: None)


def test_a_database_that_was_not_migrated_is_unavailable_and_says_what_to_do(
    tmp_path: Path,
) -> None:
    for dialect in ("sqlite", "postgresql", "mariadb"):
        with fresh_database(dialect, tmp_path) as url:
            database = Database(url)
            for call in every_call(AutomationStore(database)):
                with pytest.raises(DatabaseUnavailable, match="bellringer migrate"):
                    call()
            database.close()


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b""])
def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.db").write_bytes(content)
    for call in every_call(AutomationStore(Database(f"sqlite:///{tmp_path}/x.db"))):
        with pytest.raises(DatabaseUnavailable):
            call()


@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_read_only_sqlite_is_unavailable_to_writers_only(sqlite_url: str, what: str) -> None:
    """Permissions mean nothing to root, so another user tries."""
    program = (
        "import os, sys, sqlite3, sqlalchemy.dialects.sqlite.pysqlite\n"
        "from app.automations.store import AutomationStore; from app.db import *\n"
        "from app.errors import DatabaseUnavailable; from tests.support.drafts import draft\n"
        "from app.automations.revision import revision_of\n"
        "store = AutomationStore(Database(sys.argv[1], limits=DatabaseLimits(write=1)))\n"
        "revision_of(draft())  # imports what the other user may not read\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: store.create('b', draft(), 'x'); print('written')\n"
        "except DatabaseUnavailable as error: print('refused')\n"
        "try: print(len(store.list()))\n"
        "except DatabaseUnavailable: print('unreadable')\n"
    )
    Database(sqlite_url).read(lambda c: None)
    directory = Path(tempfile.mkdtemp(prefix="bellringer-read-only-"))
    try:
        file = directory / "x.db"
        shutil.copy(str(make_url(sqlite_url).database), file)
        database = Database(f"sqlite:///{file}")
        AutomationStore(database).create("a", draft(), "x")
        database.close()
        file.chmod(0o444 if what == "file" else 0o666)
        directory.chmod(0o777 if what == "file" else 0o555)
        (printed,) = outputs([start(program, f"sqlite:///{file}")])
        assert printed.split()[0] == "refused"
        assert printed.split()[1] in ("1", "unreadable")
    finally:
        directory.chmod(0o700)
        shutil.rmtree(directory)


def test_a_full_sqlite_is_unavailable_and_keeps_what_it_has(sqlite_database: Database) -> None:
    store = AutomationStore(sqlite_database)
    kept = store.create("a", draft("kept", {"t": "0 1 * * *"}), "x")

    def shrink(driver, _record, _proxy) -> None:
        driver.execute("PRAGMA max_page_count = 1")

    event.listen(sqlite_database.writer, "checkout", shrink)
    with pytest.raises(DatabaseUnavailable, match="full"):
        store.replace("a", ANY, draft("x", description="y" * 100_000), "x")
    event.remove(sqlite_database.writer, "checkout", shrink)
    assert store.list() == [kept]


def test_a_lock_that_is_held_too_long_is_unavailable(database_url: str) -> None:
    database = Database(database_url, limits=DatabaseLimits(lock=1, write=0.5))
    store = AutomationStore(database)
    old = store.create("a", draft(), "x")
    holder = Database(database_url)
    held, release = threading.Event(), threading.Event()

    def hold(connection) -> None:
        connection.execute(text("UPDATE automations SET name = name"))
        held.set()
        release.wait(30)

    thread = threading.Thread(target=holder.write, args=(hold,))
    thread.start()
    try:
        assert held.wait(10)
        with pytest.raises(DatabaseUnavailable, match="locked"):
            store.replace("a", ANY, draft("new"), "x")
        with pytest.raises(DatabaseUnavailable, match="locked"):
            store.delete("a", ANY, "x")
        assert store.get("a") == old
    finally:
        release.set()
        thread.join(10)
    store.replace("a", ANY, draft("new"), "x")
    database.close()
    holder.close()


def test_a_sqlite_locked_by_another_program_is_unavailable_to_readers_too(
    sqlite_url: str,
) -> None:
    database = Database(sqlite_url, limits=DatabaseLimits(lock=0.2, write=0.2))
    store = AutomationStore(database)
    other = sqlite3.connect(str(make_url(sqlite_url).database), isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    for call in every_call(store):
        with pytest.raises(DatabaseUnavailable, match="locked"):
            call()
    other.close()
    assert store.list() == []


KILL = {
    "postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})"),
    "mariadb": ("SELECT connection_id()", "KILL {}"),
}


@pytest.mark.parametrize("dialect", ["postgresql", "mariadb"])
def test_pooled_connections_that_the_server_cut_are_survived(dialect: str, tmp_path: Path) -> None:
    with fresh_database(dialect, tmp_path) as url:
        database = Database(url)
        migrate(database)
        AutomationStore(database).create("a", draft(), "x")
        which, kill = KILL[dialect]
        admin = create_engine(database.url, isolation_level="AUTOCOMMIT")
        for number in range(len(every_call(AutomationStore(database)))):
            for engine in (database.reader, database.writer):
                with engine.connect() as pooled, admin.connect() as connection:
                    process = pooled.scalar(text(which))
                    pooled.rollback()
                    connection.execute(text(kill.format(process)))
            every_call(AutomationStore(database))[number]()
            database.close()
        admin.dispose()


@pytest.mark.parametrize("dialect", ["postgresql", "mariadb"])
def test_a_connection_that_is_cut_in_a_transaction_is_unavailable_and_leaves_nothing(
    dialect: str, tmp_path: Path
) -> None:
    with fresh_database(dialect, tmp_path) as url:
        database = Database(url)
        migrate(database)
        which, kill = KILL[dialect]
        admin = create_engine(database.url, isolation_level="AUTOCOMMIT")

        def work(connection) -> None:
            connection.execute(text("INSERT INTO schedule_occurrences VALUES " + VALUES))
            with admin.connect() as other:
                other.execute(text(kill.format(connection.scalar(text(which)))))
            connection.execute(text("SELECT 1"))

        with pytest.raises(DatabaseUnavailable):
            database.write(work)
        count = text("SELECT count(*) FROM schedule_occurrences")
        assert database.read(lambda c: c.scalar(count)) == 0
        admin.dispose()
        database.close()


VALUES = "('x', '2026-01-01 12:00:00', 'fired', '2026-01-01 12:00:00', 'n', 0)"


@pytest.mark.parametrize(
    ("dialect", "sleep"), [("postgresql", "SELECT pg_sleep(20)"), ("mariadb", "SELECT SLEEP(20)")]
)
def test_a_statement_that_takes_too_long_is_unavailable(
    dialect: str, sleep: str, tmp_path: Path
) -> None:
    with fresh_database(dialect, tmp_path) as url:
        database = Database(url, limits=DatabaseLimits(statement=1))
        with pytest.raises(DatabaseUnavailable):
            database.read(lambda c: c.execute(text(sleep)).all())
        assert database.read(lambda c: c.scalar(text("SELECT 1"))) == 1
        database.close()


def test_a_pool_without_a_free_connection_is_unavailable(database_url: str) -> None:
    database = Database(database_url, limits=DatabaseLimits(connect=1, pool=1))
    with database.reader.connect() as one, database.reader.connect() as two:
        one.execute(text("SELECT 1"))
        two.execute(text("SELECT 1"))
        with pytest.raises(DatabaseUnavailable, match="no connection"):
            AutomationStore(database).list()
    assert AutomationStore(database).list() == []
    database.close()
