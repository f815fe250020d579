"""Declares a call: its route, its role, and its part of the OpenAPI document, all in one decorator.

So no call can be there without a role or without being described. Summary and description are the
view's docstring.
"""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from flask_smorest import Blueprint

from app.api.access import PUBLIC, open_to
from app.api.bodies import JSON
from app.api.examples import EXAMPLES
from app.api.problems import BY_SLUG, MEDIA_TYPE
from app.api.schemas import ref

Documented = Mapping[str, Any]
View = TypeVar("View", bound=Callable[..., Any])

_HEADERS: Mapping[str, Documented] = {
    "X-Request-Id": {
        "description": "The id of this request, for questions about it.",
        "schema": {"type": "string"},
    },
    "ETag": {
        "description": "The revision in double quotes: what If-Match and If-None-Match take.",
        "schema": {"type": "string", "pattern": '^"[0-9a-f]{64}"$'},
    },
    "Location": {
        "description": "Where what was made is found.",
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "Link": {"description": 'The next page, as rel="next".', "schema": {"type": "string"}},
    "Allow": {"description": "What the path takes.", "schema": {"type": "string"}},
    "Retry-After": {
        "description": "Seconds to wait.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
    "WWW-Authenticate": {
        "description": "Which token is needed.",
        "schema": {"type": "string"},
    },
}
_PROBLEM_HEADERS: Mapping[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    403: ("WWW-Authenticate",),
    412: ("ETag",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
_OF_EVERY_CALL = ("bad-request", "too-many-requests", "internal-error")
_OF_EVERY_GUARDED_CALL = ("unauthorized", "forbidden", "database-unavailable")
_OF_EVERY_BODY = ("content-too-large", "unsupported-media-type", "malformed-json", "invalid-input")


def call(
    blueprint: Blueprint,
    method: str,
    rule: str,
    *,
    role: str,
    answers: Mapping[int, Documented],
    parameters: Iterable[Documented] = (),
    body: Documented | None = None,
    problems: Iterable[str] = (),
) -> Callable[[View], View]:
    """Register the decorated view for ``method`` and ``rule``, open to ``role``.

    ``answers`` are the good ones by status, ``problems`` the words of those that this call may meet
    besides what every call may.
    """
    slugs = [*_OF_EVERY_CALL, *problems]
    if role != PUBLIC:
        slugs += _OF_EVERY_GUARDED_CALL
    if body is not None:
        slugs += _OF_EVERY_BODY
    documented: dict[str, Any] = {
        "parameters": [dict(parameter) for parameter in parameters],
        "responses": {
            **{str(status): dict(given) for status, given in answers.items()},
            **_problem_responses(slugs),
        },
        "security": [] if role == PUBLIC else [{"token": []}],
    }
    if role != PUBLIC:
        documented["x-role"] = role
    if body is not None:
        documented["requestBody"] = dict(body)

    def register(view: View) -> View:
        open_to(role)(view)
        name = view.__name__
        view.__dict__["_apidoc"] = {
            "manual_doc": {**documented, "operationId": f"{blueprint.name}-{name}"}
        }
        blueprint.route(rule, methods=[method])(view)
        return view

    return register


def answer_of(
    schema: str, description: str, *, headers: Iterable[str] = (), example: Any = None
) -> Documented:
    """Return the description of a JSON answer."""
    shown = EXAMPLES[schema] if example is None else example
    return {
        "description": description,
        "headers": _headers(headers),
        "content": {JSON: {"schema": ref(schema), "example": shown}},
    }


def text_answer(description: str, examples: Mapping[str, str]) -> Documented:
    """Return the description of an answer in text; ``examples`` by media type."""
    return {
        "description": description,
        "headers": _headers(()),
        "content": {
            media_type: {"schema": {"type": "string"}, "example": example}
            for media_type, example in examples.items()
        },
    }


def empty_answer(description: str, headers: Iterable[str] = ()) -> Documented:
    """Return the description of an answer without a body."""
    return {"description": description, "headers": _headers(headers)}


def body_of(schema: str, media_type: str = JSON, *, required: bool = True) -> Documented:
    """Return the description of a body."""
    return {
        "required": required,
        "content": {media_type: {"schema": ref(schema), "example": EXAMPLES[schema]}},
    }


def _headers(names: Iterable[str]) -> dict[str, Documented]:
    return {name: _HEADERS[name] for name in ("X-Request-Id", *names)}


def _problem_responses(slugs: Iterable[str]) -> dict[str, Documented]:
    by_status: dict[int, list[str]] = {}
    for slug in dict.fromkeys(slugs):
        by_status.setdefault(BY_SLUG[slug].status, []).append(slug)
    return {
        str(status): {
            "description": f"{HTTPStatus(status).phrase}: " + ", ".join(f"`{s}`" for s in together),
            "headers": _headers(_PROBLEM_HEADERS.get(status, ())),
            "content": {
                MEDIA_TYPE: {
                    "schema": ref("Problem"),
                    "examples": {slug: {"value": _problem_example(slug)} for slug in together},
                }
            },
        }
        for status, together in sorted(by_status.items())
    }


def _problem_example(slug: str) -> dict[str, Any]:
    problem = BY_SLUG[slug]
    return {
        "type": f"/problems/{slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.meaning,
        "instance": "3f0c5a3bd1e94b6d9a3a52cf0f2d7c6c",
    }
