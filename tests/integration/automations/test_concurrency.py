"""Writers who meet: in threads and in processes, on each database."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from app.automations.documents import read_draft
from app.automations.revision import revision_of
from app.automations.store import ANY, AutomationStore
from app.db import Database
from app.errors import AlreadyExists, NotFound, StaleRevision
from tests.support.drafts import draft
from tests.support.processes import outputs, release, start
from tests.support.rows import insert_row

OPEN = """
import sys
from app.automations.store import ANY, AutomationStore
from app.db import Database
from app.errors import AlreadyExists, StaleRevision
from tests.support.drafts import draft
database = Database(sys.argv[1])
store = AutomationStore(database)
"""


def test_two_pools_see_each_others_writes_at_once(database: Database) -> None:
    other_database = Database(database.url)
    one, other = AutomationStore(database), AutomationStore(other_database)
    for n in range(3):
        made = one.create(f"a{n}", draft(str(n)), "x")
        assert other.get(f"a{n}") == made
        new = other.replace(f"a{n}", frozenset({made.revision}), draft("new"), "x").automation
        assert one.get(f"a{n}") == new
        assert one.list() == other.list()
        one.delete(f"a{n}", frozenset({new.revision}), "x")
        assert other.get(f"a{n}") is None
    other_database.close()


def test_two_processes_see_each_others_writes_at_once(database: Database) -> None:
    store = AutomationStore(database)
    made = store.create("a", draft("ours", {"t": "0 1 * * *"}), "x")
    program = OPEN + (
        "a = store.get('a'); store.replace('a', frozenset({a.revision}), draft('theirs'), 'x');"
        "print(a.revision, [t.id for t in a.draft.schedules])"
    )
    (printed,) = outputs([start(program, database.url)])
    assert printed == f"{made.revision} ['t']"
    assert store.get("a").draft == draft("theirs")


def test_of_threads_that_hold_one_revision_one_wins(database: Database) -> None:
    store = AutomationStore(database)
    for round_ in range(5):
        held = store.create(f"a{round_}", draft("held"), "x").revision
        together = threading.Barrier(8)

        def write(n: int, key: str = f"a{round_}", held: str = held, wait=together.wait) -> str:
            wait(10)
            try:
                return store.replace(
                    key, frozenset({held}), draft(f"by {n}"), "x"
                ).automation.revision
            except StaleRevision as stale:
                return f"stale {stale.actual}"

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(write, range(8)))
        won = [r for r in results if not r.startswith("stale")]
        assert len(won) == 1
        assert set(results) == {won[0], f"stale {won[0]}"}
        assert store.revision(f"a{round_}") == won[0]
        assert len(store.history(f"a{round_}")) == 2


def test_of_processes_that_hold_one_revision_one_wins(database: Database) -> None:
    store = AutomationStore(database)
    held = store.create("a", draft("held"), "x").revision
    program = OPEN + (
        "store.get('a'); print('ready', flush=True); sys.stdin.readline()\n"
        "try:\n"
        "    store.replace('a', frozenset({sys.argv[2]}), draft(sys.argv[3]), 'x'); print('won')\n"
        "except StaleRevision: print('stale')\n"
    )
    running = [start(program, database.url, held, f"by {n}") for n in range(4)]
    release(running)
    assert sorted(outputs(running)) == ["stale", "stale", "stale", "won"]
    assert len(store.history("a")) == 2


def test_an_id_is_created_once_by_many(database: Database) -> None:
    store = AutomationStore(database)
    together = threading.Barrier(8)

    def create(n: int) -> bool:
        together.wait(10)
        try:
            store.create("a", draft(str(n), {f"t{n}": "0 1 * * *"}), "x")
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(8))) == 1
    (entry,) = store.history("a")
    assert read_draft(entry.document) == store.get("a").draft


def test_replaces_and_deletes_that_meet_leave_a_history_that_adds_up(database: Database) -> None:
    """Whatever order they took, each entry holds the document that its revision is the hash of."""
    store = AutomationStore(database)

    def work(n: int) -> None:
        for turn in range(6):
            try:
                store.create("a", draft(f"created {n} {turn}", {"t": "0 1 * * *"}), "x")
            except AlreadyExists:
                pass
            try:
                store.replace("a", ANY, draft(f"replaced {n} {turn}", {"u": "0 2 * * *"}), "x")
                store.delete("a", ANY, "x")
            except NotFound:
                pass

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    entries = store.history("a", limit=1_000)[::-1]
    alive: str | None = None
    for entry in entries:
        assert revision_of(read_draft(entry.document)) == entry.revision
        match entry.action:
            case "create":
                assert alive is None
                alive = entry.revision
            case "replace":
                assert alive is not None
                alive = entry.revision
            case "delete":
                assert alive == entry.revision
                alive = None
    assert store.revision("a") == alive


def test_a_deadlock_is_tried_again(database_url: str) -> None:
    database = Database(database_url)
    if database.dialect == "sqlite":
        pytest.skip("SQLite has one writer at a time, so that nobody can deadlock")
    store = AutomationStore(database)
    store.create("a", draft(), "x")
    store.create("b", draft(), "x")
    together = threading.Barrier(2)
    tries = {"a": 0, "b": 0}

    def write(first: str, second: str) -> None:
        def work(connection) -> None:
            tries[first] += 1
            touch = text("UPDATE automations SET description = 'd' WHERE id = :id")
            connection.execute(touch, {"id": first})
            if tries[first] == 1:
                together.wait(10)
            connection.execute(touch, {"id": second})

        database.write(work)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("a", "b"), ("b", "a")))
    assert sum(tries.values()) == 3
    assert database.retries == 1
    database.close()


def test_an_error_leaves_no_transaction_and_no_lock(database: Database) -> None:
    store = AutomationStore(database)
    store.create("a", draft(), "x")
    for _ in range(20):
        with pytest.raises(StaleRevision):
            store.replace("a", frozenset({"f" * 64}), draft("new"), "x")
        with pytest.raises(AlreadyExists):
            store.create("a", draft(), "x")
        with pytest.raises(NotFound):
            store.delete("b", ANY, "x")
    assert database.writer.pool.checkedout() == 0
    assert database.reader.pool.checkedout() == 0
    other = Database(database.url)
    AutomationStore(other).replace("a", ANY, draft("new"), "x")
    assert other.retries == 0
    other.close()


def test_sqlite_writers_in_eight_processes_all_get_their_turn(sqlite_database: Database) -> None:
    """A lock held for longer than SQLite's own busy handler sleeps starves some of them."""
    program = OPEN + (
        "import time\n"
        "from app.automations.models import automations\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for n in range(15):\n"
        "    def work(c):\n"
        "        c.exec_driver_sql(\"UPDATE nodes SET pid = pid + 1 WHERE id = 'n'\")\n"
        "        time.sleep(0.008)\n"
        "    database.write(work)\n"
        "    store.create(f'{sys.argv[2]}-{n}', draft(), 'x')\n"
        "print('done')\n"
    )
    sqlite_database.write(lambda c: insert_row(c, "nodes", pid=0))
    running = [start(program, sqlite_database.url, f"p{n}") for n in range(8)]
    release(running)
    assert outputs(running, 120) == ["done"] * 8
    count = sqlite_database.read(lambda c: c.scalar(text("SELECT pid FROM nodes")))
    assert count == 8 * 15
    assert AutomationStore(sqlite_database).count() == 8 * 15


def test_a_database_used_before_a_fork_serves_parent_and_children(database: Database) -> None:
    program = OPEN + (
        "import os\n"
        "store.create('parent', draft(), 'x')\n"
        "children = []\n"
        "for n in range(3):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        for turn in range(20):\n"
        "            made = store.create(f'c{n}-{turn}', draft(), 'x')\n"
        "            assert store.get(f'c{n}-{turn}') == made\n"
        "        os._exit(0)\n"
        "    children.append(pid)\n"
        "for turn in range(20):\n"
        "    made = store.create(f'p-{turn}', draft(), 'x')\n"
        "    assert store.get(f'p-{turn}') == made\n"
        "assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]\n"
        "print(store.count())\n"
    )
    assert outputs([start(program, database.url)]) == ["81"]
