"""The calls on API tokens; only admins have them."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from flask import Response
from flask_smorest import Blueprint

from app.api import documents
from app.api import parameters as given
from app.api.access import principal
from app.api.bodies import read_json
from app.api.calls import answer_of, body_of, call, empty_answer
from app.api.documents import answer
from app.api.examples import EXAMPLES
from app.api.problems import Refusal
from app.api.services import services
from app.auth.tokens import violations_of
from app.errors import InvalidInput, Violation

blueprint = Blueprint("tokens", __name__, description="Who may call, and how much.")

_FIELDS = ("name", "role", "expires_at")


@call(
    blueprint,
    "GET",
    "/tokens",
    role="admin",
    answers={200: answer_of("TokenList", "All tokens, the oldest first; never the secrets.")},
)
def list_tokens() -> Response:
    """List the tokens."""
    return answer({"data": [documents.token(token) for token in services().tokens.list()]})


@call(
    blueprint,
    "POST",
    "/tokens",
    role="admin",
    body=body_of("TokenRequest"),
    answers={
        201: answer_of(
            "Token",
            "It is made; `token` is shown this once.",
            example={**EXAMPLES["Token"], "token": "bell_" + "x" * 43},
        )
    },
)
def create_token() -> Response:
    """Make a token.

    The answer's `token` is the secret. It is shown this once, and stored nowhere.
    """
    name, role, expires_at = _judged(read_json())
    made = services().tokens.create(name, role, principal().actor, expires_at)
    shown = {**documents.token(made.about), "token": made.token}
    return answer(shown, 201)


@call(
    blueprint,
    "DELETE",
    "/tokens/<token_id>",
    role="admin",
    parameters=[given.TOKEN_ID],
    answers={204: empty_answer("It is worth nothing any more.")},
    problems=["invalid-id", "not-found"],
)
def revoke_token(token_id: str) -> Response:
    """Revoke a token.

    Each server process may go on trusting it for as long as the setting `token_cache` says: five
    seconds unless set otherwise.
    """
    if not re.fullmatch(given.TRIGGER_ID_PATTERN.rstrip("$") + r"\Z", token_id):
        raise Refusal("invalid-id", "A token's id has 1 to 63 characters of a-z, 0-9, '_' and '-'.")
    services().tokens.revoke(token_id)
    return Response(status=204)


def _judged(body: Any) -> tuple[str, str, datetime | None]:
    if not isinstance(body, Mapping):
        raise InvalidInput([Violation("", "type", "A token is described by an object.")])
    violations = []
    for name in body.keys() - _FIELDS:
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        detail = f"There is no such field; known: {', '.join(_FIELDS)}."
        violations.append(Violation(pointer, "unknown-field", detail))
    for name in ("name", "role"):
        if name not in body:
            violations.append(Violation(f"/{name}", "required", f"The field {name!r} is required."))
        elif not isinstance(body[name], str):
            violations.append(Violation(f"/{name}", "type", "This is a string."))
    expires_at = None
    if body.get("expires_at") is not None:
        try:
            expires_at = given.instant(str(body["expires_at"]))
        except ValueError as error:
            violations.append(Violation("/expires_at", "invalid", str(error)))
    wrong = {violation.pointer for violation in violations}
    now = services().clock.now()
    violations += [
        violation
        for violation in violations_of(
            str(body.get("name", "")), str(body.get("role", "")), expires_at, now
        )
        if violation.pointer not in wrong
    ]
    if violations:
        raise InvalidInput(violations)
    return body["name"], body["role"], expires_at
