"""The OpenAPI document and what shows it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openapi_spec_validator import validate

from app.api.access import PUBLIC, role_of
from app.api.docs import PAGE_POLICY
from app.api.examples import EXAMPLES
from app.api.problems import BY_SLUG
from app.api.schemas import SCHEMAS, ref
from tests.support.api import Api, judge_json

STATIC = Path(__file__).parents[2] / "app" / "api" / "static"
METHODS = ("get", "put", "post", "patch", "delete")


def document_of(api: Api) -> dict[str, Any]:
    answer = api.as_(None).get("//openapi.json")
    assert answer.content_type == "application/json"
    return dict(answer.json)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def test_the_document_is_valid_openapi_3_1(api: Api) -> None:
    document = document_of(api)
    validate(document)
    assert document["openapi"].startswith("3.1")


def test_every_route_is_described_and_nothing_else(api: Api) -> None:
    described = {(path, method.upper()) for path, method, _ in operations(document_of(api))}
    routed = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method)
        for rule in api.app.url_map.iter_rules()
        if rule.endpoint != "static"
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert described == routed


def test_every_operation_is_complete(api: Api) -> None:
    ids = set()
    for path, method, operation in operations(document_of(api)):
        where = f"{method} {path}"
        ids.add(operation["operationId"])
        assert operation["summary"], where
        assert set(re.findall(r"\{(\w+)\}", path)) == {
            p["name"] for p in operation["parameters"] if p["in"] == "path"
        }, where
        assert all(p["description"] for p in operation["parameters"]), where
        for status, response in operation["responses"].items():
            assert response["description"], where
            media = response.get("content", {})
            if int(status) >= 400:
                assert list(media) == ["application/problem+json"], where
                for slug, example in media["application/problem+json"]["examples"].items():
                    assert str(BY_SLUG[slug].status) == status
                    judge_json(api.app, ref("Problem"), example["value"])
            elif path != "/openapi.json":
                assert "X-Request-Id" in response["headers"], where
                assert all("example" in shown for shown in media.values()), where
        if "requestBody" in operation:
            assert {"413", "415", "400", "422"} <= set(operation["responses"]), where
            assert all("example" in m for m in operation["requestBody"]["content"].values()), where
    assert len(ids) == len(list(operations(document_of(api))))


def test_what_is_public_needs_no_token_and_the_rest_does(api: Api) -> None:
    roles = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method): role_of(
            api.app.view_functions[rule.endpoint]
        )
        for rule in api.app.url_map.iter_rules()
        for method in rule.methods
    }
    for path, method, operation in operations(document_of(api)):
        role = roles[path, method.upper()]
        if role == PUBLIC:
            assert operation["security"] == []
            assert "x-role" not in operation
        else:
            assert operation["security"] == [{"token": []}]
            assert operation["x-role"] == role
            assert {"401", "403", "429", "500", "503"} <= set(operation["responses"])


def test_every_schema_is_used_and_every_example_follows_its_schema(api: Api) -> None:
    text = json.dumps(document_of(api))
    for name in SCHEMAS:
        if name not in ("Definition", "Change", "LogLine"):
            assert json.dumps(ref(name)) in text, name
    for name, example in EXAMPLES.items():
        judge_json(api.app, ref(name), example)


def test_every_problem_can_be_met(api: Api) -> None:
    met = {
        slug
        for _, _, operation in operations(document_of(api))
        for response in operation["responses"].values()
        for media in response.get("content", {}).values()
        for slug in media.get("examples", {})
    }
    # The method is not part of any operation that could describe this one.
    assert met == set(BY_SLUG) - {"method-not-allowed"}


# --- the page ---------------------------------------------------------------------------------------


def test_the_page_takes_nothing_from_elsewhere_and_runs_nothing_inline(api: Api) -> None:
    answer = api.as_(None).get("//docs")
    assert answer.mimetype == "text/html"
    policy = answer.headers["Content-Security-Policy"]
    assert policy == PAGE_POLICY
    assert "unsafe" not in policy and "http" not in policy
    for file in STATIC.iterdir():
        assert "//" not in re.sub(r"^\s*// .*$", "", file.read_text(), flags=re.MULTILINE), file
    page = answer.text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|style=", page)
    assert re.search(r"<noscript>.*/openapi.json.*</noscript>", page)


def test_what_the_page_needs_is_there(api: Api) -> None:
    page = api.as_(None).get("//docs").text
    needed = re.findall(r'(?:src|href|data-document)="([^"]+)"', page)
    assert len(needed) >= 4
    for path in needed:
        assert api.as_(None).get(f"/{path}", documented=False).status_code == 200, path


def test_the_script_makes_no_markup_of_text(api: Api) -> None:
    script = (STATIC / "docs.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", script)
