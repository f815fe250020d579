"""The REST API: translates HTTP into calls of the domain and back, one file per noun."""

from flask import Flask, Response

from app.api import (
    access,
    automations,
    docs,
    health,
    history,
    openapi,
    problems,
    request_ids,
    run_logs,
    runs,
    schedules,
    tokens,
)
from app.api.bodies import READ_LIMIT
from app.api.services import Services, install

PREFIX = "/api/v1"

_NOUNS = (automations, history, schedules, runs, run_logs, tokens)
_BESIDE = (health, docs)


def mount(app: Flask, services: Services) -> None:
    """Put the API on ``app``, with ``services`` to do its work."""
    app.config["MAX_CONTENT_LENGTH"] = READ_LIMIT
    app.url_map.merge_slashes = False
    with app.app_context():
        install(services)
    request_ids.identify(app)
    services.metrics.observe(app)
    access.guard(app)
    problems.register(app)
    app.after_request(_harden)
    openapi.describe(
        app,
        [
            *((PREFIX, noun.blueprint) for noun in _NOUNS),
            *(("", beside.blueprint) for beside in _BESIDE),
        ],
    )
    access.open_to(access.PUBLIC)(app.view_functions["static"])


def _harden(response: Response) -> Response:
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "no-referrer")
    # With a tag a client may keep an answer, and has to ask whether it is current.
    keeps = "ETag" in response.headers and response.status_code < 400
    policy = "private, no-cache" if keeps else "no-store"
    response.headers.setdefault("Cache-Control", policy)
    return response
