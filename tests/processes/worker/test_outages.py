"""A database that is away costs no run: connections cut, hung and ended by the server."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from app.db import Database
from app.runs.logs import RunLogs
from tests.support.proxy import Proxy, proxy_to
from tests.support.runs import lease_of, queued
from tests.support.waiting import until
from tests.support.workers import Fleet, fleet, node_rows, run_in, states_of

SERVERS = pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)
POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
LEASE = 3

# Says a number every tenth of a second until it is told to end.
COUNTING = """
n=0
while [ ! -e {mark} ]; do n=$((n + 1)); echo $n; echo $n > {progress}; sleep 0.1; done
echo ended
"""


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path / "workers", tmp_path / "git") as found:
        yield found


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    url = make_url(database_url)
    port = url.port or {"postgresql": 5432, "mariadb": 3306}[url.get_backend_name()]
    with proxy_to(url.host or "127.0.0.1", port) as found:
        yield found


@pytest.fixture
def through(database_url: str, proxy: Proxy) -> str:
    url = make_url(database_url).set(host="127.0.0.1", port=proxy.port)
    return url.render_as_string(hide_password=False)


class Counting:
    """A run that counts aloud, whatever happens to the database."""

    def __init__(self, workers: Fleet, tmp_path: Path) -> None:
        self.mark = tmp_path / "mark"
        self.progress = tmp_path / "progress"
        workers.workflow(COUNTING.format(mark=self.mark, progress=self.progress))

    def count(self) -> int:
        """Return how far it is."""
        text_ = self.progress.read_text() if self.progress.exists() else ""
        return int(text_) if text_.strip() else 0

    def goes_on(self, steps: int) -> None:
        """Wait until it has counted on by ``steps``."""
        reached = self.count() + steps
        until(lambda: self.count() >= reached, limit=60)

    def end(self) -> int:
        """Let it end; return how far it came at least."""
        self.mark.touch()
        return self.count()


def assert_counted_without_a_gap(database: Database, run_id: int, at_least: int) -> None:
    texts = [line.text for line in RunLogs(database).read(run_id, limit=10_000)]
    assert texts[-1] == "ended"
    counted = [int(t) for t in texts if t.isdigit()]
    assert counted == list(range(1, len(counted) + 1))
    assert len(counted) >= at_least


@SERVERS
@pytest.mark.parametrize("fault", ["cut", "hang"])
def test_runs_go_on_while_the_database_is_away_for_longer_than_a_lease(
    database: Database, through: str, proxy: Proxy, workers: Fleet, tmp_path: Path, fault: str
) -> None:
    counting = Counting(workers, tmp_path)
    [run_id] = queued(database)
    holder = workers.start(through, lease=LEASE)
    idle = workers.start(through, lease=LEASE, worker_concurrency=1)
    until(lambda: counting.count() > 3)
    until(lambda: len(node_rows(database)) == 2)
    getattr(proxy, fault)()
    before = lease_of(database, run_id)
    until(lambda: database.write(database.now) > before, limit=30)
    until(lambda: all("database-away" in worker.log() for worker in (holder, idle)), limit=30)
    counting.goes_on(10)
    proxy.mend()
    until(lambda: lease_of(database, run_id) > database.write(database.now), limit=30)
    # Nobody reaps what is renewed, however long one waits.
    counting.goes_on(LEASE * 15)
    at_least = counting.end()
    run = run_in(database, run_id, "succeeded", "failed")
    assert (run.state, run.reason) == ("succeeded", None)
    assert_counted_without_a_gap(database, run_id, at_least)
    assert "run-reaped" not in holder.log() + idle.log()
    assert all("could not be worked with" in problem for _, problem in node_rows(database))


@SERVERS
def test_an_end_that_comes_while_the_database_is_away_is_written_when_it_is_back(
    database: Database, through: str, proxy: Proxy, workers: Fleet, tmp_path: Path
) -> None:
    counting = Counting(workers, tmp_path)
    [run_id] = queued(database)
    worker = workers.start(through, lease=LEASE)
    until(lambda: counting.count() > 3)
    proxy.cut()
    counting.goes_on(5)
    at_least = counting.end()
    until(lambda: "database-away" in worker.log())
    proxy.mend()
    run = run_in(database, run_id, "succeeded", "failed")
    assert (run.state, run.exit_code) == ("succeeded", 0)
    assert_counted_without_a_gap(database, run_id, at_least)


@POSTGRESQL
def test_connections_that_the_server_ends_cost_nothing(
    database: Database, database_url: str, workers: Fleet, tmp_path: Path
) -> None:
    counting = Counting(workers, tmp_path)
    [run_id] = queued(database)
    url = make_url(database_url)
    worker = workers.start(database_url, lease=LEASE)
    until(lambda: counting.count() > 3)
    admin = create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    ended = text(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    for _ in range(5):
        with admin.connect() as connection:
            until(lambda c=connection: c.scalar(ended))
        counting.goes_on(3)
    admin.dispose()
    at_least = counting.end()
    run = run_in(database, run_id, "succeeded", "failed")
    assert run.state == "succeeded"
    assert_counted_without_a_gap(database, run_id, at_least)
    assert worker.process.poll() is None


@POSTGRESQL
def test_a_worker_starts_before_its_database_and_ends_without_it(
    database: Database, through: str, proxy: Proxy, workers: Fleet
) -> None:
    workers.workflow("exit 0")
    proxy.cut()
    waiting = workers.start(through)
    until(lambda: "database-away" in waiting.log())
    impatient = workers.start(through)
    until(lambda: "database-away" in impatient.log())
    impatient.signal(signal.SIGTERM)
    assert impatient.ended() == 0
    proxy.mend()
    [run_id] = queued(database)
    run_in(database, run_id, "succeeded")
    proxy.cut()
    waiting.signal(signal.SIGTERM)
    assert waiting.ended() == 0


@POSTGRESQL
def test_quick_runs_behind_a_failing_network_are_each_carried_out_once(
    database: Database, through: str, proxy: Proxy, workers: Fleet, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    done.touch()
    workers.workflow(f'echo "$BELLRINGER_RUN_ID" >> {done}')
    ids = queued(database, 20)
    workers.start(through, worker_concurrency=4)

    for reached in range(1, 16):
        until(lambda least=reached: len(done.read_text().split()) >= least, limit=60)
        proxy.cut()
        proxy.mend()
    until(lambda: set(states_of(database).values()) == {"succeeded"}, limit=120)
    assert sorted(int(line) for line in done.read_text().split()) == ids


def test_a_database_behind_this_release_is_refused(tmp_path: Path, workers: Fleet) -> None:
    worker = workers.start(f"sqlite:///{tmp_path / 'empty.db'}")
    assert worker.ended() != 0
    assert "bellringer migrate" in worker.log()
