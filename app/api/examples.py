"""An example of each body and answer, by the name of its schema; a test holds them to the schemas."""

from collections.abc import Mapping
from typing import Any

_TARGET_EXAMPLE = {"repository": "acme/shop", "ref": "main", "workflow": "release"}
_DEFINITION_EXAMPLE = {
    "name": "Nightly",
    "description": None,
    "target": _TARGET_EXAMPLE,
    "triggers": [
        {"type": "api", "id": "manual", "enabled": True},
        {"type": "schedule", "id": "nightly", "enabled": True, "expression": "0 3 * * *"},
    ],
}
EXAMPLE_REVISION = "64ca8f29f1ff83c1e18f0b0b9f5a71b2c0b9c12f5b2d4f8b86c3a3c7e8d0a1b2"
_AUTOMATION_EXAMPLE = {"id": "nightly", "revision": EXAMPLE_REVISION, **_DEFINITION_EXAMPLE}
_CHANGE_EXAMPLE = {
    "number": 12,
    "automation": "nightly",
    "action": "replace",
    "revision": EXAMPLE_REVISION,
    "actor": "token:ci",
    "recorded_at": "2026-12-01T09:30:00.250000Z",
}
_RUN_EXAMPLE = {
    "id": 4711,
    "state": "succeeded",
    "automation": {"id": "nightly", "name": "Nightly", "revision": EXAMPLE_REVISION},
    "trigger": {"type": "schedule", "id": "nightly"},
    "target": _TARGET_EXAMPLE,
    "due_at": "2026-12-01T03:00:00Z",
    "queued_at": "2026-12-01T03:00:00.412000Z",
    "started_at": "2026-12-01T03:00:00.901000Z",
    "finished_at": "2026-12-01T03:01:10.007000Z",
    "attempt": 1,
    "max_attempts": 1,
    "commit": "1f0c5a3bd1e94b6d9a3a52cf0f2d7c6cd0a1b2c3",
    "exit_code": 0,
    "reason": None,
    "events": 0,
    "worker": "worker-4242-0a1b2c3d4e5f6071",
    "rerun_of": None,
}
_TOKEN_EXAMPLE = {
    "id": "0a1b2c3d4e5f6071",
    "name": "ci",
    "role": "editor",
    "created_at": "2026-12-01T09:00:00Z",
    "created_by": "admin",
    "expires_at": None,
    "last_used_at": None,
}
_NEXT_EXAMPLE = ["2026-12-02T03:00:00Z", "2026-12-03T03:00:00Z"]
_IN_WORDS = "At 03:00 UTC, every day"

EXAMPLES: Mapping[str, Any] = {
    "Automation": _AUTOMATION_EXAMPLE,
    "NewAutomation": {"id": "nightly", **_DEFINITION_EXAMPLE},
    "Replacement": _DEFINITION_EXAMPLE,
    "MergePatch": {"description": "Builds what was merged today", "target": {"ref": "stable"}},
    "AutomationPage": {"data": [_AUTOMATION_EXAMPLE], "meta": {"total": 1, "next": None}},
    "ChangePage": {"data": [_CHANGE_EXAMPLE], "meta": {"next": None}},
    "ChangeWithDocument": {**_CHANGE_EXAMPLE, "document": _DEFINITION_EXAMPLE},
    "Schedule": {
        "data": [
            {
                "id": "nightly",
                "enabled": True,
                "expression": "0 3 * * *",
                "description": _IN_WORDS,
                "next": _NEXT_EXAMPLE,
            }
        ]
    },
    "CronQuestion": {"expression": "0 3 * * *", "after": "2026-12-01T12:00:00Z", "count": 2},
    "CronAnswer": {"expression": "0 3 * * *", "description": _IN_WORDS, "next": _NEXT_EXAMPLE},
    "RunRequest": {"input": {"version": "1.4.0"}},
    "Run": _RUN_EXAMPLE,
    "RunPage": {"data": [_RUN_EXAMPLE], "meta": {"total": 1, "next": None}},
    "TokenRequest": {"name": "ci", "role": "editor", "expires_at": "2099-01-01T00:00:00Z"},
    "Token": _TOKEN_EXAMPLE,
    "TokenList": {"data": [_TOKEN_EXAMPLE]},
    "Health": {"status": "ok"},
}
