"""Calls the real WSGI application, and holds each answer against the OpenAPI document."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import jsonschema
from flask import Flask
from werkzeug.test import TestResponse

from app.api.openapi import document_of
from app.db import Database
from app.factory import create_app
from app.settings import Settings

ADMIN = "an-admin-token-for-tests"
BASE = "/api/v1"


class DrivenClock:
    """A clock that stands still unless it is told to move."""

    def __init__(self) -> None:
        self.instant = datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC)
        self.elapsed = 0.0

    def now(self) -> datetime:
        return self.instant

    def monotonic(self) -> float:
        return self.elapsed

    def move(self, seconds: float) -> None:
        self.instant += timedelta(seconds=seconds)
        self.elapsed += seconds


class Api:
    """One application, called as one client; paths are below /api/v1 unless they start with //."""

    def __init__(self, app: Flask, token: str | None = ADMIN) -> None:
        self.app = app
        self.token = token
        self._client = app.test_client()

    def as_(self, token: str | None) -> "Api":
        """Return the same application, called with another token."""
        return Api(self.app, token)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str | None = None,
        documented: bool = True,
    ) -> TestResponse:
        """Make a request; ``body`` is sent as JSON, ``raw`` as it is."""
        sent = dict(headers or {})
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            raw = json.dumps(body).encode()
        if raw is not None and content_type is None:
            patch = method == "PATCH"
            content_type = "application/merge-patch+json" if patch else "application/json"
        url = path[1:] if path.startswith("//") else BASE + path
        answer = self._client.open(
            url, method=method, data=raw, headers=sent, content_type=content_type
        )
        assert answer.headers["X-Request-Id"]
        if documented and method != "HEAD":
            check_described(self.app, answer)
        return answer

    def get(self, path: str, **more: Any) -> TestResponse:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> TestResponse:
        return self.call("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> TestResponse:
        return self.call("PUT", path, body, **more)

    def patch(self, path: str, body: Any = None, **more: Any) -> TestResponse:
        return self.call("PATCH", path, body, **more)

    def delete(self, path: str, **more: Any) -> TestResponse:
        return self.call("DELETE", path, **more)

    def create(self, automation_id: str = "nightly", **changes: Any) -> str:
        """Create an automation; return its revision."""
        answer = self.post("/automations", definition(**changes) | {"id": automation_id})
        assert answer.status_code == 201, answer.text
        return str(answer.json["revision"])


def make_api(database: Database, clock: Any = None, **settings: Any) -> Api:
    """Return an application on ``database``."""
    settings.setdefault("admin_token", ADMIN)
    app = create_app(
        Settings(database_url=database.url, **settings), database=database, clock=clock
    )
    return Api(app)


def definition(**changes: Any) -> dict[str, Any]:
    """Return a valid definition with ``changes``."""
    return {
        "name": "Nightly",
        "target": {"repository": "acme/shop", "ref": "main", "workflow": "release"},
        "triggers": [
            {"type": "api", "id": "manual", "enabled": True},
            {"type": "schedule", "id": "nightly", "enabled": True, "expression": "0 3 * * *"},
        ],
        **changes,
    }


def if_match(revision: str) -> dict[str, str]:
    """Return the header that names ``revision``."""
    return {"If-Match": f'"{revision}"'}


def assert_problem(answer: TestResponse, status: int, slug: str) -> dict[str, Any]:
    """Assert that ``answer`` is that problem; return its document."""
    document = answer.json
    assert (answer.status_code, document["type"]) == (status, f"/problems/{slug}"), answer.text
    assert answer.content_type == "application/problem+json"
    assert document["status"] == status
    assert document["instance"] == answer.headers["X-Request-Id"]
    assert document["title"] and document["detail"]
    for word in ("Traceback", "SELECT", "sqlite3", "psycopg", "pymysql"):
        assert word not in answer.text
    return dict(document)


def pointers(answer: TestResponse) -> list[tuple[str, str]]:
    """Return pointer and code of each error of a 422."""
    document = assert_problem(answer, 422, "invalid-input")
    return sorted((e["pointer"], e["code"]) for e in document["errors"])


# --- the OpenAPI document as judge ------------------------------------------------------------------


@cache
def _document(app: Flask) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document_of(app))
    return found


@cache
def _templates(app: Flask) -> list[tuple[re.Pattern[str], str]]:
    paths = sorted(_document(app)["paths"], key=lambda p: p.count("{"))
    return [(re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)), path) for path in paths]


def check_described(app: Flask, answer: TestResponse) -> None:
    """Assert that an answer of a described call is one that its description has."""
    request = answer.request
    found = [t for pattern, t in _templates(app) if pattern.fullmatch(request.path)]
    operation = _document(app)["paths"][found[0]].get(request.method.lower()) if found else None
    if operation is None:
        assert answer.status_code in (200, 308, 401, 403, 404, 405), answer.status
        return
    described = operation["responses"].get(str(answer.status_code))
    assert described is not None, f"{request.method} {found[0]} describes no {answer.status}"
    for name in ("ETag", "Location", "Link", "Retry-After", "WWW-Authenticate"):
        if name in answer.headers:
            assert name in described["headers"], f"{found[0]}: {name} is not described"
    if not answer.data:
        assert "content" not in described or answer.mimetype == "text/plain"
        return
    media = described["content"][answer.mimetype]
    if answer.mimetype.endswith("json"):
        judge_json(app, media["schema"], answer.json)
    if "examples" in media:
        assert answer.json["type"].removeprefix("/problems/") in media["examples"]


def judge_json(app: Flask, schema: Mapping[str, Any], value: Any) -> None:
    """Assert that ``value`` follows ``schema``, which may refer to the document's components."""
    whole = {**schema, "components": _document(app)["components"]}
    jsonschema.Draft202012Validator(
        whole, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    ).validate(value)
