"""Creating, reading, replacing, patching, deleting and listing automations."""

import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.api import Api, assert_problem, definition, if_match, pointers

NIGHTLY = "/automations/nightly"


def test_what_is_created_is_read_back_canonical(api: Api) -> None:
    body = definition(
        id="nightly",
        triggers=[
            {"type": "schedule", "id": "z", "expression": "  0   3 * * * "},
            {"type": "schedule", "id": "a", "enabled": False, "expression": "0 4 * * *"},
            {"type": "api", "id": "press-me"},
        ],
    )
    made = api.post("/automations", body)
    assert made.status_code == 201
    assert made.headers["Location"] == "/api/v1/automations/nightly"
    assert made.headers["ETag"] == f'"{made.json["revision"]}"'
    assert list(made.json) == ["id", "revision", "name", "description", "target", "triggers"]
    assert made.json["description"] is None
    assert made.json["triggers"] == [
        {"type": "api", "id": "manual", "enabled": True},
        {"type": "schedule", "id": "a", "enabled": False, "expression": "0 4 * * *"},
        {"type": "schedule", "id": "z", "enabled": True, "expression": "0 3 * * *"},
    ]
    read = api.get(NIGHTLY)
    assert (read.status_code, read.json) == (200, made.json)
    assert read.headers["ETag"] == made.headers["ETag"]


def test_triggers_may_be_left_out(api: Api) -> None:
    body = definition(id="bare")
    del body["triggers"]
    assert api.post("/automations", body).json["triggers"] == []


def test_an_id_that_is_taken_is_a_conflict(api: Api) -> None:
    api.create()
    document = assert_problem(
        api.post("/automations", definition(id="nightly", name="Other")), 409, "already-exists"
    )
    assert "'nightly'" in document["detail"]
    assert api.get(NIGHTLY).json["name"] == "Nightly"


def test_all_that_is_wrong_is_said_at_once(api: Api) -> None:
    body = {
        "id": "No Good",
        "revision": "0" * 64,
        "name": " ",
        "color": "red",
        "target": {"repository": "acme", "ref": "a..b", "workflow": "/x"},
        "triggers": [
            {"type": "schedule", "id": "a", "expression": "0 0 31 2 *"},
            {"type": "schedule", "id": "a", "expression": "nonsense"},
            {"type": "bell"},
        ],
    }
    assert pointers(api.post("/automations", body)) == [
        ("/color", "unknown-field"),
        ("/id", "invalid"),
        ("/name", "invalid"),
        ("/revision", "mismatch"),
        ("/target/ref", "invalid"),
        ("/target/repository", "invalid"),
        ("/target/workflow", "invalid"),
        ("/triggers/0/expression", "never-fires"),
        ("/triggers/1/expression", "invalid"),
        ("/triggers/1/id", "duplicate-id"),
        ("/triggers/2/type", "unknown-type"),
    ]
    assert api.get("/automations").json["meta"]["total"] == 0


@pytest.mark.parametrize(
    "body", [[], "x", 1, True, [{}], {"id": []}, {"id": {"a": 1}}, {"id": None}, {}]
)
def test_a_body_of_another_shape_is_refused(api: Api, body: Any) -> None:
    assert_problem(api.post("/automations", body), 422, "invalid-input")


def test_a_body_that_is_null_is_refused(api: Api) -> None:
    assert_problem(api.post("/automations", raw=b"null"), 422, "invalid-input")


@pytest.mark.parametrize("trigger_id", [[], {}, None, 1, True])
def test_a_trigger_id_of_another_type_beside_what_never_fires(api: Api, trigger_id: Any) -> None:
    trigger = {"type": "schedule", "id": trigger_id, "expression": "0 0 31 2 *"}
    assert pointers(api.post("/automations", definition(id="x", triggers=[trigger]))) == [
        ("/triggers/0/expression", "never-fires"),
        ("/triggers/0/id", "type"),
    ]


def test_pointers_escape_what_rfc_6901_says(api: Api) -> None:
    answer = api.post("/automations", definition(id="x", **{"a/b~c": 1}))
    assert pointers(answer) == [("/a~1b~0c", "unknown-field")]


# --- never-fires ------------------------------------------------------------------------------------

