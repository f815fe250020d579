"""Health, readiness and metrics of one process."""

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.db import Database, migrating
from app.factory import create_app
from app.settings import Settings
from tests.support.api import Api, assert_problem, make_api


def at_schema(database: Database, revision: str) -> None:
    database.write(
        lambda c: c.execute(text("UPDATE alembic_version SET version_num = :r"), {"r": revision})
    )


@pytest.fixture
def restored(database: Database) -> Any:
    """A database whose schema revision is put back after the test, since servers are shared."""
    yield database
    at_schema(database, migrating.head())


def test_a_database_at_head_is_ready(api_everywhere: Api) -> None:
    answer = api_everywhere.as_(None).get("//readyz")
    assert answer.json == {"status": "ready", "schema": migrating.head()}


def test_a_database_behind_is_not_ready_and_the_answer_says_what_to_do(
    restored: Database,
) -> None:
    api = make_api(restored)
    at_schema(restored, "0001_automations")
    document = assert_problem(api.as_(None).get("//readyz"), 503, "not-ready")
    assert "bellringer migrate" in document["detail"]
    assert "0001_automations" in document["detail"]
    at_schema(restored, migrating.head())
    assert api.as_(None).get("//readyz").status_code == 200


def test_a_database_ahead_is_ready(restored: Database) -> None:
    at_schema(restored, "9999_of_a_later_release")
    answer = make_api(restored).as_(None).get("//readyz")
    assert answer.json == {"status": "ready", "schema": "9999_of_a_later_release"}


def test_an_empty_database_is_not_ready(tmp_path: Path) -> None:
    api = make_api(Database(f"sqlite:///{tmp_path}/new.db"))
    document = assert_problem(api.as_(None).get("//readyz"), 503, "not-ready")
    assert "bellringer migrate" in document["detail"]
    answer = api.get("/automations")
    assert_problem(answer, 503, "database-unavailable")


def test_making_the_application_opens_nothing_and_starts_nothing(sqlite_url: str) -> None:
    threads = threading.active_count()
    database = Database(sqlite_url)
    create_app(Settings(database_url=sqlite_url, rate_limit="1/minute"), database=database)
    assert threading.active_count() == threads
    assert database.reader.pool.checkedin() == database.writer.pool.checkedin() == 0


def test_a_request_starts_no_thread(api: Api) -> None:
    threads = threading.active_count()
    api.create()
    assert api.get("/automations/nightly").status_code == 200
    assert threading.active_count() == threads


def sample(api: Api, **labels: str) -> float:
    registry = api.app.extensions["bellringer"].metrics.registry
    return registry.get_sample_value("bellringer_http_requests_total", labels) or 0.0


def test_requests_are_counted_by_method_route_and_status(api: Api) -> None:
    api.create()
    api.get("/automations/nightly")
    api.get("/automations/gone")
    api.as_(None).get("/automations/nightly")
    api.call("GET", "/nothing/here", documented=False)
    api.call("WEIRD-METHOD", "/automations", documented=False)
    route = "/api/v1/automations/<automation_id>"
    for status, count in (("200", 1), ("404", 1), ("401", 1)):
        assert sample(api, method="GET", route=route, status=status) == count
    assert sample(api, method="GET", route="unmatched", status="404") == 1
    assert sample(api, method="other", route="unmatched", status="405") == 1
    exposed = api.as_(None).get("//metrics")
    assert exposed.mimetype == "text/plain"
    assert "bellringer_http_request_duration_seconds_bucket" in exposed.text
    for word in ("nightly", "gone", "WEIRD", "nothing"):
        assert word not in exposed.text


def test_every_metric_is_documented(api: Api) -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    registry = api.app.extensions["bellringer"].metrics.registry
    for metric in registry.collect():
        assert f"`{metric.name}" in page
