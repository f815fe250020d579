"""Gives every request an id, by which an answer and the server's log are found together."""

import re
import secrets

from flask import Flask, Response, g, request

HEADER = "X-Request-Id"
_SANE = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")


def identify(app: Flask) -> None:
    """Take over the id that a client or proxy sent if it is a sane one, else make one."""

    @app.before_request
    def begin() -> None:
        sent = request.headers.get(HEADER, "")
        g.request_id = sent if _SANE.fullmatch(sent) else secrets.token_hex(16)

    @app.after_request
    def end(response: Response) -> Response:
        response.headers[HEADER] = g.request_id
        return response