NEVER = {"type": "schedule", "id": "never", "enabled": True, "expression": "0 0 30 2 *"}


def given_one_that_never_fires(api: Api) -> str:
    """Put one there as an import of an old file would."""
    from app.api.services import services
    from app.automations.documents import read_draft

    with api.app.app_context():
        made = services().automations.create(
            "nightly", read_draft(definition(triggers=[NEVER])), "x"
        )
    return made.revision


def test_an_expression_that_never_fires_may_stay(api: Api) -> None:
    revision = given_one_that_never_fires(api)
    put = api.put(NIGHTLY, definition(name="A", triggers=[NEVER]), headers=if_match(revision))
    assert put.status_code == 200
    headers = if_match(put.json["revision"])
    assert api.patch(NIGHTLY, {"name": "B"}, headers=headers).status_code == 200


def test_an_expression_that_never_fires_may_not_be_added_or_moved(api: Api) -> None:
    revision = given_one_that_never_fires(api)
    for triggers in (
        [{**NEVER, "id": "other"}],
        [{**NEVER, "expression": "0 0 31 2 *"}],
        [NEVER, {**NEVER, "id": "second"}],
    ):
        answer = api.patch(NIGHTLY, {"triggers": triggers}, headers=if_match(revision))
        index = len(triggers) - 1
        assert pointers(answer) == [(f"/triggers/{index}/expression", "never-fires")]
    spaced = [{**NEVER, "expression": " 0 0  30 2 * "}]
    answer = api.patch(NIGHTLY, {"triggers": spaced}, headers=if_match(revision))
    assert answer.status_code == 200


# --- ids in paths -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["A", "-a", "a_b", "a" * 64, "a%20b", "a%00", "%2e%2e", "..%2f..", "a%0a", "%ff", "ü"]
)
@pytest.mark.parametrize(
    ("method", "below"),
    [
        ("GET", ""),
        ("PUT", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/history"),
        ("GET", "/history/1"),
        ("GET", "/schedule"),
        ("GET", "/runs"),
        ("POST", "/runs"),
    ],
)
def test_an_id_that_nothing_can_have_is_refused(
    api: Api, text: str, method: str, below: str
) -> None:
    answer = api.call(method, f"/automations/{text}{below}", documented=False)
    slug = answer.json["type"].removeprefix("/problems/")
    # A slash in an id makes it another path, where there is nothing.
    assert slug == ("not-found" if "%2f" in text else "invalid-id"), answer.text


def test_what_is_not_there_is_not_found(api: Api) -> None:
    for method in ("GET", "DELETE"):
        assert_problem(api.call(method, "/automations/nope"), 404, "not-found")


# --- PATCH ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        ({}, ("name",), "Nightly"),
        ({"name": "Other"}, ("name",), "Other"),
        ({"description": "Why"}, ("description",), "Why"),
        ({"description": None}, ("description",), None),
        ({"target": {"ref": "stable"}}, ("target", "ref"), "stable"),
        ({"target": {"ref": "stable"}}, ("target", "workflow"), "release"),
        ({"triggers": []}, ("triggers",), []),
        ({"triggers": None}, ("triggers",), []),
        (
            {"triggers": [{"type": "schedule", "id": "x", "expression": "1 1 * * *"}]},
            ("triggers",),
            [{"type": "schedule", "id": "x", "enabled": True, "expression": "1 1 * * *"}],
        ),
    ],
)
def test_a_patch_changes_what_it_names(
    api: Api, patch: Any, path: tuple[str, ...], expected: Any
) -> None:
    revision = api.create(description="Before")
    answer = api.patch(NIGHTLY, patch, headers=if_match(revision))
    assert answer.status_code == 200
    found = answer.json
    for name in path:
        found = found[name]
    assert found == expected
    assert api.get(NIGHTLY).json == answer.json
    assert answer.headers["ETag"] == f'"{answer.json["revision"]}"'


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"name": None}, [("/name", "required")]),
        ({"target": None}, [("/target", "required")]),
        ({"target": {"ref": None}}, [("/target/ref", "required")]),
        ({"target": "x"}, [("/target", "type")]),
        ({"target": {"color": "x"}}, [("/target/color", "unknown-field")]),
        ({"color": {"a": None}}, [("/color", "unknown-field")]),
        ({"triggers": {"0": {"enabled": False}}}, [("/triggers", "type")]),
        ({"id": "other"}, [("/id", "mismatch")]),
        ({"id": None}, [("/id", "mismatch")]),
        ({"revision": None}, [("/revision", "mismatch")]),
        ({"revision": "0" * 64, "name": ""}, [("/name", "invalid"), ("/revision", "mismatch")]),
        ([], [("", "type")]),
        ("x", [("", "type")]),
    ],
)
def test_a_patch_that_leads_to_what_breaks_rules_changes_nothing(
    api: Api, patch: Any, expected: list[tuple[str, str]]
) -> None:
    revision = api.create()
    assert pointers(api.patch(NIGHTLY, patch, headers=if_match(revision))) == expected
    assert api.get(NIGHTLY).json["revision"] == revision


