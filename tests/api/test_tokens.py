"""Tokens and roles: who may do what, over the API and in the store."""

import re
from typing import Any

import pytest
from sqlalchemy import select, text

from app.api.access import PUBLIC, role_of
from app.auth.models import ROLES, api_tokens
from app.auth.tokens import TokenStore
from app.db import Database
from app.errors import DatabaseUnavailable, InvalidInput, NotFound
from tests.support.api import ADMIN, Api, DrivenClock, assert_problem, make_api, pointers

SHAPE = re.compile(r"bell_[A-Za-z0-9_-]{43}")


def store_of(database: Database, clock: DrivenClock, **more: Any) -> TokenStore:
    return TokenStore(database, clock=clock, **more)


def row_of(database: Database, token_id: str) -> Any:
    query = select(api_tokens).where(api_tokens.c.id == token_id)
    return database.read(lambda c: c.execute(query).one())


# --- every route ------------------------------------------------------------------------------------

ROUTES = {
    ("GET", "/api/v1/automations"): "viewer",
    ("POST", "/api/v1/automations"): "editor",
    ("GET", "/api/v1/automations/<automation_id>"): "viewer",
    ("PUT", "/api/v1/automations/<automation_id>"): "editor",
    ("PATCH", "/api/v1/automations/<automation_id>"): "editor",
    ("DELETE", "/api/v1/automations/<automation_id>"): "editor",
    ("GET", "/api/v1/automations/<automation_id>/history"): "viewer",
    ("GET", "/api/v1/automations/<automation_id>/history/<number>"): "viewer",
    ("GET", "/api/v1/automations/<automation_id>/schedule"): "viewer",
    ("GET", "/api/v1/automations/<automation_id>/runs"): "viewer",
    ("POST", "/api/v1/automations/<automation_id>/runs"): "operator",
    ("POST", "/api/v1/cron/preview"): "viewer",
    ("GET", "/api/v1/runs"): "viewer",
    ("GET", "/api/v1/runs/<run_id>"): "viewer",
    ("POST", "/api/v1/runs/<run_id>/cancel"): "operator",
    ("POST", "/api/v1/runs/<run_id>/rerun"): "operator",
    ("GET", "/api/v1/runs/<run_id>/log"): "viewer",
    ("GET", "/api/v1/tokens"): "admin",
    ("POST", "/api/v1/tokens"): "admin",
    ("DELETE", "/api/v1/tokens/<token_id>"): "admin",
    ("GET", "/healthz"): PUBLIC,
    ("GET", "/readyz"): PUBLIC,
    ("GET", "/metrics"): PUBLIC,
    ("GET", "/"): PUBLIC,
    ("GET", "/openapi.json"): PUBLIC,
    ("GET", "/docs"): PUBLIC,
    ("GET", "/problems/"): PUBLIC,
    ("GET", "/problems/<slug>"): PUBLIC,
    ("GET", "/static/<path:filename>"): PUBLIC,
}


def test_every_route_declares_its_role(api: Api) -> None:
    declared = {
        (method, rule.rule): role_of(api.app.view_functions[rule.endpoint])
        for rule in api.app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert declared == ROUTES


@pytest.mark.parametrize(("method", "rule"), ROUTES)
def test_every_route_asks_for_its_role(api: Api, method: str, rule: str) -> None:
    needed = ROUTES[method, rule]
    path = "/" + re.sub(r"<[^>]+>", "1", rule)
    nobody = api.as_(None).call(method, path, documented=False)
    if needed == PUBLIC:
        assert nobody.status_code in (200, 302, 404)
        return
    assert_problem(nobody, 401, "unauthorized")
    assert nobody.headers["WWW-Authenticate"].startswith("Bearer")
    for role in ROLES:
        token = api.post("/tokens", {"name": role, "role": role}).json["token"]
        answer = api.as_(token).call(method, path, documented=False)
        if ROLES.index(role) < ROLES.index(needed):
            document = assert_problem(answer, 403, "forbidden")
            assert document["role"] == needed
            assert repr(needed) in document["detail"]
        else:
            assert answer.status_code not in (401, 403)


def test_a_route_without_a_role_answers_nobody(api: Api) -> None:
    api.app.view_functions["automations.list_automations"] = lambda: "secret"
    answer = api.get("/automations", documented=False)
    assert_problem(answer, 500, "internal-error")


def test_head_takes_the_role_of_get(api: Api) -> None:
    assert api.as_(None).call("HEAD", "/automations").status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {ADMIN}",
        ADMIN,
        f"Bearer {ADMIN}x",
        f"Bearer {ADMIN[:-1]}",
        f"Bearer {ADMIN} x",
        f"Bearer,{ADMIN}",
        "Bearer bell_" + "x" * 43,
        "Bearer \xe9",
        "Bearer " + "x" * 10_000,
    ],
)
def test_what_is_no_token_is_refused(api: Api, header: str) -> None:
    answer = api.as_(None).get("/automations", headers={"Authorization": header})
    assert_problem(answer, 401, "unauthorized")
    assert "invalid_token" in answer.headers["WWW-Authenticate"]


