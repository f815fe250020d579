"""What calls take in paths, queries and headers: each described once, for reading and for OpenAPI."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from flask import request

from app.api import etags
from app.api.etags import Condition
from app.api.problems import Refusal
from app.automations.reading import TRIGGER_TYPES
from app.automations.values import automation_id_fault, repository_fault
from app.errors import InvalidInput, NotFound, Violation
from app.runs.values import STATES

LARGEST_NUMBER = 2**63 - 1
"""The largest running number that a database holds."""

ID_PATTERN = "^[a-z0-9][a-z0-9-]{0,62}$"
TRIGGER_ID_PATTERN = "^[a-z0-9][a-z0-9_-]{0,62}$"
REVISION_PATTERN = "^[0-9a-f]{64}$"
_NO_CONTROLS = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?P<fraction>\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)


# --- reading values ---------------------------------------------------------------------------------


def instant(text: str) -> datetime:
    """Return the instant that ``text`` is the RFC 3339 form of. Raises ValueError with a sentence."""
    match = _RFC_3339.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        # Python reads six digits of a fraction; what is finer is cut.
        fraction = match["fraction"] or ""
        return datetime.fromisoformat(
            text.upper().replace(fraction, fraction[:7].ljust(7, "0") if fraction else "", 1)
        ).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("This is an instant in RFC 3339 form: 2026-12-01T03:00:00Z.") from None


def _whole_number(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,19}", text) or not low <= int(text) <= high:
            raise ValueError(f"This is a whole number from {low} to {high}.")
        return int(text)

    return read


def _by_rule(rule: Callable[[str], str | None]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if fault := rule(text):
            raise ValueError(fault)
        return text

    return read


def _search_text(text: str) -> str:
    if not 1 <= len(text) <= 200 or not re.fullmatch(_NO_CONTROLS, text):
        raise ValueError("A text to look for has 1 to 200 characters, none of them controls.")
    return text


def _states(text: str) -> frozenset[str]:
    states = frozenset(text.split(","))
    if unknown := states - set(STATES):
        raise ValueError(f"There is no state {min(unknown)!r}; known: {', '.join(STATES)}.")
    return states


def _trigger_type(text: str) -> str:
    if text not in TRIGGER_TYPES:
        raise ValueError(f"A trigger's type is one of {', '.join(TRIGGER_TYPES)}.")
    return text


def _trigger_word(text: str) -> str:
    if not re.fullmatch(TRIGGER_ID_PATTERN, text):
        raise ValueError("This is the type or the id of a trigger.")
    return text


# --- the query --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """One parameter of a query; ``read`` raises ValueError with the sentence that says what is wrong."""

    name: str
    description: str
    schema: Mapping[str, Any]
    read: Callable[[str], Any]
    default: Any = None

    def documented(self) -> dict[str, Any]:
        """Return the parameter as OpenAPI has it."""
        shape = {"style": "form", "explode": False} if self.schema["type"] == "array" else {}
        return {
            "in": "query",
            "name": self.name,
            "description": self.description,
            "schema": dict(self.schema),
            **shape,
        }


def _integer(name: str, description: str, low: int, high: int, default: int) -> QueryParameter:
    schema = {"type": "integer", "minimum": low, "maximum": high, "default": default}
    return QueryParameter(name, description, schema, _whole_number(low, high), default)


def _number_beyond(name: str, description: str, default: int | None = None) -> QueryParameter:
    schema = {"type": "integer", "minimum": 0, "maximum": LARGEST_NUMBER}
    return QueryParameter(name, description, schema, _whole_number(0, LARGEST_NUMBER), default)


_INSTANT_SCHEMA = {"type": "string", "format": "date-time"}

LIMIT = _integer("limit", "How many to answer at most.", 1, 1000, 100)
COUNT = _integer("count", "How many instants to answer at most.", 1, 100, 5)
AFTER_ID = QueryParameter(
    "after",
    "Answer what sorts after this id; `meta.next` of the page before.",
    {"type": "string", "pattern": ID_PATTERN},
    _by_rule(automation_id_fault),
)
BEFORE = _number_beyond(
    "before", "Answer what has lower numbers than this one; `meta.next` of the page before."
)
REPOSITORY = QueryParameter(
    "repository",
    "Only those whose target is in this repository.",
    {
        "type": "string",
        "maxLength": 140,
        "pattern": r"^[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$",
    },
    _by_rule(repository_fault),
)
TEXT = QueryParameter(
    "q",
    "Only those with this text in id or name; capitals A to Z are the same as a to z.",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": _NO_CONTROLS},
    _search_text,
)
TRIGGER_TYPE = QueryParameter(
    "trigger",
    "Only those with a trigger of this type.",
    {"type": "string", "enum": list(TRIGGER_TYPES)},
    _trigger_type,
)
STATE = QueryParameter(
    "state",
    "Only those in one of these states, with commas between them.",
    {"type": "array", "items": {"type": "string", "enum": list(STATES)}, "minItems": 1},
    _states,
    frozenset(),
)
RUN_TRIGGER = QueryParameter(
    "trigger",
    "Only those started by a trigger of this type or id.",
    {"type": "string", "pattern": TRIGGER_ID_PATTERN},
    _trigger_word,
)
AUTOMATION = QueryParameter(
    "automation",
    "Only those of this automation.",
    {"type": "string", "pattern": ID_PATTERN},
    _by_rule(automation_id_fault),
)
SINCE = QueryParameter("since", "Only those queued then or later.", _INSTANT_SCHEMA, instant)
UNTIL = QueryParameter("until", "Only those queued before.", _INSTANT_SCHEMA, instant)
AFTER_LINE = _number_beyond("after", "Answer the lines with higher numbers than this one.")
ATTEMPT = QueryParameter(
    "attempt",
    "Only the lines of this attempt.",
    {"type": "integer", "minimum": 1, "maximum": 1000},
    _whole_number(1, 1000),
)


def read_query(*parameters: QueryParameter) -> dict[str, Any]:
    """Return the values of ``parameters`` by name, defaults for those left out.

    Raises InvalidInput with all that is wrong, unknown and repeated parameters included.
    """
    known = {parameter.name: parameter for parameter in parameters}
    values = {parameter.name: parameter.default for parameter in parameters}
    violations = []
    for name, texts in request.args.lists():
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        if name not in known:
            listed = ", ".join(known) or "none"
            detail = f"There is no such parameter; known: {listed}."
            violations.append(Violation(pointer, "unknown-parameter", detail))
        elif len(texts) > 1:
            detail = "The parameter is given more than once."
            violations.append(Violation(pointer, "repeated", detail))
        else:
            try:
                values[name] = known[name].read(texts[0])
            except ValueError as error:
                violations.append(Violation(pointer, "invalid", str(error)))
    if violations:
        raise InvalidInput(violations)
    return values


# --- the path ---------------------------------------------------------------------------------------


def require_automation_id(text: str) -> None:
    """Refuse with 400 what can't be the id of an automation."""
    if fault := automation_id_fault(text):
        raise Refusal("invalid-id", fault)


