"""What automations were, over the API."""

import pytest

from tests.support.api import Api, assert_problem, definition, if_match, pointers

NIGHTLY = "/automations/nightly"


def grown(api: Api) -> list[str]:
    """Create, change and delete an automation; return its revisions, the oldest first."""
    editor = api.as_(api.post("/tokens", {"name": "ci", "role": "editor"}).json["token"])
    first = editor.create()
    changed = editor.put(NIGHTLY, definition(name="Changed"), headers=if_match(first))
    second = changed.json["revision"]
    assert api.delete(NIGHTLY, headers=if_match(second)).status_code == 204
    return [first, second]


def test_history_has_each_change_newest_first_and_outlives_the_automation(
    api_everywhere: Api,
) -> None:
    first, second = grown(api_everywhere)
    answer = api_everywhere.get(f"{NIGHTLY}/history")
    shown = [(c["action"], c["revision"], c["actor"]) for c in answer.json["data"]]
    assert shown == [
        ("delete", second, "admin"),
        ("replace", second, "token:ci"),
        ("create", first, "token:ci"),
    ]
    numbers = [change["number"] for change in answer.json["data"]]
    assert numbers == sorted(numbers, reverse=True)


def test_each_document_can_be_read_as_it_was(api_everywhere: Api) -> None:
    grown(api_everywhere)
    changes = api_everywhere.get(f"{NIGHTLY}/history").json["data"]
    names = [
        api_everywhere.get(f"{NIGHTLY}/history/{c['number']}").json["document"]["name"]
        for c in changes
    ]
    assert names == ["Changed", "Changed", "Nightly"]
    assert_problem(api_everywhere.get(NIGHTLY), 404, "not-found")


def test_a_document_of_history_can_be_created_again(api: Api) -> None:
    grown(api)
    oldest = api.get(f"{NIGHTLY}/history").json["data"][-1]["number"]
    document = api.get(f"{NIGHTLY}/history/{oldest}").json["document"]
    answer = api.put(NIGHTLY, document, headers={"If-None-Match": "*"})
    assert answer.json["name"] == "Nightly"


def test_pages_of_history(api: Api) -> None:
    grown(api)
    page = api.get(f"{NIGHTLY}/history?limit=2")
    cursor = page.json["meta"]["next"]
    assert page.headers["Link"] == (
        f'</api/v1{NIGHTLY}/history?limit=2&before={cursor}>; rel="next"'
    )
    rest = api.get(f"{NIGHTLY}/history?limit=2&before={cursor}")
    assert [c["action"] for c in rest.json["data"]] == ["create"]
    assert rest.json["meta"]["next"] is None
    assert "Link" not in rest.headers
    assert api.get(f"{NIGHTLY}/history?before=0").json["data"] == []


def test_what_never_was_has_no_history(api: Api) -> None:
    grown(api)
    number = api.get(f"{NIGHTLY}/history").json["data"][0]["number"]
    for path in (
        "/automations/other/history",
        "/automations/other/history?before=1",
        f"/automations/other/history/{number}",
        f"{NIGHTLY}/history/{number + 1}",
        f"{NIGHTLY}/history/{2**63}",
        f"{NIGHTLY}/history/{'9' * 100}",
    ):
        assert_problem(api.get(path), 404, "not-found")


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.0", "01", "%D9%A1", "1%20", "9" * 101])
def test_a_number_that_is_none_is_refused(api: Api, number: str) -> None:
    assert_problem(api.get(f"{NIGHTLY}/history/{number}"), 400, "invalid-id")
    assert_problem(api.get(f"/runs/{number}"), 400, "invalid-id")


def test_a_query_that_breaks_rules_is_refused(api: Api) -> None:
    answer = api.get(f"{NIGHTLY}/history?before=x&limit=0&after=1")
    assert pointers(answer) == [
        ("/after", "unknown-parameter"),
        ("/before", "invalid"),
        ("/limit", "invalid"),
    ]
