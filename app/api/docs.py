"""What explains the API: its OpenAPI document, a page that shows it, and a page for each problem."""

import html
from pathlib import Path

from flask import Response, current_app, request
from flask_smorest import Blueprint

from app.api.access import PUBLIC
from app.api.calls import call, empty_answer, text_answer
from app.api.openapi import document_of
from app.api.parameters import SLUG
from app.api.problems import BY_SLUG, PROBLEMS, Problem
from app.errors import NotFound

blueprint = Blueprint("docs", __name__, description="What explains the API.")

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@call(
    blueprint,
    "GET",
    "/",
    role=PUBLIC,
    answers={302: empty_answer("To the documentation.", ["Location"])},
)
def front_door() -> Response:
    """Send a browser that was given the bare address to what there is to read."""
    return Response(status=302, headers={"Location": "/docs"})


@call(
    blueprint,
    "GET",
    "/openapi.json",
    role=PUBLIC,
    answers={
        200: {
            "description": "OpenAPI 3.1.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
def openapi_json() -> Response:
    """Read this document."""
    return Response(document_of(current_app), content_type="application/json")


@call(
    blueprint,
    "GET",
    "/docs",
    role=PUBLIC,
    answers={200: text_answer("A page for people.", {"text/html": "<!doctype html>…"})},
)
def docs_page() -> Response:
    """Read the API's documentation in a browser."""
    static = current_app.static_folder
    assert static is not None
    return _shown(Path(static, "docs.html").read_text(encoding="utf-8"))


@call(
    blueprint,
    "GET",
    "/problems/",
    role=PUBLIC,
    answers={200: text_answer("All problems.", {"text/html": "<!doctype html>…"})},
)
def list_problems() -> Response:
    """List the kinds of problems that the API answers with."""
    rows = "".join(
        f'<li><a href="/problems/{p.slug}"><code>{p.slug}</code></a> ({p.status}): '
        f"{html.escape(p.title)}</li>"
        for p in PROBLEMS
    )
    return _page("Problems", f"<h1>Problems</h1><ul>{rows}</ul>")


@call(
    blueprint,
    "GET",
    "/problems/<slug>",
    role=PUBLIC,
    parameters=[{**SLUG, "schema": {"type": "string", "enum": [p.slug for p in PROBLEMS]}}],
    answers={
        200: text_answer(
            "The problem, as a page where `Accept` has text/html, else as text.",
            {"text/plain": "stale-revision (412)\n…", "text/html": "<!doctype html>…"},
        )
    },
    problems=["not-found"],
)
def explain_problem(slug: str) -> Response:
    """Read what a problem means and what to do about it."""
    problem = BY_SLUG.get(slug)
    if problem is None:
        raise NotFound("problem", slug[:100])
    wants_page = "text/html" in request.headers.get("Accept", "")
    response = _page(problem.title, _as_html(problem)) if wants_page else _as_text(problem)
    response.headers["Vary"] = "Accept"
    return response


def _as_text(problem: Problem) -> Response:
    text = f"{problem.slug} ({problem.status}): {problem.title}\n\n{problem.meaning}\n"
    return Response(text, content_type="text/plain; charset=utf-8")


def _as_html(problem: Problem) -> str:
    return (
        f"<h1>{html.escape(problem.title)}</h1>"
        f"<p><code>{problem.slug}</code>, status {problem.status}</p>"
        f"<p>{html.escape(problem.meaning)}</p>"
        '<p><a href="/problems/">All problems</a> · <a href="/docs">The API</a></p>'
    )


def _page(title: str, body: str) -> Response:
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="/static/docs.css"><main>{body}</main></html>\n'
    )
    return _shown(page)


def _shown(page: str) -> Response:
    response = Response(page, content_type="text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = PAGE_POLICY
    return response