def test_the_scheme_is_written_in_any_case(api: Api) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{scheme} {ADMIN}"}
        assert api.as_(None).get("/automations", headers=headers).status_code == 200


def test_without_an_admin_token_in_the_settings_there_is_none(sqlite_database: Database) -> None:
    api = make_api(sqlite_database, admin_token=None)
    assert_problem(api.get("/automations"), 401, "unauthorized")


# --- the calls --------------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_stored_as_a_hash(
    api_everywhere: Api, database: Database
) -> None:
    made = api_everywhere.post("/tokens", {"name": "ci", "role": "editor"})
    assert made.status_code == 201
    assert SHAPE.fullmatch(made.json["token"])
    assert made.json["created_by"] == "admin"
    [listed] = api_everywhere.get("/tokens").json["data"]
    assert listed == {name: value for name, value in made.json.items() if name != "token"}
    stored = repr(tuple(row_of(database, listed["id"])))
    assert made.json["token"] not in stored
    assert made.json["token"][5:] not in stored
    assert api_everywhere.as_(made.json["token"]).create()


def test_a_revoked_token_is_worth_nothing_here_at_once(api_everywhere: Api) -> None:
    made = api_everywhere.post("/tokens", {"name": "ci", "role": "editor"}).json
    holder = api_everywhere.as_(made["token"])
    assert holder.get("/automations").status_code == 200
    assert api_everywhere.delete(f"/tokens/{made['id']}").status_code == 204
    assert_problem(holder.get("/automations"), 401, "unauthorized")
    assert_problem(api_everywhere.delete(f"/tokens/{made['id']}"), 404, "not-found")
    assert api_everywhere.get("/tokens").json["data"] == []


@pytest.mark.parametrize("token_id", ["A", "a" * 64, "a%20b", "%0a", "a%0a"])
def test_an_id_that_no_token_has_is_refused(api: Api, token_id: str) -> None:
    assert_problem(api.delete(f"/tokens/{token_id}"), 400, "invalid-id")


def test_a_token_expires(api: Api, clock: DrivenClock) -> None:
    body = {"name": "short", "role": "viewer", "expires_at": "2026-12-01T14:00:40+02:00"}
    made = api.post("/tokens", body).json
    assert made["expires_at"] == "2026-12-01T12:00:40Z"
    holder = api.as_(made["token"])
    assert holder.get("/automations").status_code == 200
    clock.move(9.9)
    assert holder.get("/automations").status_code == 200
    clock.move(0.1)
    assert_problem(holder.get("/automations"), 401, "unauthorized")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, [("/name", "required"), ("/role", "required")]),
        ([], [("", "type")]),
        ({"name": 1, "role": None}, [("/name", "type"), ("/role", "type")]),
        ({"name": " ", "role": "root"}, [("/name", "invalid"), ("/role", "unknown-role")]),
        ({"name": "x" * 201, "role": "viewer"}, [("/name", "invalid")]),
        ({"name": "a\x00b", "role": "viewer"}, [("/name", "invalid")]),
        ({"name": "a\nb", "role": "viewer"}, [("/name", "invalid")]),
        ({"name": "a", "role": "viewer", "x": 1}, [("/x", "unknown-field")]),
        ({"name": "a", "role": "viewer", "expires_at": 1}, [("/expires_at", "invalid")]),
        (
            {"name": "a", "role": "viewer", "expires_at": "2026-12-01T12:00:30Z"},
            [("/expires_at", "invalid")],
        ),
    ],
)
def test_a_token_that_breaks_rules_is_not_made(
    api: Api, body: Any, expected: list[tuple[str, str]]
) -> None:
    assert pointers(api.post("/tokens", body)) == expected
    assert api.get("/tokens").json["data"] == []


