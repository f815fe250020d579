"""Reads the body of a request as JSON, and nothing that is only nearly JSON."""

import json
import math
from typing import Any, NoReturn

from flask import request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from app.api.problems import Refusal

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
BODY_LIMIT = 1024 * 1024
"""Bytes that the body of a request may have."""
READ_LIMIT = BODY_LIMIT + 1
"""Bytes to read of a body: one that comes in chunks is cut there without a word, so that is one more."""
DEPTH_LIMIT = 100
"""How deep arrays and objects may be nested, so that nothing that walks them runs out of stack."""

NO_BODY = object()
"""Stands for a body that was not sent."""


def read_json(media_type: str = JSON) -> Any:
    """Return what the body says. Refuses with 413, 415 or 400, in that order."""
    body = read_optional_json(media_type)
    if body is NO_BODY:
        raise _malformed("The body is empty")
    return body


def read_optional_json(media_type: str = JSON) -> Any:
    """Return what the body says, or NO_BODY if there is none.

    ``Any`` since JSON may be any value. Refuses like :func:`read_json`.
    """
    raw = _raw()
    if not raw and request.mimetype in ("", media_type):
        return NO_BODY
    _require_media_type(media_type)
    return parse(raw)


def _raw() -> bytes:
    try:
        raw = request.get_data(cache=False)
    except HTTPException:
        raise
    except Exception:
        # The server has errors of its own for chunks that are none and clients that fell silent.
        raise Refusal("bad-request", "The body broke off, or is not chunked as it says.") from None
    if len(raw) > BODY_LIMIT:
        raise RequestEntityTooLarge
    return raw


def parse(raw: bytes) -> Any:
    """Return the value that ``raw`` is the JSON of. Refuses with 400."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise _malformed(f"Byte {error.start} is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise _malformed("It begins with a byte order mark")
    if text.count("[") + text.count("{") > DEPTH_LIMIT and _depth(text) > DEPTH_LIMIT:
        raise _malformed(f"It is nested deeper than {DEPTH_LIMIT} levels")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg}, at line {error.lineno}, column {error.colno}") from None
    if "\\u" in text:
        _refuse_lone_surrogates(value)
    return value


def _malformed(what: str) -> Refusal:
    return Refusal("malformed-json", f"The body is no JSON. {what}.")


def _require_media_type(media_type: str) -> None:
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if request.mimetype != media_type or charset not in ("utf-8", "utf8"):
        header = "Accept-Patch" if media_type == MERGE_PATCH else "Accept"
        raise Refusal(
            "unsupported-media-type",
            f"This call takes a body of Content-Type {media_type}, in UTF-8.",
            headers={header: media_type},
        )
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refusal(
            "unsupported-media-type",
            "Bodies are taken without a Content-Encoding.",
            headers={"Accept-Encoding": "identity"},
        )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen = set[str]()
        for name, _ in pairs:
            if name in seen:
                raise _malformed(f"An object has the key {name[:100]!a} twice")
            seen.add(name)
    return made


def _constant(name: str) -> NoReturn:
    raise _malformed(f"{name} is no JSON number")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _malformed("A number is too large")
    return value


def _int(text: str) -> int:
    if len(text) > 300:
        raise _malformed("A number is too large")
    return int(text)


def _depth(text: str) -> int:
    """Return how deep the brackets outside strings go; of malformed JSON it may say anything."""
    depth = deepest = 0
    in_string = escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif in_string:
            escaped = character == "\\"
            in_string = character != '"'
        elif character == '"':
            in_string = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _malformed("It holds a lone surrogate, which is half a character") from None
