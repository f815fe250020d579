"""Starting, listing, reading, canceling runs and running them again, over the API."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from app.db import Database
from app.runs.ledger import Held, RunLedger, Verdict
from app.runs.models import runs
from app.runs.values import Reason
from tests.support.api import Api, assert_problem, definition, if_match, make_api, pointers
from tests.support.runs import changed, queued

RUNS = "/automations/nightly/runs"


def finished(database: Database, state: str = "succeeded") -> int:
    """Carry the oldest queued run out; return its id."""
    ledger = RunLedger(database)
    [claimed] = ledger.claim("worker-1", 1, 30)
    reason = None if state == "succeeded" else Reason("exit-code", "It exited with 3.")
    exit_code = 0 if state == "succeeded" else 3
    held = Held(claimed.run.id, claimed.run.attempt)
    assert ledger.finish("worker-1", held, Verdict(state, exit_code=exit_code, reason=reason))
    return claimed.run.id


def test_a_call_starts_a_run(api_everywhere: Api) -> None:
    revision = api_everywhere.create()
    answer = api_everywhere.post(RUNS, {"input": {"a": [1, None]}})
    assert answer.status_code == 201
    run = answer.json
    assert answer.headers["Location"] == f"/api/v1/runs/{run['id']}"
    assert run["state"] == "queued"
    assert run["automation"] == {"id": "nightly", "name": "Nightly", "revision": revision}
    assert run["trigger"] == {"type": "api", "id": "manual"}
    assert run["target"] == {"repository": "acme/shop", "ref": "main", "workflow": "release"}
    assert (run["attempt"], run["max_attempts"], run["events"]) == (0, 1, 1)
    nothing_yet = ("due_at", "started_at", "finished_at", "commit", "exit_code", "reason")
    assert all(run[name] is None for name in (*nothing_yet, "worker", "rerun_of"))
    assert api_everywhere.get(f"/runs/{run['id']}").json == run
    assert api_everywhere.get("/automations/nightly").json["revision"] == revision


@pytest.mark.parametrize(
    ("more", "events"),
    [
        ({}, 0),
        ({"body": {}}, 0),
        ({"raw": b""}, 0),
        ({"raw": b'{"input": null}'}, 1),
        ({"body": {"input": "x"}}, 1),
        ({"raw": b'{"input": 123456789012345678901234567890}'}, 1),
        ({"raw": b'{"input": "\\u0000"}'}, 1),
    ],
)
def test_the_input_may_be_left_out_and_may_be_anything(
    api_everywhere: Api, more: dict[str, Any], events: int
) -> None:
    api_everywhere.create()
    answer = api_everywhere.post(RUNS, **more)
    assert (answer.status_code, answer.json["events"]) == (201, events)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([], [("", "type")]),
        ("x", [("", "type")]),
        ({"inputs": 1}, [("/inputs", "unknown-field")]),
        ({"input": "x" * (64 * 1024 - 1)}, [("/input", "too-large")]),
    ],
)
def test_a_body_that_breaks_rules_starts_nothing(
    api: Api, body: Any, expected: list[tuple[str, str]]
) -> None:
    api.create()
    assert pointers(api.post(RUNS, body)) == expected
    assert api.get(RUNS).json["data"] == []


def test_an_input_of_64_kib_is_taken(api: Api) -> None:
    api.create()
    assert api.post(RUNS, {"input": "x" * (64 * 1024 - 2)}).status_code == 201


def test_without_an_api_trigger_calls_start_nothing(api: Api) -> None:
    for number, triggers in enumerate([[], [{"type": "api", "id": "x", "enabled": False}]]):
        api.create(f"quiet{number}", triggers=triggers)
        answer = api.post(f"/automations/quiet{number}/runs")
        document = assert_problem(answer, 409, "api-trigger-disabled")
        assert '"type": "api"' in document["detail"]
    assert api.get("/runs").json["data"] == []
    assert_problem(api.post("/automations/gone/runs"), 404, "not-found")


# --- idempotency ------------------------------------------------------------------------------------


def keyed(api: Api, key: str, body: Any = None, automation_id: str = "nightly") -> Any:
    return api.post(f"/automations/{automation_id}/runs", body, headers={"Idempotency-Key": key})


def test_a_key_leads_to_one_run(api_everywhere: Api) -> None:
    api = api_everywhere
    api.create()
    api.create("other")
    first = keyed(api, "k1", {"input": {"a": 1, "b": 2}})
    assert first.status_code == 201
    again = keyed(api, "k1", {"input": {"b": 2, "a": 1.0}})
    assert (again.status_code, again.json) == (200, first.json)
    assert again.headers["Location"] == first.headers["Location"]
    reused = assert_problem(keyed(api, "k1", {"input": 2}), 422, "idempotency-key-reused")
    assert reused["run"] == first.json["id"]
    assert keyed(api, "K1", {"input": 2}).status_code == 201
    assert keyed(api, "k1", {"input": 2}, "other").status_code == 201
    assert api.get("/runs").json["meta"]["total"] == 3


def test_a_key_is_answered_even_when_the_automation_is_gone(api: Api) -> None:
    revision = api.create()
    first = keyed(api, "k")
    api.delete("/automations/nightly", headers=if_match(revision))
    assert keyed(api, "k").json["id"] == first.json["id"]


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "é", "a\tb"])
def test_a_malformed_key_starts_nothing(api: Api, key: str) -> None:
    api.create()
    document = assert_problem(keyed(api, key), 400, "invalid-header")
    assert document["header"] == "Idempotency-Key"
    assert api.get("/runs").json["data"] == []


@pytest.mark.parametrize("key", ["!", "~" * 255, '"quoted,key"'])
def test_keys_at_the_limits(api: Api, key: str) -> None:
    api.create()
    assert keyed(api, key).status_code == 201
    assert keyed(api, key).status_code == 200


# --- lists ------------------------------------------------------------------------------------------


def ids(answer: Any) -> list[int]:
    assert answer.status_code == 200
    return [run["id"] for run in answer.json["data"]]


def test_pages_of_runs_have_each_once_newest_first(api: Api) -> None:
    api.create()
    made = [api.post(RUNS).json["id"] for _ in range(5)]
    seen, url = [], "/runs?limit=2&state=queued,running"
    while url:
        page = api.get(url)
        assert page.json["meta"]["total"] == 5
        seen += ids(page)
        link = page.headers.get("Link")
        assert (link is None) == (page.json["meta"]["next"] is None)
        url = link[len("</api/v1") : link.index(">")] if link else ""
        assert not url or "state=queued%2Crunning" in url
    assert seen == made[::-1]


def test_filters_of_runs(api: Api, sqlite_database: Database) -> None:
    database = sqlite_database
    api.create()
    api.create("other")
    manual = api.post(RUNS).json["id"]
    assert finished(database) == manual
    other = api.post("/automations/other/runs").json["id"]
    [timed] = queued(database)
    instant = database.read(database.now)
    early = instant - timedelta(days=2)
    changed(database, manual, queued_at=early)
    cut = (instant - timedelta(days=1)).isoformat().replace("+00:00", "Z")
    exact = early.isoformat().replace("+00:00", "Z")
    for query, expected in [
        ("", [timed, other, manual]),
        ("state=queued", [timed, other]),
        ("state=succeeded,queued", [timed, other, manual]),
        ("state=failed", []),
        ("trigger=api", [other, manual]),
        ("trigger=schedule", [timed]),
        ("trigger=at-three", [timed]),
        ("automation=other", [other]),
        ("automation=never-was", []),
        (f"since={cut}", [timed, other]),
        (f"until={cut}", [manual]),
        (f"since={exact}", [timed, other, manual]),
        (f"until={exact}", []),
        (f"before={other}", [manual]),
        ("before=0", []),
    ]:
        assert (query, ids(api.get(f"/runs?{query}"))) == (query, expected)
    assert ids(api.get(RUNS)) == [timed, manual]
    assert ids(api.get(f"{RUNS}?trigger=api")) == [manual]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("state=done", [("/state", "invalid")]),
        ("state=", [("/state", "invalid")]),
        ("state=queued&state=failed", [("/state", "repeated")]),
        ("trigger=A", [("/trigger", "invalid")]),
        ("automation=A", [("/automation", "invalid")]),
        ("since=yesterday", [("/since", "invalid")]),
        ("until=2026-12-01", [("/until", "invalid")]),
        ("before=-1", [("/before", "invalid")]),
        (f"before={2**63}", [("/before", "invalid")]),
        ("after=1", [("/after", "unknown-parameter")]),
    ],
)
def test_a_query_that_breaks_rules_is_refused(
    api: Api, query: str, expected: list[tuple[str, str]]
) -> None:
    assert pointers(api.get(f"/runs?{query}")) == expected


def test_the_total_is_exact_up_to_ten_thousand(api: Api, sqlite_database: Database) -> None:
    queued(sqlite_database)
    columns = ", ".join(c.name for c in runs.c if c.name != "id")
    numbers = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
    copies = f"INSERT INTO runs ({columns}) {numbers} SELECT {columns} FROM runs, n"
    sqlite_database.write(lambda c: c.execute(text(copies)))
    assert api.get("/runs?limit=1").json["meta"]["total"] == 10_000
    queued(sqlite_database, 1)
    meta = api.get("/runs?limit=1").json["meta"]
    assert (meta["total"], meta["more"]) == (None, True)


def test_runs_outlive_their_automation(api_everywhere: Api) -> None:
    revision = api_everywhere.create()
    run = api_everywhere.post(RUNS).json
    api_everywhere.delete("/automations/nightly", headers=if_match(revision))
    assert ids(api_everywhere.get(RUNS)) == [run["id"]]
    assert ids(api_everywhere.get(f"{RUNS}?state=failed")) == []
    assert api_everywhere.get(f"/runs/{run['id']}").json == run


def test_an_automation_without_runs_has_an_empty_list_and_what_never_was_none(api: Api) -> None:
    api.create()
    assert api.get(RUNS).json == {"data": [], "meta": {"total": 0, "next": None}}
    assert_problem(api.get("/automations/never/runs"), 404, "not-found")


@pytest.mark.parametrize("number", [1, 2**63 - 1, 2**63, 10**50])
def test_a_run_that_is_not_there(api_everywhere: Api, number: int) -> None:
    for method, below in (("GET", ""), ("POST", "/cancel"), ("POST", "/rerun"), ("GET", "/log")):
        answer = api_everywhere.call(method, f"/runs/{number}{below}")
        assert_problem(answer, 404, "not-found")


# --- cancel and rerun -------------------------------------------------------------------------------


def test_a_queued_run_is_canceled_at_once(api_everywhere: Api) -> None:
    api_everywhere.create()
    run = api_everywhere.post(RUNS).json["id"]
    answer = api_everywhere.post(f"/runs/{run}/cancel")
    assert (answer.status_code, answer.json["state"]) == (202, "canceled")
    assert answer.json["reason"]["code"] == "canceled"
    document = assert_problem(api_everywhere.post(f"/runs/{run}/cancel"), 409, "run-finished")
    assert document["state"] == "canceled"


def test_a_running_run_is_asked_to_end_and_may_be_asked_again(
    api_everywhere: Api, database: Database
) -> None:
    api_everywhere.create()
    run = api_everywhere.post(RUNS).json["id"]
    [claimed] = RunLedger(database).claim("worker-1", 1, 30)
    for _ in range(2):
        answer = api_everywhere.post(f"/runs/{run}/cancel")
        assert (answer.status_code, answer.json["state"]) == (202, "running")
    held = Held(run, claimed.run.attempt)
    assert RunLedger(database).renew("worker-1", [held], 30).cancel_requested == {held}


def test_what_has_ended_is_run_again(api_everywhere: Api, database: Database) -> None:
    revision = api_everywhere.create()
    api_everywhere.post(RUNS, {"input": 1})
    first = finished(database, "failed")
    api_everywhere.put(
        "/automations/nightly", definition(name="Changed"), headers=if_match(revision)
    )
    answer = api_everywhere.post(f"/runs/{first}/rerun")
    assert answer.status_code == 201
    again = answer.json
    assert answer.headers["Location"] == f"/api/v1/runs/{again['id']}"
    assert (again["rerun_of"], again["state"], again["due_at"]) == (first, "queued", None)
    assert (again["events"], again["automation"]["revision"]) == (1, revision)
    failed = api_everywhere.get(f"/runs/{first}").json
    assert failed["reason"] == {"code": "exit-code", "detail": "It exited with 3."}
    assert (failed["exit_code"], failed["worker"]) == (3, "worker-1") or failed["exit_code"] == 3


def test_what_has_not_ended_is_not_run_again(api: Api) -> None:
    api.create()
    run = api.post(RUNS).json["id"]
    document = assert_problem(api.post(f"/runs/{run}/rerun"), 409, "run-not-finished")
    assert document["state"] == "queued"


def test_runs_get_the_attempts_of_the_settings(sqlite_database: Database) -> None:
    api = make_api(sqlite_database, run_attempts=3)
    api.create()
    assert api.post(RUNS).json["max_attempts"] == 3
