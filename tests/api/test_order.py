"""Which answer a request gets that is wrong in several ways: each row mends the fault before it."""

from typing import Any

import pytest

from tests.support.api import Api, definition

OTHER = f'"{"0" * 64}"'
LARGE = b" " * (1024 * 1024 + 1)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_faults_are_answered_in_order(api: Api, method: str) -> None:
    api.create("there")
    right_type = "application/json" if method == "PUT" else "application/merge-patch+json"
    viewer = api.post("/tokens", {"name": "v", "role": "viewer"}).json["token"]

    def answered(
        path: str, raw: bytes, token: str | None = api.token, **headers: str
    ) -> tuple[int, str]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        content_type = sent.pop("Content-Type", right_type)
        answer = api.as_(token).call(
            method, f"/automations/{path}", raw=raw, headers=sent, content_type=content_type
        )
        return answer.status_code, answer.json["type"].removeprefix("/problems/")

    wrong_type: dict[str, str] = {"Content_Type": "text/plain"}
    stale: dict[str, str] = {"If_Match": OTHER}
    current: dict[str, str] = {"If_Match": "*"}
    rules = b'{"name": ""}'
    assert answered("No", LARGE, None, If_Match="", **wrong_type) == (401, "unauthorized")
    assert answered("No", LARGE, viewer, If_Match="", **wrong_type) == (403, "forbidden")
    assert answered("No", LARGE, If_Match="", **wrong_type) == (400, "invalid-id")
    assert answered("gone", LARGE, If_Match="", **wrong_type) == (400, "invalid-header")
    assert answered("gone", LARGE, **wrong_type) == (413, "content-too-large")
    assert answered("gone", b"{", **wrong_type) == (415, "unsupported-media-type")
    assert answered("gone", b"{") == (400, "malformed-json")
    assert answered("gone", rules) == (404, "not-found")
    assert answered("there", rules) == (428, "precondition-required")
    assert answered("there", rules, **stale) == (412, "stale-revision")
    assert answered("there", rules, **current) == (422, "invalid-input")


def test_faults_of_a_post_are_answered_in_order(api: Api) -> None:
    api.create("there")

    def answered(body: Any = None, token: str | None = api.token, **more: Any) -> tuple[int, str]:
        answer = api.as_(token).post("/automations", body, **more)
        return answer.status_code, answer.json["type"].removeprefix("/problems/")

    assert answered(raw=LARGE, token=None, content_type="x/y") == (401, "unauthorized")
    assert answered(raw=LARGE, content_type="x/y") == (413, "content-too-large")
    assert answered(raw=b"{", content_type="x/y") == (415, "unsupported-media-type")
    assert answered(raw=b"{") == (400, "malformed-json")
    assert answered(definition(id="there", name="")) == (422, "invalid-input")
    assert answered(definition(id="there")) == (409, "already-exists")


def test_faults_of_a_delete_are_answered_in_order(api: Api) -> None:
    api.create("there")

    def answered(automation_id: str, header: str | None) -> tuple[int, str]:
        headers = {} if header is None else {"If-Match": header}
        answer = api.delete(f"/automations/{automation_id}", headers=headers)
        return answer.status_code, answer.json["type"].removeprefix("/problems/")

    assert answered("No", "") == (400, "invalid-id")
    assert answered("gone", "") == (400, "invalid-header")
    assert answered("gone", None) == (404, "not-found")
    assert answered("there", None) == (428, "precondition-required")
    assert answered("there", OTHER) == (412, "stale-revision")


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_who_has_no_token_learns_nothing_of_paths(api: Api, method: str) -> None:
    for path in ("/automations/x", "/nothing/here", "/automations", "/tokens/x", ""):
        answer = api.as_(None).call(method, path, documented=False)
        # A method that a path does not take is told before anything is looked up.
        assert answer.status_code == 401, path
