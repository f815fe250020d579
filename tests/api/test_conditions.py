"""Conditional requests, on every database."""

from typing import Any

import pytest

from tests.support.api import Api, assert_problem, definition, if_match

NIGHTLY = "/automations/nightly"
OTHER = "0" * 64
WRITES = ("PUT", "PATCH", "DELETE")


def write(api: Api, method: str, headers: dict[str, str], name: str = "Changed") -> Any:
    body = {"PUT": definition(name=name), "PATCH": {"name": name}, "DELETE": None}[method]
    return api.call(method, NIGHTLY, body, headers=headers)


def tag(pattern: str, revision: str) -> dict[str, str]:
    return {"If-Match": pattern.replace("REV", revision).replace("OLD", OTHER)}


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize(
    "pattern",
    [
        '"REV"',
        "*",
        '"OLD", "REV"',
        '"x,y" , "REV"',
        'W/"REV", "REV"',
        "REV",
        '"REV-gzip"',
        '"REV--gzip"',
        '"REV;gzip"',
        '"REV-br"',
    ],
)
def test_a_current_tag_lets_the_write_through(
    api_everywhere: Api, method: str, pattern: str
) -> None:
    revision = api_everywhere.create()
    answer = write(api_everywhere, method, tag(pattern, revision))
    if method == "DELETE":
        assert (answer.status_code, answer.data) == (204, b"")
        assert_problem(api_everywhere.get(NIGHTLY), 404, "not-found")
    else:
        assert answer.status_code == 200
        assert answer.json["name"] == "Changed"
        assert api_everywhere.get(NIGHTLY).headers["ETag"] == answer.headers["ETag"]


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("pattern", ['"OLD"', '"OLD", "x"', '""', '"REV-zip"', "OLD"])
def test_a_stale_tag_changes_nothing_and_tells_the_current_one(
    api_everywhere: Api, method: str, pattern: str
) -> None:
    revision = api_everywhere.create()
    answer = write(api_everywhere, method, tag(pattern, revision))
    document = assert_problem(answer, 412, "stale-revision")
    assert document["current_revision"] == revision
    assert answer.headers["ETag"] == f'"{revision}"'
    assert api_everywhere.get(NIGHTLY).json["revision"] == revision


@pytest.mark.parametrize("method", WRITES)
def test_a_weak_tag_matches_nothing_and_the_answer_says_why(api: Api, method: str) -> None:
    revision = api.create()
    document = assert_problem(write(api, method, tag('W/"REV"', revision)), 412, "stale-revision")
    assert "weak" in document["detail"]
    assert api.get(NIGHTLY).json["revision"] == revision


@pytest.mark.parametrize("method", WRITES)
def test_without_a_tag_nothing_is_written(api: Api, method: str) -> None:
    revision = api.create()
    assert_problem(write(api, method, {}), 428, "precondition-required")
    assert api.get(NIGHTLY).json["revision"] == revision


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("value", ["", " ", ",", "abc", '"REV', "W/REV", '"REV" x', "*, *", "w/*"])
def test_a_malformed_header_changes_nothing(api: Api, method: str, value: str) -> None:
    revision = api.create()
    document = assert_problem(write(api, method, tag(value, revision)), 400, "invalid-header")
    assert document["header"] == "If-Match"
    assert api.get(NIGHTLY).json["revision"] == revision


@pytest.mark.parametrize("method", WRITES)
def test_several_lines_are_one_list(api: Api, method: str) -> None:
    revision = api.create()
    client = api.app.test_client()
    headers = [
        ("Authorization", f"Bearer {api.token}"),
        ("If-Match", f'"{OTHER}"'),
        ("If-Match", f'"{revision}"'),
    ]
    media_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = client.open(
        f"/api/v1{NIGHTLY}",
        method=method,
        headers=headers,
        json=definition(),
        content_type=media_type,
    )
    assert answer.status_code in (200, 204)


@pytest.mark.parametrize("method", WRITES)
def test_a_write_to_what_is_gone_is_not_found(api_everywhere: Api, method: str) -> None:
    for value in ("*", f'"{OTHER}"', None):
        headers = {} if value is None else {"If-Match": value}
        assert_problem(write(api_everywhere, method, headers), 404, "not-found")


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_if_none_match_is_not_overlooked_where_it_means_nothing(api: Api, method: str) -> None:
    revision = api.create()
    headers = {**if_match(revision), "If-None-Match": "*"}
    assert_problem(write(api, method, headers), 400, "invalid-header")
    assert api.get(NIGHTLY).json["revision"] == revision


