"""Every problem that the API answers with, in one table (RFC 9457), and what leads to each.

The rest of the API raises a domain error or a :class:`Refusal`; nothing else builds an error answer.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from flask import Flask, Response, g, has_request_context
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WsgiResponse

from app import errors
from app.api import etags

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = 5
"""Seconds after which a client may try again what the database was not there for."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of problem: its word, its status, a title, and what it means and what to do."""

    slug: str
    status: int
    title: str
    meaning: str


PROBLEMS = (
    Problem("bad-request", 400, "Bad request", "The request could not be understood."),
    Problem(
        "invalid-id",
        400,
        "Invalid id",
        "An id in the path breaks the rules for ids, so nothing can have it.",
    ),
    Problem(
        "invalid-header",
        400,
        "Invalid header",
        "A header that decides what the call does is empty or malformed. Nothing was written.",
    ),
    Problem(
        "malformed-json",
        400,
        "Malformed JSON",
        "The body is not JSON as RFC 8259 has it: UTF-8, no key twice in an object, no NaN or "
        "Infinity, no lone surrogates, not nested deeper than 100 levels.",
    ),
    Problem(
        "unauthorized",
        401,
        "A token is needed",
        "Send a token that is valid now, as in `Authorization: Bearer bell_…`.",
    ),
    Problem(
        "forbidden",
        403,
        "The token's role is not enough",
        "The token is valid, but the call takes a higher role; the answer names it.",
    ),
    Problem("not-found", 404, "Not found", "There is no such thing, or no longer."),
    Problem(
        "method-not-allowed",
        405,
        "Method not allowed",
        "The path takes other methods; the `Allow` header lists them.",
    ),
    Problem(
        "already-exists",
        409,
        "It exists already",
        "Something has that id. Choose another one, or replace it with PUT and `If-Match`.",
    ),
    Problem(
        "api-trigger-disabled",
        409,
        "The API trigger is off",
        "The automation has no enabled API trigger, so that calls do not start it.",
    ),
    Problem(
        "run-finished",
        409,
        "The run has ended",
        "A run that has ended stays as it is; run it again instead.",
    ),
    Problem(
        "run-not-finished",
        409,
        "The run has not ended",
        "Only what has ended can be run again. Wait for it, or cancel it.",
    ),
    Problem(
        "stale-revision",
        412,
        "The automation has changed",
        "It is not at the revision that `If-Match` names. Nothing was written. `ETag` and "
        "`current_revision` say where it is: read it, repeat the change, send the new tag.",
    ),
    Problem(
        "precondition-failed",
        412,
        "It exists already",
        "`If-None-Match: *` asks to create, and there is one. Nothing was written.",
    ),
    Problem(
        "content-too-large", 413, "The body is too large", "A request's body has at most 1 MiB."
    ),
    Problem(
        "unsupported-media-type",
        415,
        "Unsupported media type",
        "The `Content-Type` or `Content-Encoding` is not one that the call takes; the detail names it.",
    ),
    Problem(
        "invalid-input",
        422,
        "Rules are broken",
        "The request was understood, but breaks rules. `errors` lists each with a JSON pointer into "
        "the body (for a query, `/` and the parameter's name), a code, and a sentence.",
    ),
    Problem(
        "idempotency-key-reused",
        422,
        "The Idempotency-Key was used",
        "The key came before with another body. Use a new key for a new request.",
    ),
    Problem(
        "precondition-required",
        428,
        "A condition is needed",
        "Changing an automation takes `If-Match` with the revision that was read, so that nobody's "
        "change is lost; `If-Match: *` changes it whatever it is.",
    ),
    Problem(
        "too-many-requests",
        429,
        "Too many requests",
        "The token, or the address, has used up its requests. `Retry-After` says how long to wait.",
    ),
    Problem(
        "internal-error",
        500,
        "Something broke on the server",
        "This is a fault of the server. Its log has the cause under the request's id.",
    ),
    Problem(
        "stored-automation-invalid",
        500,
        "A stored automation is invalid",
        "A row breaks the rules, so it was written past the API. The answer names the automation and "
        "the rule. Mend the row, or delete the automation with `If-Match: *`.",
    ),
    Problem(
        "database-unavailable",
        503,
        "The database is away",
        "It did not answer in time, or refused. Try again after `Retry-After`.",
    ),
    Problem(
        "not-ready",
        503,
        "Not ready",
        "The database is not at the schema that this release needs: run `bellringer migrate`.",
    ),
)
BY_SLUG: Mapping[str, Problem] = {problem.slug: problem for problem in PROBLEMS}


