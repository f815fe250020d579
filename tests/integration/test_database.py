"""The ground: reads, writes, the clock, and what errors mean, on each database."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import make_url, text

from app.db import Database, DatabaseLimits
from app.errors import DatabaseUnavailable
from tests.support.proxy import proxy_to


def test_a_write_that_raises_leaves_nothing(database: Database) -> None:
    def work(connection):
        connection.execute(
            text(
                "INSERT INTO nodes (id, role, host, pid, version, started_at, heartbeat_at)"
                " VALUES ('n', 'worker', 'h', 1, '1', '2026-01-01', '2026-01-01')"
            )
        )
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        database.write(work)
    assert database.read(lambda c: c.scalar(text("SELECT count(*) FROM nodes"))) == 0


def test_the_database_tells_the_time_in_utc(database: Database) -> None:
    now = database.write(database.now)
    assert now.tzinfo is UTC
    assert abs(now - datetime.now(UTC)) < timedelta(seconds=5)


def test_a_missing_table_is_a_database_that_is_not_ready(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable, match="bellringer migrate"):
        database.read(lambda c: c.execute(text("SELECT * FROM no_such_table")))


def test_an_unreachable_server_is_unavailable(tmp_path) -> None:
    for url in (
        "postgresql://root:s3cret@127.0.0.1:1/x",
        "mariadb://root:s3cret@127.0.0.1:1/x",
        f"sqlite:///{tmp_path}/no/such/dir/x.db",
    ):
        with pytest.raises(DatabaseUnavailable) as caught:
            Database(url, limits=DatabaseLimits(connect=1)).read(
                lambda c: c.execute(text("SELECT 1"))
            )
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("database_url", ["postgresql", "mariadb"], indirect=True)
def test_a_server_that_falls_silent_is_unavailable_whenever_it_does(database_url: str) -> None:
    url = make_url(database_url)
    limits = DatabaseLimits(connect=1, statement=1)
    port = url.port or {"postgresql": 5432, "mariadb": 3306}[url.get_backend_name()]
    with proxy_to(url.host or "127.0.0.1", port) as proxy:
        through = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        database = Database(through, limits=limits)

        def ask(connection):
            return connection.scalar(text("SELECT 1"))

        assert database.read(ask) == database.write(ask) == 1
        proxy.hang()
        # First over connections that were there before, then over new ones.
        for call in (database.read, database.write, database.read, database.write):
            began = time.monotonic()
            with pytest.raises(DatabaseUnavailable):
                call(ask)
            assert time.monotonic() - began < 20
        proxy.mend()
        assert database.read(ask) == database.write(ask) == 1
        database.close()