def test_a_patch_of_null_is_no_object(api: Api) -> None:
    revision = api.create()
    answer = api.patch(NIGHTLY, raw=b"null", headers=if_match(revision))
    assert pointers(answer) == [("", "type")]


# --- id and revision in the body --------------------------------------------------------------------


def test_what_get_gave_can_be_put_back(api: Api) -> None:
    revision = api.create()
    read = api.get(NIGHTLY).json
    changed = {**read, "name": "Other"}
    assert api.put(NIGHTLY, changed, headers=if_match(revision)).status_code == 200


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({"id": "other"}, [("/id", "mismatch")]),
        ({"id": None}, [("/id", "mismatch")]),
        ({"revision": "0" * 64}, [("/revision", "mismatch")]),
        ({"revision": None}, [("/revision", "mismatch")]),
        ({"revision": 1, "id": 1}, [("/id", "mismatch"), ("/revision", "mismatch")]),
    ],
)
def test_another_id_or_revision_in_the_body_is_refused(
    api: Api, beside: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    revision = api.create()
    body = definition(name="Other", **beside)
    assert pointers(api.put(NIGHTLY, body, headers=if_match(revision))) == expected
    assert api.get(NIGHTLY).json["revision"] == revision


def test_the_revision_in_the_body_may_be_any_that_if_match_names(api: Api) -> None:
    revision = api.create()
    headers = {"If-Match": f'"{"0" * 64}", "{revision}"'}
    body = definition(name="Other", revision="0" * 64)
    assert api.put(NIGHTLY, body, headers=headers).status_code == 200


def test_creating_takes_no_revision(api: Api) -> None:
    body = definition(revision="0" * 64)
    headers = {"If-None-Match": "*"}
    assert pointers(api.put(NIGHTLY, body, headers=headers)) == [("/revision", "mismatch")]


# --- the list ---------------------------------------------------------------------------------------


def ids(answer: Any) -> list[str]:
    return [found["id"] for found in answer.json["data"]]


def test_an_empty_list(api: Api) -> None:
    answer = api.get("/automations")
    assert answer.json == {"data": [], "meta": {"total": 0, "next": None}}
    assert "Link" not in answer.headers


def test_pages_have_everything_once_in_order(api_everywhere: Api) -> None:
    api = api_everywhere
    names = ["a", "a-", "a-b", "a0", "ab", "b", "z9"]
    for name in reversed(names):
        api.create(name)
    seen, url = [], "/automations?limit=2"
    while url:
        page = api.get(url)
        assert page.status_code == 200
        assert page.json["meta"]["total"] == len(names)
        seen += ids(page)
        link = re.fullmatch(r'</api/v1(.+)>; rel="next"', page.headers.get("Link", ""))
        assert (link is None) == (page.json["meta"]["next"] is None)
        url = link[1] if link else ""
    assert seen == names


def test_filters_and_the_next_link_keeps_them(api_everywhere: Api) -> None:
    api = api_everywhere
    target = {"repository": "acme/web", "ref": "main", "workflow": "w"}
    timer = [{"type": "schedule", "id": "t", "expression": "0 3 * * *"}]
    api.create("one", name="Ünder_score & 100%", target=target, triggers=timer)
    api.create("two", name="Ünder_score & 100%", target=target)
    api.create("three", triggers=[])
    for query, expected in [
        ("repository=acme/web", ["one", "two"]),
        ("repository=acme/nope", []),
        ("trigger=api", ["two"]),
        ("trigger=schedule", ["one", "two"]),
        ("q=THREE", ["three"]),
        (f"q={quote('r_s')}", ["one", "two"]),
        (f"q={quote('100%')}", ["one", "two"]),
        (f"q={quote('ÜNDER')}", ["one", "two"]),
        (f"q={quote('Ünder')}", ["one", "two"]),
        ("q=NIGHT&trigger=api", []),
        (f"q={quote('& 1')}&repository=acme/web&trigger=api", ["two"]),
    ]:
        answer = api.get(f"/automations?{query}")
        assert (query, ids(answer)) == (query, expected)
        assert answer.json["meta"]["total"] == len(expected)
    page = api.get(f"/automations?q={quote('& 100%')}&repository=acme/web&limit=1")
    link = page.headers["Link"]
    assert link == (
        '</api/v1/automations?q=%26+100%25&repository=acme%2Fweb&limit=1&after=one>; rel="next"'
    )
    following = api.get(link[len("</api/v1") : link.index(">")])
    assert ids(following) == ["two"]
    assert following.json["meta"] == {"total": 2, "next": None}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=0", [("/limit", "invalid")]),
        ("limit=1001", [("/limit", "invalid")]),
        ("limit=", [("/limit", "invalid")]),
        ("limit=ten", [("/limit", "invalid")]),
        ("limit=1.0", [("/limit", "invalid")]),
        ("limit=%2B1", [("/limit", "invalid")]),
        ("limit=%D9%A1", [("/limit", "invalid")]),
        ("limit=1&limit=2", [("/limit", "repeated")]),
        ("limit=" + "9" * 5000, [("/limit", "invalid")]),
        ("after=No", [("/after", "invalid")]),
        ("after=", [("/after", "invalid")]),
        ("repository=acme", [("/repository", "invalid")]),
        ("q=", [("/q", "invalid")]),
        ("q=%00", [("/q", "invalid")]),
        ("q=" + "x" * 201, [("/q", "invalid")]),
        ("trigger=plugin", [("/trigger", "invalid")]),
        ("page=2", [("/page", "unknown-parameter")]),
        ("limit=0&x=1&q=", [("/limit", "invalid"), ("/q", "invalid"), ("/x", "unknown-parameter")]),
    ],
)
def test_a_query_that_breaks_rules_is_refused(
    api: Api, query: str, expected: list[tuple[str, str]]
) -> None:
    assert pointers(api.get(f"/automations?{query}")) == expected


