"""Who is asking, whether they may, and how often: decided before any view sees the request.

Every view declares the role that it takes, and one that declares none answers nobody.
"""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from flask import Flask, g, request

from app.api.problems import Refusal
from app.api.services import services
from app.auth.tokens import Principal

PUBLIC: Final = "public"
"""Stands in place of a role where no token is needed."""
UNLIMITED: Final = ("/healthz", "/readyz", "/metrics")
"""What supervisors ask, which must not be told to come back later."""

_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([!-~]+)")
_CHALLENGE = 'Bearer realm="bellringer"'

View = TypeVar("View", bound=Callable[..., Any])


def open_to(role: str) -> Callable[[View], View]:
    """Declare the role that a view takes, or PUBLIC."""

    def mark(view: View) -> View:
        view.__dict__["role"] = role
        return view

    return mark


def role_of(view: Callable[..., Any]) -> str | None:
    """Return the role that a view declares, or None if it declares none."""
    return getattr(view, "role", None)


def principal() -> Principal:
    """Return who makes this request; only for views that take a role."""
    found: Principal = g.principal
    return found


def guard(app: Flask) -> None:
    """Let only those requests through to the views of ``app`` that may pass."""

    @app.before_request
    def check() -> None:
        role = _role_needed(app)
        limiter = services().limiter
        if role == PUBLIC and (limiter is None or request.path in UNLIMITED):
            return
        found = _authenticate()
        if limiter is not None:
            client = f"address:{request.remote_addr}"
            if found is not None:
                client = f"token:{found.token_id or found.actor}"
            if (seconds := limiter.wait(client)) is not None:
                raise _too_many(limiter.allowed, limiter.seconds, seconds)
        if role == PUBLIC:
            return
        if found is None:
            raise _unauthorized()
        if not found.may(role):
            raise _forbidden(found, role)
        g.principal = found


def _role_needed(app: Flask) -> str:
    if request.endpoint is None:
        # What is not there is told to those who may read, and to everyone outside the API.
        return "viewer" if request.path.startswith("/api/") else PUBLIC
    if request.method == "OPTIONS":
        return "viewer" if request.path.startswith("/api/") else PUBLIC
    role = role_of(app.view_functions[request.endpoint])
    if role is None:
        raise RuntimeError(f"the view {request.endpoint} declares no role")
    return role


def _authenticate() -> Principal | None:
    match = _BEARER.fullmatch(request.headers.get("Authorization", "").strip())
    return services().tokens.verify(match[1]) if match else None


def _unauthorized() -> Refusal:
    if "Authorization" in request.headers:
        return Refusal(
            "unauthorized",
            "The token is unknown, revoked or expired, or the Authorization header is malformed.",
            headers={"WWW-Authenticate": f'{_CHALLENGE}, error="invalid_token"'},
        )
    return Refusal(
        "unauthorized",
        "Send a token, as in 'Authorization: Bearer bell_…'.",
        headers={"WWW-Authenticate": _CHALLENGE},
    )


def _forbidden(found: Principal, role: str) -> Refusal:
    return Refusal(
        "forbidden",
        f"This takes the role {role!r}; the token has {found.role!r}.",
        headers={"WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope", scope="{role}"'},
        role=role,
    )


def _too_many(allowed: int, window: int, seconds: int) -> Refusal:
    return Refusal(
        "too-many-requests",
        f"{allowed} requests in {window} s are allowed. Try again in {seconds} s.",
        headers={"Retry-After": str(seconds)},
    )
