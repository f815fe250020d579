"""Health, readiness and metrics over a real port."""

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter
from sqlalchemy import text

from app.db import Database
from app.errors import SettingsInvalid
from app.nodes.monitoring import CONNECTIONS, Monitoring, database_fault
from tests.support.waiting import until


class Checks:
    """What the process says of itself."""

    health: str | None = None
    readiness: str | None = None


@pytest.fixture
def checks() -> Checks:
    return Checks()


@pytest.fixture
def monitoring(checks: Checks) -> Iterator[Monitoring]:
    registry = CollectorRegistry()
    Counter("bellringer_test", "A test.", registry=registry).inc()
    monitoring = Monitoring(
        "127.0.0.1:0", registry, lambda: checks.health, lambda: checks.readiness
    )
    monitoring.start()
    yield monitoring
    monitoring.close()


def ask(monitoring: Monitoring, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", monitoring.port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def test_what_is_well_says_so(monitoring: Monitoring) -> None:
    assert ask(monitoring, "/healthz") == (200, "ok\n")
    assert ask(monitoring, "/readyz?verbose") == (200, "ok\n")
    status, body = ask(monitoring, "/metrics")
    assert status == 200
    assert "bellringer_test_total 1.0" in body
    assert ask(monitoring, "/metrics", "HEAD") == (200, "")
    assert ask(monitoring, "/../etc/passwd")[0] == 404
    assert ask(monitoring, "/healthz", "POST")[0] == 501


def test_what_is_not_well_says_why(monitoring: Monitoring, checks: Checks) -> None:
    checks.readiness = "the database is not available"
    assert ask(monitoring, "/healthz")[0] == 200
    assert ask(monitoring, "/readyz") == (503, "the database is not available\n")
    checks.health = "the duty 'renew' has ended"
    assert ask(monitoring, "/healthz") == (503, "the duty 'renew' has ended\n")


def test_clients_that_only_hold_connections_are_turned_away_beyond_a_few(
    monitoring: Monitoring,
) -> None:
    idle = [socket.create_connection(("127.0.0.1", monitoring.port)) for _ in range(CONNECTIONS)]
    with socket.create_connection(("127.0.0.1", monitoring.port), timeout=4) as one_more:
        assert one_more.recv(1) == b""
    for each in idle:
        each.close()

    def answers() -> bool:
        try:
            return ask(monitoring, "/healthz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    until(answers)


def test_a_port_that_is_taken_names_the_setting(monitoring: Monitoring) -> None:
    with pytest.raises(SettingsInvalid, match="BELLRINGER_METRICS_BIND"):
        Monitoring(f"127.0.0.1:{monitoring.port}", CollectorRegistry(), lambda: None, lambda: None)
    with pytest.raises(SettingsInvalid, match="BELLRINGER_METRICS_BIND"):
        Monitoring("127.0.0.1:99999", CollectorRegistry(), lambda: None, lambda: None)


def test_a_database_is_ready_at_head_and_beyond(database: Database) -> None:
    assert database_fault(database) is None

    def at(revision: str) -> str | None:
        database.write(
            lambda c: c.execute(
                text("UPDATE alembic_version SET version_num = :r"), {"r": revision}
            )
        )
        return database_fault(database)

    before = database.read(lambda c: c.scalar(text("SELECT version_num FROM alembic_version")))
    try:
        assert at("9999_from_later") is None
        assert "bellringer migrate" in at("0001_automations")
    finally:
        at(before)


def test_a_database_that_is_away_or_empty_is_not_ready(tmp_path: Path) -> None:
    assert "migrate" in database_fault(Database(f"sqlite:///{tmp_path}/empty.db"))
    assert "not available" in database_fault(Database(f"sqlite:///{tmp_path}/no/dir/x.db"))