def test_a_query_of_bytes_that_are_no_text_finds_nothing(api_everywhere: Api) -> None:
    assert ids(api_everywhere.get("/automations?q=%ff%fe")) == []


def test_the_limits_of_limit(api: Api) -> None:
    for limit in (1, 1000):
        assert api.get(f"/automations?limit={limit}").status_code == 200


# --- methods ----------------------------------------------------------------------------------------


def test_head_is_get_without_the_body(api: Api) -> None:
    api.create()
    head, get = api.call("HEAD", NIGHTLY), api.get(NIGHTLY)
    assert head.status_code == 200
    assert head.data == b""
    assert head.headers["ETag"] == get.headers["ETag"]
    assert head.headers["Content-Length"] == get.headers["Content-Length"]


def test_options_lists_the_methods(api: Api) -> None:
    answer = api.call("OPTIONS", NIGHTLY)
    assert answer.status_code == 200
    allowed = set(answer.headers["Allow"].split(", "))
    assert allowed == {"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"}


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/automations", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("POST", NIGHTLY, {"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"}),
        ("TRACE", NIGHTLY, {"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"}),
        ("BREW", "/runs", {"GET", "HEAD", "OPTIONS"}),
        ("GET", "/cron/preview", {"POST", "OPTIONS"}),
        ("PUT", "//healthz", {"GET", "HEAD", "OPTIONS"}),
    ],
)
def test_another_method_is_refused_with_those_there_are(
    api: Api, method: str, path: str, allowed: set[str]
) -> None:
    answer = api.call(method, path, documented=False)
    assert_problem(answer, 405, "method-not-allowed")
    assert set(answer.headers["Allow"].split(", ")) == allowed
