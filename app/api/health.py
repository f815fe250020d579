"""What supervisors and Prometheus ask."""

from functools import cache

from flask import Response
from flask_smorest import Blueprint

from app.api.access import PUBLIC
from app.api.calls import answer_of, call, text_answer
from app.api.documents import answer
from app.api.metrics import CONTENT_TYPE_LATEST
from app.api.problems import Refusal
from app.api.services import services
from app.db import migrating
from app.errors import SchemaOutOfDate

blueprint = Blueprint("health", __name__, description="Whether the server is well.")


@call(
    blueprint,
    "GET",
    "/healthz",
    role=PUBLIC,
    answers={200: answer_of("Health", "The process answers.")},
)
def healthz() -> Response:
    """Tell that the process answers."""
    return answer({"status": "ok"})


@call(
    blueprint,
    "GET",
    "/readyz",
    role=PUBLIC,
    answers={
        200: answer_of(
            "Health", "It can serve.", example={"status": "ready", "schema": "0004_api_tokens"}
        )
    },
    problems=["not-ready", "database-unavailable"],
)
def readyz() -> Response:
    """Tell whether the server can serve.

    The database is reachable, and at the schema of this release or of a later one, so that servers of
    the release before go on through an upgrade.
    """
    current = migrating.current(services().database)
    if current is None or _is_behind(current):
        raise Refusal("not-ready", str(SchemaOutOfDate(current, migrating.head())))
    return answer({"status": "ready", "schema": current})


@call(
    blueprint,
    "GET",
    "/metrics",
    role=PUBLIC,
    answers={
        200: text_answer(
            "Metrics in the text format of Prometheus.",
            {"text/plain": "bellringer_http_requests_total{…} 12.0\n"},
        )
    },
)
def metrics() -> Response:
    """Read the metrics: those of all processes of this server."""
    return Response(services().metrics.exposition(), content_type=CONTENT_TYPE_LATEST)


@cache
def _is_behind(current: str) -> bool:
    """Tell whether this release knows ``current`` as one before its own; files are read once."""
    return current != migrating.head() and migrating.known(current)
