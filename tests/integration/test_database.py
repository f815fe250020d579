"""The ground: reads, writes, the clock, and what errors mean, on each database."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import make_url, text

from app.db import Database, DatabaseLimits, open_database
from app.errors import DatabaseUnavailable, SettingsInvalid
from app.settings import Settings
from tests.support.proxy import proxy_to

SHOWN = ("search_path", "timezone", "statement_timeout")


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


@pytest.mark.parametrize("url", ["postgresql://h/d", "mariadb://h/d"])
def test_an_option_that_the_driver_does_not_know_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(SettingsInvalid, match="'fo0'"):
        open_database(Settings(database_url=f"{url}?fo0=s3cret"))
    for known in ("postgresql://h/d?sslmode=require&connect_timeout=3", "mariadb://h/d?ssl_ca=x"):
        open_database(Settings(database_url=known))


def test_options_in_the_url_stand_beside_our_own(database_url: str) -> None:
    url = make_url(database_url)
    if url.get_backend_name() != "postgresql":
        pytest.skip("only PostgreSQL has options of a session in its URL")
    own = url.update_query_dict({"options": "-c search_path=pg_catalog -c timezone=Asia/Tokyo"})
    database = Database(own.render_as_string(hide_password=False))
    shown = [database.read(lambda c, n=n: c.scalar(text(f"SHOW {n}"))) for n in SHOWN]
    assert shown == ["pg_catalog", "UTC", "30s"]
    database.close()