class Refusal(Exception):
    """A request that is refused for a reason that only HTTP has; ``slug`` is a key of the table."""

    def __init__(
        self,
        slug: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        self.slug = slug
        self.detail = detail
        self.headers = dict(headers or {})
        self.extra = extra
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a domain error becomes; ``detail`` is the error's own sentence unless given."""

    slug: str
    detail: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


MOST_ERRORS = 1_000
"""Errors that one answer lists: a small body can break hundreds of thousands of rules."""


def violations_document(violations: tuple[errors.Violation, ...]) -> list[dict[str, str]]:
    """Return the ``errors`` of a problem; of very many the first ones, and how many more there are."""
    listed = [*violations[:MOST_ERRORS]]
    if len(violations) > MOST_ERRORS:
        more = f"{len(violations) - MOST_ERRORS:,} more rules are broken."
        listed.append(errors.Violation("", "more-errors", more))
    return [{"pointer": v.pointer, "code": v.code, "detail": v.detail} for v in listed]


def _stale(error: Any) -> _Answer:
    return _Answer(
        "stale-revision",
        headers={"ETag": etags.quoted(error.actual)},
        extra={"current_revision": error.actual},
    )


def _stored_invalid(error: Any) -> _Answer:
    extra = {
        "automation": error.automation_id,
        "errors": violations_document(error.violations),
    }
    return _Answer("stored-automation-invalid", extra=extra)


_FROM_DOMAIN: Mapping[type[Exception], Callable[[Any], _Answer]] = {
    errors.InvalidInput: lambda e: _Answer(
        "invalid-input",
        "The request breaks rules; 'errors' lists each.",
        extra={"errors": violations_document(e.violations)},
    ),
    errors.NotFound: lambda e: _Answer("not-found"),
    errors.AlreadyExists: lambda e: _Answer("already-exists"),
    errors.StaleRevision: _stale,
    errors.StoredAutomationInvalid: _stored_invalid,
    errors.ApiTriggerDisabled: lambda e: _Answer("api-trigger-disabled"),
    errors.IdempotencyKeyReused: lambda e: _Answer(
        "idempotency-key-reused", extra={"run": e.run_id}
    ),
    errors.RunFinished: lambda e: _Answer("run-finished", extra={"state": e.state}),
    errors.RunNotFinished: lambda e: _Answer("run-not-finished", extra={"state": e.state}),
    errors.DatabaseUnavailable: lambda e: _Answer(
        "database-unavailable",
        "The database is not available. Try again in a few seconds.",
        headers={"Retry-After": str(RETRY_AFTER)},
    ),
    etags.MalformedTags: lambda e: _Answer("invalid-header", extra={"header": e.header}),
    Refusal: lambda e: _Answer(e.slug, e.detail, e.headers, e.extra),
}
_FROM_STATUS = {
    p.status: p.slug for p in reversed(PROBLEMS) if p.status in (400, 404, 405, 413, 415)
}


def register(app: Flask) -> None:
    """Turn every error that leaves a view, or the routing before it, into a problem."""
    for kind in _FROM_DOMAIN:
        app.register_error_handler(kind, _of_domain)
    app.register_error_handler(HTTPException, _of_http)
    app.register_error_handler(Exception, _of_bug)


def _of_domain(error: Exception) -> Response:
    kind = next(kind for kind in type(error).__mro__ if kind in _FROM_DOMAIN)
    answer = _FROM_DOMAIN[kind](error)
    if isinstance(error, errors.DatabaseUnavailable):
        log.warning("database unavailable", reason=error.reason, request_id=_request_id())
    return respond(answer.slug, answer.detail or str(error), headers=answer.headers, **answer.extra)


def _of_http(error: HTTPException) -> WsgiResponse:
    if error.code is None or error.code < 400:
        return error.get_response()
    if error.code >= 500:
        return _of_bug(error)
    headers = {k: v for k, v in error.get_headers() if k.lower() in ("allow", "retry-after")}
    slug = _FROM_STATUS.get(error.code, "bad-request")
    return respond(slug, _DETAILS.get(slug, BY_SLUG[slug].meaning), headers=headers)


_DETAILS = {
    "not-found": "There is nothing at this path.",
    "method-not-allowed": "This path does not take the method; the Allow header lists which it does.",
    "content-too-large": "The body has more than 1 MiB.",
}


def _of_bug(error: Exception) -> Response:
    request_id = _request_id()
    log.error("request failed", request_id=request_id, exc_info=error)
    return respond(
        "internal-error", f"The server's log says more, under the request id {request_id}."
    )


def respond(
    slug: str, detail: str, *, headers: Mapping[str, str] | None = None, **extra: Any
) -> Response:
    """Return the answer for a problem; ``extra`` becomes members of its document."""
    problem = BY_SLUG[slug]
    document = {
        "type": f"/problems/{slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": detail,
        "instance": _request_id(),
        **extra,
    }
    response = Response(json.dumps(document), problem.status, content_type=MEDIA_TYPE)
    response.headers.update(headers or {})
    return response


def _request_id() -> str:
    return g.get("request_id", "") if has_request_context() else ""
