"""The OpenAPI 3.1 document, gathered from what every call declares."""

import json
from typing import Any

from flask import Flask
from flask_smorest import Api, Blueprint

from app.api.schemas import SCHEMAS
from app.nodes.registry import release

_KEY = "bellringer-openapi"

_DESCRIPTION = """\
Automations kept in SQL and rung on time.

JSON in and out; errors are `application/problem+json`. All instants are in UTC. Changing an automation
takes `If-Match` with the revision that was read. A token goes into `Authorization: Bearer …`; `x-role`
says which role a call takes, where each of viewer, operator, editor, admin holds the one before.
"""


class _Described(Api):  # type: ignore[misc]  # the library has no types
    """Flask-smorest's registry, without the error handler and the pages that it brings along."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def _register_error_handlers(self) -> None:
        """Leave errors to ``problems.py``."""

    def _register_responses(self) -> None:
        """Describe only answers that are ours."""

    def _register_etag_headers(self) -> None:
        """Describe only headers that are ours."""

    def _register_pagination_header(self) -> None:
        """Describe only headers that are ours."""


def describe(app: Flask, mounted: list[tuple[str, Blueprint]]) -> None:
    """Register the blueprints, each below its prefix, and describe their calls."""
    app.config.update(
        API_TITLE="Bellringer",
        API_VERSION=release(),
        OPENAPI_VERSION="3.1.0",
        OPENAPI_URL_PREFIX=None,
    )
    api = _Described(
        app,
        spec_kwargs={
            "info": {"description": _DESCRIPTION},
            "servers": [{"url": "/"}],
            "security": [{"token": []}],
        },
    )
    api.spec.components.security_scheme("token", {"type": "http", "scheme": "bearer"})
    for name, schema in SCHEMAS.items():
        api.spec.components.schema(name, dict(schema))
    for prefix, blueprint in mounted:
        api.register_blueprint(blueprint, url_prefix=prefix)
    app.extensions[_KEY] = api


def document_of(app: Flask) -> bytes:
    """Return the document as JSON; it is put together when it is first asked for."""
    made = app.extensions[_KEY]
    if not isinstance(made, bytes):
        document: dict[str, Any] = made.spec.to_dict()
        made = app.extensions[_KEY] = json.dumps(document, ensure_ascii=False).encode()
    return made