def number_in_path(noun: str, text: str) -> int:
    """Return the running number in the path. Refuses with 400; raises NotFound for one too large."""
    if not re.fullmatch(r"[1-9][0-9]*", text) or len(text) > 100:
        raise Refusal("invalid-id", f"The number of a {noun} is a whole number, from 1.")
    number = int(text)
    if number > LARGEST_NUMBER:
        raise NotFound(noun, number)
    return number


def path_parameter(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter of a path as OpenAPI has it."""
    return {
        "in": "path",
        "name": name,
        "required": True,
        "description": description,
        "schema": dict(schema),
    }


_NUMBER = {"type": "integer", "minimum": 1, "maximum": LARGEST_NUMBER}
AUTOMATION_ID = path_parameter(
    "automation_id", "The automation's id.", {"type": "string", "pattern": ID_PATTERN}
)
RUN_ID = path_parameter("run_id", "The run's number.", _NUMBER)
HISTORY_NUMBER = path_parameter("number", "The change's running number.", _NUMBER)
TOKEN_ID = path_parameter(
    "token_id", "The token's id.", {"type": "string", "pattern": TRIGGER_ID_PATTERN}
)
SLUG = path_parameter("slug", "The problem's word.", {"type": "string"})


# --- headers ----------------------------------------------------------------------------------------


def condition(header: str) -> Condition | None:
    """Return the condition in If-Match or If-None-Match, None without it. Raises MalformedTags."""
    value = request.headers.get(header)
    return None if value is None else etags.parse(header, value)


def _header(name: str, description: str, *, required: bool, **schema: Any) -> dict[str, Any]:
    return {
        "in": "header",
        "name": name,
        "required": required,
        "description": description,
        "schema": {"type": "string", **schema},
    }


_TAGS = r'^(\*|(W/)?"[!#-~]*"(, *(W/)?"[!#-~]*")*|[0-9a-f]{64})$'
IF_MATCH = _header(
    "If-Match",
    "The `ETag` that the change was made from, a list of such, or `*` for whatever there is.",
    required=True,
    pattern=_TAGS,
)
OPTIONAL_IF_MATCH = {**IF_MATCH, "required": False}
IF_NONE_MATCH = _header(
    "If-None-Match",
    "The `ETag` that the client has: answered with 304 while that is current.",
    required=False,
    pattern=_TAGS,
)
CREATE_ONLY = _header(
    "If-None-Match", "`*` creates, and never replaces.", required=False, enum=["*"]
)
IDEMPOTENCY_KEY = _header(
    "Idempotency-Key",
    "Repeats of a call with the same key and body are answered with the run of the first.",
    required=False,
    pattern="^[!-~]{1,255}$",
)
LAST_EVENT_ID = _header(
    "Last-Event-ID",
    "The last `id` of a stream that broke off; the stream goes on after it.",
    required=False,
    pattern="^[0-9]{1,18}$",
)


def last_event_id() -> int | None:
    """Return the number in Last-Event-ID, None without it. Refuses with 400."""
    value = request.headers.get("Last-Event-ID")
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", value):
        detail = "Last-Event-ID is the number of a line, as the stream sent it."
        raise Refusal("invalid-header", detail, header="Last-Event-ID")
    return int(value)