# --- a repeated request -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("pattern", ['"FIRST"', '"OLD"', "*", 'W/"FIRST"', '"CURRENT"'])
def test_what_was_applied_already_is_answered_as_success(
    api_everywhere: Api, method: str, pattern: str
) -> None:
    first = api_everywhere.create()
    done = write(api_everywhere, method, if_match(first))
    current = done.json["revision"]
    value = pattern.replace("FIRST", first).replace("CURRENT", current).replace("OLD", OTHER)
    again = write(api_everywhere, method, {"If-Match": value})
    assert again.status_code == 200
    assert again.json == done.json
    assert again.headers["ETag"] == f'"{current}"'
    changes = api_everywhere.get(f"{NIGHTLY}/history").json["data"]
    assert [change["action"] for change in changes] == ["replace", "create"]


def test_what_was_applied_already_may_carry_the_revision_it_was_made_from(api: Api) -> None:
    first = api.create()
    body = definition(name="Changed", id="nightly", revision=first)
    for _ in range(2):
        assert api.put(NIGHTLY, body, headers=if_match(first)).status_code == 200


def test_a_stale_tag_with_a_body_that_breaks_rules_is_stale(api: Api) -> None:
    api.create()
    answer = api.put(NIGHTLY, {"name": ""}, headers={"If-Match": f'"{OTHER}"'})
    assert_problem(answer, 412, "stale-revision")


def test_a_revision_is_content(api: Api) -> None:
    a = api.create()
    b = api.put(NIGHTLY, definition(name="B"), headers=if_match(a)).json["revision"]
    assert api.put(NIGHTLY, definition(), headers=if_match(b)).json["revision"] == a
    assert api.put(NIGHTLY, definition(name="C"), headers=if_match(a)).status_code == 200


# --- PUT that creates -------------------------------------------------------------------------------


def test_put_creates_what_is_not_there(api_everywhere: Api) -> None:
    answer = api_everywhere.put(NIGHTLY, definition(), headers={"If-None-Match": "*"})
    assert answer.status_code == 201
    assert answer.headers["Location"] == "/api/v1/automations/nightly"
    assert answer.headers["ETag"] == f'"{answer.json["revision"]}"'


def test_put_that_creates_never_replaces(api_everywhere: Api) -> None:
    revision = api_everywhere.create()
    answer = api_everywhere.put(NIGHTLY, definition(name="Other"), headers={"If-None-Match": "*"})
    document = assert_problem(answer, 412, "precondition-failed")
    assert document["current_revision"] == revision
    assert answer.headers["ETag"] == f'"{revision}"'
    assert api_everywhere.get(NIGHTLY).json["name"] == "Nightly"


@pytest.mark.parametrize("value", [f'"{OTHER}"', f'"{OTHER}", "x"'])
def test_put_takes_no_tags_in_if_none_match(api: Api, value: str) -> None:
    answer = api.put(NIGHTLY, definition(), headers={"If-None-Match": value})
    assert_problem(answer, 400, "invalid-header")


def test_put_takes_one_condition(api: Api) -> None:
    headers = {"If-None-Match": "*", "If-Match": "*"}
    assert_problem(api.put(NIGHTLY, definition(), headers=headers), 400, "invalid-header")


def test_a_malformed_if_none_match_creates_nothing(api: Api) -> None:
    for value in ("", "**", "x"):
        answer = api.put(NIGHTLY, definition(), headers={"If-None-Match": value})
        assert_problem(answer, 400, "invalid-header")
    assert_problem(api.get(NIGHTLY), 404, "not-found")


# --- GET --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "status"),
    [
        ('"REV"', 304),
        ('W/"REV"', 304),
        ('"REV-gzip"', 304),
        ("REV", 304),
        ("*", 304),
        ('"x", W/"REV"', 304),
        ('"OLD"', 200),
        ('W/"OLD"', 200),
        ('"x"', 200),
    ],
)
def test_a_read_of_what_the_client_has_is_304(
    api_everywhere: Api, pattern: str, status: int
) -> None:
    revision = api_everywhere.create()
    value = pattern.replace("REV", revision).replace("OLD", OTHER)
    answer = api_everywhere.get(NIGHTLY, headers={"If-None-Match": value})
    assert answer.status_code == status
    assert answer.headers["ETag"] == f'"{revision}"'
    assert bool(answer.data) == (status == 200)
    assert "no-cache" in answer.headers["Cache-Control"]


def test_a_read_with_a_malformed_header_is_refused(api: Api) -> None:
    api.create()
    for value in ("", "x", '"'):
        answer = api.get(NIGHTLY, headers={"If-None-Match": value})
        assert_problem(answer, 400, "invalid-header")


def test_a_read_of_nothing_is_not_found_whatever_the_client_has(api: Api) -> None:
    assert_problem(api.get(NIGHTLY, headers={"If-None-Match": "*"}), 404, "not-found")


def test_more_tags_than_a_statement_takes_parameters_are_compared_all_the_same(
    api_everywhere: Api,
) -> None:
    revision = api_everywhere.create()
    tags = [f'"{number:x}"' for number in range(70_000)]
    listed = {"If-Match": ",".join([*tags, f'"{revision}"'])}
    assert write(api_everywhere, "PUT", listed).status_code == 200
