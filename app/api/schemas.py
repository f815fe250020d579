"""The JSON that goes in and out, described for OpenAPI 3.1.

Answers are built directly (``documents.py``) and bodies are judged by the domain, so this describes and
does nothing else; tests hold the three together.
"""

from collections.abc import Mapping
from typing import Any

from app.api.parameters import ID_PATTERN, REVISION_PATTERN, TRIGGER_ID_PATTERN
from app.auth.models import ROLES
from app.automations.models import HISTORY_ACTIONS
from app.runs.values import REASON_CODES, STATES, STREAMS, TRIGGER_TYPES

Schema = Mapping[str, Any]


def ref(name: str) -> dict[str, str]:
    """Return a reference to the schema ``name``."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(
    required: Mapping[str, Schema],
    optional: Mapping[str, Schema] | None = None,
    *,
    closed: bool = True,
    **more: Any,
) -> Schema:
    made: dict[str, Any] = {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        **more,
    }
    if not required:
        del made["required"]
    if closed:
        made["additionalProperties"] = False
    return made


def _list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _or_null(schema: Schema) -> Schema:
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"oneOf": [schema, {"type": "null"}]}


_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": 1000,
    "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a"
    r"\u2028\u2029\u202f\u205f\u3000][^\u0000-\u001f\u007f-\u009f]*$",
}
_DESCRIPTION = {
    "type": ["string", "null"],
    "maxLength": 100_000,
    "description": "Without control characters other than tab and newline.",
}
_ID = {"type": "string", "pattern": ID_PATTERN}
_TRIGGER_ID = {"type": "string", "pattern": TRIGGER_ID_PATTERN}
_REVISION = {"type": "string", "pattern": REVISION_PATTERN}
_REPOSITORY = {
    "type": "string",
    "maxLength": 140,
    "pattern": r"^[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$",
}
_REF = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^(?![-/.])(?!.*[/.]$)(?!.*(\.\.|//|/\.|\.lock/|\.lock$))[A-Za-z0-9/._-]+$",
}
_WORKFLOW = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^(?!/)(?!.*/$)(?!.*//)(?!(.*/)?\.{1,2}(/|$))[A-Za-z0-9/._-]+$",
}
_EXPRESSION = {
    "type": "string",
    "format": "cron",
    "maxLength": 255,
    "description": "Five fields: minute, hour, day of month, month, day of week; in UTC.",
}
_INSTANT = {"type": "string", "format": "date-time"}
_BOOLEAN = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "integer", "minimum": 1}
_ANY_TEXT = {"type": "string"}

_TARGET_FIELDS: Mapping[str, Schema] = {
    "repository": _REPOSITORY,
    "ref": _REF,
    "workflow": _WORKFLOW,
}
_ENABLED: Mapping[str, Schema] = {"enabled": {**_BOOLEAN, "default": True}}
_DEFINITION: Mapping[str, Schema] = {"name": _NAME, "target": ref("Target")}
_DEFINITION_OPTIONS: Mapping[str, Schema] = {
    "description": {**_DESCRIPTION, "default": None},
    "triggers": {**_list_of(ref("Trigger")), "default": []},
}
_META_OF_RUNS = _object(
    {
        "total": {**_or_null(_COUNT), "description": "Exact up to 10,000, and null beyond."},
        "next": _or_null(_NUMBER),
    },
    {"more": {"const": True, "description": "There are more than 10,000."}},
)

SCHEMAS: Mapping[str, Schema] = {
    "Target": _object(_TARGET_FIELDS),
    "ApiTrigger": _object(
        {"type": {"const": "api"}, "id": _TRIGGER_ID},
        _ENABLED,
        description="Lets calls start the automation. Reads back with the id `manual`, or not at all "
        "if disabled.",
    ),
    "ScheduleTrigger": _object(
        {"type": {"const": "schedule"}, "id": _TRIGGER_ID, "expression": _EXPRESSION}, _ENABLED
    ),
    "Trigger": {"oneOf": [ref("ApiTrigger"), ref("ScheduleTrigger")]},
    "Definition": _object(
        {**_DEFINITION}, _DEFINITION_OPTIONS, description="All of an automation but its id."
    ),
    "Automation": _object(
        {
            "id": _ID,
            "revision": _REVISION,
            "name": _NAME,
            "description": _DESCRIPTION,
            "target": ref("Target"),
            "triggers": _list_of(ref("Trigger")),
        }
    ),
    "NewAutomation": _object({"id": _ID, **_DEFINITION}, _DEFINITION_OPTIONS),
    "Replacement": _object(
        _DEFINITION,
        {
            **_DEFINITION_OPTIONS,
            "id": {**_ID, "description": "The id in the path, if it is there at all."},
            "revision": {
                **_REVISION,
                "description": "The revision in If-Match, if it is there at all.",
            },
        },
    ),
    "MergePatch": _object(
        {},
        {
            "name": _NAME,
            "description": _DESCRIPTION,
            "target": _object({}, _TARGET_FIELDS),
            "triggers": {
                **_or_null(_list_of(ref("Trigger"))),
                "description": "Replaces all triggers; null takes them away.",
            },
            "id": _ID,
            "revision": _REVISION,
        },
        description="RFC 7396: what is left out stays, null takes away.",
    ),
    "AutomationPage": _object(
        {
            "data": _list_of(ref("Automation")),
            "meta": _object({"total": _COUNT, "next": _or_null(_ID)}),
        }
    ),
    "Change": _object(
        {
            "number": _NUMBER,
            "automation": _ID,
            "action": {"type": "string", "enum": list(HISTORY_ACTIONS)},
            "revision": _REVISION,
            "actor": _ANY_TEXT,
            "recorded_at": _INSTANT,
        }
    ),
    "ChangePage": _object(
        {"data": _list_of(ref("Change")), "meta": _object({"next": _or_null(_NUMBER)})}
    ),
    "ChangeWithDocument": _object(
        {
            "number": _NUMBER,
            "automation": _ID,
            "action": {"type": "string", "enum": list(HISTORY_ACTIONS)},
            "revision": _REVISION,
            "actor": _ANY_TEXT,
            "recorded_at": _INSTANT,
            "document": {
                "type": "object",
                "description": "The definition as it was after the change; for a delete, before it.",
            },
        }
    ),
    "Schedule": _object(
        {
            "data": _list_of(
                _object(
                    {
                        "id": _TRIGGER_ID,
                        "enabled": _BOOLEAN,
                        "expression": _EXPRESSION,
                        "description": _ANY_TEXT,
                        "next": _list_of(_INSTANT),
                    }
                )
            )
        }
    ),
    "CronQuestion": _object(
        {"expression": _EXPRESSION},
        {
            "after": {**_INSTANT, "description": "Left out, it is now."},
            "count": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5},
        },
    ),
    "CronAnswer": _object(
        {"expression": _EXPRESSION, "description": _ANY_TEXT, "next": _list_of(_INSTANT)}
    ),
    "RunRequest": _object(
        {}, {"input": {"description": "Any JSON of at most 64 KiB: the run's one event."}}
    ),
    "Run": _object(
        {
            "id": _NUMBER,
            "state": {"type": "string", "enum": list(STATES)},
            "automation": _object({"id": _ANY_TEXT, "name": _ANY_TEXT, "revision": _ANY_TEXT}),
            "trigger": _object(
                {"type": {"type": "string", "enum": list(TRIGGER_TYPES)}, "id": _ANY_TEXT}
            ),
            "target": _object(dict.fromkeys(_TARGET_FIELDS, _ANY_TEXT)),
            "due_at": _or_null(_INSTANT),
            "queued_at": _INSTANT,
            "started_at": _or_null(_INSTANT),
            "finished_at": _or_null(_INSTANT),
            "attempt": _COUNT,
            "max_attempts": _NUMBER,
            "commit": _or_null(_ANY_TEXT),
            "exit_code": {"type": ["integer", "null"]},
            "reason": _or_null(
                {
                    "type": "object",
                    "required": ["code", "detail"],
                    "properties": {
                        "code": {"type": "string", "examples": list(REASON_CODES)},
                        "detail": _ANY_TEXT,
                    },
                }
            ),
            "events": _COUNT,
            "worker": _or_null(_ANY_TEXT),
            "rerun_of": _or_null(_NUMBER),
        }
    ),
    "RunPage": _object({"data": _list_of(ref("Run")), "meta": _META_OF_RUNS}),
    "LogLine": _object(
        {
            "number": _NUMBER,
            "attempt": _NUMBER,
            "stream": {"type": "string", "enum": list(STREAMS)},
            "logged_at": _INSTANT,
            "text": _ANY_TEXT,
        }
    ),
    "TokenRequest": _object(
        {
            "name": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "pattern": _NAME["pattern"],
            },
            "role": {"type": "string", "enum": list(ROLES)},
        },
        {"expires_at": {**_or_null(_INSTANT), "default": None}},
    ),
    "Token": _object(
        {
            "id": _ANY_TEXT,
            "name": _ANY_TEXT,
            "role": {"type": "string", "enum": list(ROLES)},
            "created_at": _INSTANT,
            "created_by": _ANY_TEXT,
            "expires_at": _or_null(_INSTANT),
            "last_used_at": _or_null(_INSTANT),
        },
        {"token": {**_ANY_TEXT, "description": "The token itself, this once."}},
    ),
    "TokenList": _object({"data": _list_of(ref("Token"))}),
    "Health": _object({"status": {"type": "string"}}, {"schema": _ANY_TEXT}),
    "Problem": _object(
        {
            "type": {"type": "string", "format": "uri-reference"},
            "title": _ANY_TEXT,
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": _ANY_TEXT,
            "instance": {**_ANY_TEXT, "description": "The request's id, as in X-Request-Id."},
        },
        {
            "errors": _list_of(
                _object({"pointer": _ANY_TEXT, "code": _ANY_TEXT, "detail": _ANY_TEXT})
            ),
            "current_revision": _REVISION,
            "automation": _ANY_TEXT,
        },
        closed=False,
        description="RFC 9457.",
    ),
}
