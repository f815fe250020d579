"""Builds what the API answers from the domain's values: plain dicts, since hot reads pass through here.

``schemas.py`` describes the same, and a test holds the two together.
"""

import json
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from app.auth.tokens import Token
from app.automations.history import Entry
from app.automations.revision import triggers_document
from app.automations.values import Automation
from app.clock import format_instant
from app.runs.values import LogLine, Run

_encode = json.JSONEncoder(separators=(",", ":")).encode


def answer(document: Any, status: int = 200, **headers: str) -> Response:
    """Return ``document`` as JSON; underscores in the names of ``headers`` stand for hyphens."""
    response = Response(_encode(document) + "\n", status, content_type="application/json")
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    return response


def link_to_next(**changed: object) -> str:
    """Return a Link header to this call with ``changed`` parameters, all others kept."""
    query = {**request.args.to_dict(), **changed}
    return f'<{request.script_root}{request.path}?{urlencode(query)}>; rel="next"'


def automation(value: Automation) -> dict[str, Any]:
    """Return an automation as the API shows it."""
    draft = value.draft
    target = draft.target
    return {
        "id": value.id,
        "revision": value.revision,
        "name": draft.name,
        "description": draft.description,
        "target": {
            "repository": target.repository,
            "ref": target.ref,
            "workflow": target.workflow,
        },
        "triggers": triggers_document(draft),
    }


def change(entry: Entry) -> dict[str, Any]:
    """Return one change of the history, without the document."""
    return {
        "number": entry.number,
        "automation": entry.automation_id,
        "action": entry.action,
        "revision": entry.revision,
        "actor": entry.actor,
        "recorded_at": format_instant(entry.recorded_at),
    }


def run(value: Run) -> dict[str, Any]:
    """Return a run as the API shows it."""
    reason = value.reason
    return {
        "id": value.id,
        "state": value.state,
        "automation": {
            "id": value.automation_id,
            "name": value.automation_name,
            "revision": value.automation_revision,
        },
        "trigger": {"type": value.trigger_type, "id": value.trigger_id},
        "target": {
            "repository": value.target_repository,
            "ref": value.target_ref,
            "workflow": value.target_workflow,
        },
        "due_at": _instant(value.due_at),
        "queued_at": _instant(value.queued_at),
        "started_at": _instant(value.started_at),
        "finished_at": _instant(value.finished_at),
        "attempt": value.attempt,
        "max_attempts": value.max_attempts,
        "commit": value.commit_hash,
        "exit_code": value.exit_code,
        "reason": None if reason is None else {"code": reason.code, "detail": reason.detail},
        "events": value.events,
        "worker": value.worker,
        "rerun_of": value.rerun_of,
    }


def log_line(line: LogLine) -> dict[str, Any]:
    """Return one line of a log."""
    return {
        "number": line.number,
        "attempt": line.attempt,
        "stream": line.stream,
        "logged_at": format_instant(line.logged_at),
        "text": line.text,
    }


def token(value: Token) -> dict[str, Any]:
    """Return what may be shown of a token."""
    return {
        "id": value.id,
        "name": value.name,
        "role": value.role,
        "created_at": format_instant(value.created_at),
        "created_by": value.created_by,
        "expires_at": _instant(value.expires_at),
        "last_used_at": _instant(value.last_used_at),
    }


def _instant(value: datetime | None) -> str | None:
    return None if value is None else format_instant(value)