def test_history_names_the_token_however_long_its_name(api: Api) -> None:
    token = api.post("/tokens", {"name": "ü" * 200, "role": "editor"}).json["token"]
    api.as_(token).create()
    [change] = api.get("/automations/nightly/history").json["data"]
    assert change["actor"] == "token:" + "ü" * 200


# --- the store --------------------------------------------------------------------------------------


def test_most_requests_cost_no_query(sqlite_database: Database, clock: DrivenClock) -> None:
    store = store_of(sqlite_database, clock, cache_seconds=5)
    token = store.create("x", "viewer", "test").token
    assert store.verify(token) is not None
    unreachable = "the store did not ask"
    store._look_up = lambda _: pytest.fail(unreachable)  # type: ignore[method-assign]
    clock.move(4.9)
    assert store.verify(token) is not None


@pytest.mark.parametrize("cache_seconds", [0, 5])
def test_a_revocation_elsewhere_is_noticed_within_the_cache_time(
    database: Database, clock: DrivenClock, cache_seconds: float
) -> None:
    here = store_of(database, clock, cache_seconds=cache_seconds)
    elsewhere = store_of(database, clock)
    made = here.create("x", "viewer", "test")
    assert here.verify(made.token) is not None
    elsewhere.revoke(made.about.id)
    if cache_seconds:
        assert here.verify(made.token) is not None
    clock.move(cache_seconds)
    assert here.verify(made.token) is None


def test_use_is_written_down_at_most_once_a_minute(database: Database, clock: DrivenClock) -> None:
    store = store_of(database, clock, cache_seconds=0)
    made = store.create("x", "viewer", "test")
    assert row_of(database, made.about.id).last_used_at is None
    store.verify(made.token)
    first = clock.now()
    assert row_of(database, made.about.id).last_used_at == first
    clock.move(59)
    store.verify(made.token)
    assert row_of(database, made.about.id).last_used_at == first
    clock.move(1)
    store.verify(made.token)
    assert row_of(database, made.about.id).last_used_at == clock.now()


def test_use_that_can_not_be_written_down_hinders_nobody(
    sqlite_database: Database, clock: DrivenClock
) -> None:
    store = store_of(sqlite_database, clock)
    made = store.create("x", "viewer", "test")
    with sqlite_database.writer.connect() as other:
        other.exec_driver_sql("BEGIN IMMEDIATE")
        assert store.verify(made.token) is not None
        other.rollback()
    assert row_of(sqlite_database, made.about.id).last_used_at is None


def test_garbage_is_refused_without_a_query(clock: DrivenClock) -> None:
    store = store_of(Database("sqlite:////nowhere/at/all.db"), clock)
    for secret in ("", "x", "bell_", "bell_" + "é" * 43, "x" * 48, "bell_" + "x" * 44, "\ud800"):
        assert store.verify(secret) is None
    with pytest.raises(DatabaseUnavailable):
        store.verify("bell_" + "x" * 43)


def test_the_cache_is_bounded(sqlite_database: Database, clock: DrivenClock) -> None:
    from app.auth import tokens

    store = store_of(sqlite_database, clock, cache_seconds=300)
    made = [store.create("x", "viewer", "test").token for _ in range(5)]
    limit, tokens._CACHED_AT_MOST = tokens._CACHED_AT_MOST, 3
    try:
        assert all(store.verify(token) for token in made)
        assert len(store._known) <= 3
    finally:
        tokens._CACHED_AT_MOST = limit


def test_a_role_that_a_dba_wrote_is_one_of_the_roles(database: Database) -> None:
    sql = (
        "INSERT INTO api_tokens (id, name, role, token_hash, created_at, created_by) VALUES "
        "('x', 'x', 'root', '" + "0" * 64 + "', '2026-01-01 00:00:00', 'x')"
    )
    with pytest.raises(Exception, match="ck_api_tokens_role_known"):
        database.write(lambda c: c.execute(text(sql)))


def test_the_store_refuses_what_breaks_rules(database: Database, clock: DrivenClock) -> None:
    store = store_of(database, clock)
    with pytest.raises(InvalidInput):
        store.create("", "root", "test", clock.now())
    with pytest.raises(NotFound):
        store.revoke("gone")
    assert store.list() == []


def test_tokens_are_all_different(database: Database, clock: DrivenClock) -> None:
    store = store_of(database, clock)
    made = {store.create("x", "viewer", "test").token for _ in range(20)}
    assert len(made) == 20
