"""Errors: one shape, one table, nothing that should stay inside."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app import errors
from app.api.problems import BY_SLUG, PROBLEMS
from app.api.services import services
from app.db import Database
from tests.support.api import ADMIN, Api, assert_problem, definition, if_match, make_api

NIGHTLY = "/automations/nightly"


def test_every_problem_has_a_page(api: Api) -> None:
    anyone = api.as_(None)
    listed = anyone.get("//problems/").text
    for problem in PROBLEMS:
        plain = anyone.get(f"//problems/{problem.slug}")
        assert plain.content_type == "text/plain; charset=utf-8"
        assert problem.meaning in plain.text
        page = anyone.get(f"//problems/{problem.slug}", headers={"Accept": "text/html,*/*"})
        assert page.content_type == "text/html; charset=utf-8"
        assert problem.title in page.text.replace("&#x27;", "'")
        assert f'href="/problems/{problem.slug}"' in listed


def test_a_problem_that_is_none_has_no_page(api: Api) -> None:
    for slug in ("nope", "%2e%2e%2fetc", "<script>", "x" * 3000):
        answer = api.as_(None).get(f"//problems/{slug}", documented=False)
        assert_problem(answer, 404, "not-found")


def test_every_problem_is_documented_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|", page, flags=re.MULTILINE)
    assert rows == [(problem.slug, str(problem.status)) for problem in PROBLEMS]


def test_every_domain_error_has_an_answer(api: Api) -> None:
    """Those that only the command line or the worker meets have none."""
    from app.api.problems import _FROM_DOMAIN

    elsewhere = {
        errors.BellringerError,
        errors.InvalidExpression,
        errors.SettingsInvalid,
        errors.ImportRefused,
        errors.RunFailure,
        errors.SchemaOutOfDate,
        errors.PluginInvalid,
        errors.WouldOverwrite,
    }
    kinds = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.BellringerError)
    }
    assert not [k for k in kinds - elsewhere if not issubclass(k, tuple(_FROM_DOMAIN))]


def test_what_is_not_there_is_a_problem_everywhere(api: Api) -> None:
    for path in (
        "//nope",
        "//api",
        "//api/v1",
        "/nope",
        "/automations/",
        "//static/nope.css",
    ):
        assert_problem(api.get(path, documented=False), 404, "not-found")


@pytest.mark.parametrize(
    "path",
    [
        "//static/../factory.py",
        "//static/..%2ffactory.py",
        "//static/%2e%2e/%2e%2e/settings.py",
        "//static/..%5c..%5csettings.py",
        "//static//etc/passwd",
        "//static/%2fetc%2fpasswd",
        "//static/docs.css%00.html",
        "//static/",
    ],
)
def test_no_path_leads_out_of_static(api: Api, path: str) -> None:
    assert_problem(api.as_(None).get(path, documented=False), 404, "not-found")


def test_the_list_of_problems_is_found_without_its_slash(api: Api) -> None:
    answer = api.as_(None).get("//problems", documented=False)
    assert answer.status_code == 308
    assert answer.headers["Location"].endswith("/problems/")


# --- request ids ------------------------------------------------------------------------------------


def test_a_sane_request_id_is_taken_over(api: Api) -> None:
    sent = "trace-1.2:abc/DEF+=_"
    answer = api.get("/automations/gone", headers={"X-Request-Id": sent})
    assert answer.headers["X-Request-Id"] == sent
    assert answer.json["instance"] == sent


@pytest.mark.parametrize("sent", ["", "a b", "x" * 129, 'a"b', "<b>", "é", "a;b", "%0d%0aX: y"])
def test_another_request_id_is_replaced(api: Api, sent: str) -> None:
    answer = api.get("/automations/gone", headers={"X-Request-Id": sent})
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"])


def test_requests_have_different_ids(api: Api) -> None:
    assert len({api.get("//healthz").headers["X-Request-Id"] for _ in range(20)}) == 20


# --- bugs -------------------------------------------------------------------------------------------


def test_a_bug_is_a_problem_without_a_traceback_and_the_log_has_it(
    api: Api, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def get(self, automation_id: str) -> None:
            raise ZeroDivisionError("secret words")

    with api.app.app_context():
        object.__setattr__(services(), "automations", Broken())
    with caplog.at_level(logging.ERROR):
        answer = api.get(NIGHTLY, headers={"X-Request-Id": "find-me"})
    document = assert_problem(answer, 500, "internal-error")
    assert "secret words" not in answer.text
    assert "ZeroDivisionError" not in answer.text
    assert "find-me" in document["detail"]
    logged = capsys.readouterr().out + caplog.text
    assert "find-me" in logged and "ZeroDivisionError" in logged


# --- the database is away ---------------------------------------------------------------------------


@pytest.fixture
def api_without_database(tmp_path: Path) -> Api:
    """An application whose database can't be opened, and whose path is a secret."""
    database = Database(f"sqlite:///{tmp_path}/s3cret/missing/bellringer.db")
    return make_api(database)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/automations", None),
        ("GET", NIGHTLY, None),
        ("POST", "/automations", definition(id="x")),
        ("PUT", NIGHTLY, definition()),
        ("PATCH", NIGHTLY, {}),
        ("DELETE", NIGHTLY, None),
        ("GET", f"{NIGHTLY}/history", None),
        ("GET", f"{NIGHTLY}/schedule", None),
        ("POST", f"{NIGHTLY}/runs", {}),
        ("GET", "/runs", None),
        ("GET", "/runs/1", None),
        ("GET", "/runs/1/log", None),
        ("POST", "/runs/1/cancel", None),
        ("GET", "/tokens", None),
        ("POST", "/tokens", {"name": "x", "role": "viewer"}),
        ("GET", "//readyz", None),
    ],
)
def test_a_database_that_is_away_is_never_an_empty_answer(
    api_without_database: Api, method: str, path: str, body: Any
) -> None:
    answer = api_without_database.call(method, path, body, headers={"If-Match": "*"})
    assert_problem(answer, 503, "database-unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert "s3cret" not in answer.text


def test_a_token_can_not_be_checked_while_the_database_is_away(api_without_database: Api) -> None:
    stranger = api_without_database.as_("bell_" + "x" * 43)
    assert_problem(stranger.get("/automations"), 503, "database-unavailable")


def test_the_process_is_well_while_the_database_is_away(api_without_database: Api) -> None:
    assert api_without_database.as_(None).get("//healthz").status_code == 200
    assert (
        api_without_database.post("/cron/preview", {"expression": "* * * * *"}).status_code == 200
    )


# --- stored rows that break rules -------------------------------------------------------------------


def spoil(database: Database, sql: str) -> None:
    database.write(lambda c: c.execute(text(sql)))


@pytest.fixture
def spoiled(api_everywhere: Api, database: Database) -> Api:
    """An application with one automation that a DBA wrote past the rules, and one that is well."""
    api_everywhere.create("well")
    api_everywhere.create()
    spoil(database, "UPDATE automations SET target_ref = 'a..b' WHERE id = 'nightly'")
    return api_everywhere


def test_a_stored_row_that_breaks_rules_is_named_and_never_skipped(spoiled: Api) -> None:
    for path in (NIGHTLY, "/automations", f"{NIGHTLY}/schedule"):
        document = assert_problem(spoiled.get(path), 500, "stored-automation-invalid")
        assert document["automation"] == "nightly"
        assert document["errors"][0]["pointer"] == "/target/ref"
        assert "'nightly'" in document["detail"]
    assert spoiled.get("/automations/well").status_code == 200


def test_a_stored_row_that_breaks_rules_can_be_deleted(spoiled: Api) -> None:
    answer = spoiled.delete(NIGHTLY, headers={"If-Match": "*"})
    assert answer.status_code == 204
    assert [a["id"] for a in spoiled.get("/automations").json["data"]] == ["well"]
    assert spoiled.get(f"{NIGHTLY}/history").json["data"][0]["action"] == "delete"


def test_a_stored_row_that_breaks_rules_can_not_be_changed(spoiled: Api) -> None:
    for method, body in (("PUT", definition()), ("PATCH", {"name": "x"})):
        answer = spoiled.call(method, NIGHTLY, body, headers={"If-Match": "*"})
        assert_problem(answer, 500, "stored-automation-invalid")


def test_an_expression_that_breaks_rules_is_named(api: Api, sqlite_database: Database) -> None:
    api.create()
    spoil(sqlite_database, "UPDATE automation_triggers SET expression = '@daily'")
    document = assert_problem(api.get(NIGHTLY), 500, "stored-automation-invalid")
    assert "@daily" in document["errors"][0]["detail"]


# --- nothing of a client's text does more than stand there ------------------------------------------


def test_what_a_client_sends_makes_no_header(api: Api) -> None:
    revision = api.create()
    evil = "x\\r\\nSet-Cookie: a=b"
    answers = [
        api.get("/automations/gone", headers={"X-Request-Id": evil}),
        api.get("/automations?q=%0d%0aSet-Cookie:%20a=b"),
        api.get(NIGHTLY, headers={"If-None-Match": f'"{evil}"'}),
        api.put(NIGHTLY, definition(name="x"), headers={"If-Match": f'"{evil}"'}),
        api.patch(NIGHTLY, {"description": "\r\nSet-Cookie: a=b"}, headers=if_match(revision)),
        api.get("//problems/x%0d%0aSet-Cookie:a=b", documented=False),
    ]
    for answer in answers:
        assert "Set-Cookie" not in answer.headers


def test_no_answer_sniffs_or_is_kept_by_accident(api: Api) -> None:
    api.create()
    for path in ("/automations", NIGHTLY, "/tokens", "//healthz", "//docs", "/nope"):
        answer = api.get(path, documented=False)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        kept = answer.headers["Cache-Control"]
        assert "no-store" in kept or "no-cache" in kept
    assert api.get("/tokens").headers["Cache-Control"] == "no-store"


def test_the_admin_token_is_in_no_answer(api: Api) -> None:
    for path in ("/automations", "/tokens", "/nope", "//metrics", "//openapi.json", "//readyz"):
        assert ADMIN not in api.get(path, documented=False).text


def test_problems_have_words_that_fit_a_path() -> None:
    assert all(re.fullmatch("[a-z-]+", slug) for slug in BY_SLUG)


def test_a_bare_address_leads_to_the_documentation(api: Api) -> None:
    answer = api.as_(None).get("//", documented=False)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/docs")


def test_of_very_many_errors_the_first_are_listed_and_the_rest_counted(api: Api) -> None:
    triggers = [0] * 5_000
    answer = api.call("POST", "/automations", definition(id="a", triggers=triggers))
    listed = answer.json["errors"]
    assert (answer.status_code, len(listed)) == (422, 1_001)
    assert listed[0]["pointer"] == "/triggers/0"
    assert listed[-1]["detail"] == "4,000 more rules are broken."
