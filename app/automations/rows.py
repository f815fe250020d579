"""An automation as rows: what stands in the columns of each of its tables."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.automations.revision import canonical_form
from app.automations.values import Automation


def parent(automation: Automation) -> dict[str, Any]:
    """Return the row of ``automations``."""
    draft = automation.draft
    return {
        "id": automation.id,
        "revision": automation.revision,
        "name": draft.name,
        "description": draft.description,
        "api_enabled": draft.api_enabled,
        "target_repository": draft.target.repository,
        "target_ref": draft.target.ref,
        "target_workflow": draft.target.workflow,
    }


def triggers(automation: Automation) -> list[dict[str, Any]]:
    """Return the rows of ``automation_triggers``."""
    return [
        {
            "automation_id": automation.id,
            "id": trigger.id,
            "enabled": trigger.enabled,
            "expression": trigger.expression,
        }
        for trigger in automation.draft.schedules
    ]


def arms(
    automation: Automation, now: datetime, kept: Mapping[str, datetime | None] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of ``automation_trigger_arms``: enabled triggers are armed ``now``.

    ``kept`` has the instants of those that were armed before; None there means that the trigger had
    no arm, as after a DBA's insert, and gets none.
    """
    kept = kept or {}
    return [
        {"automation_id": automation.id, "trigger_id": trigger.id, "armed_at": armed_at}
        for trigger in automation.draft.schedules
        if trigger.enabled and (armed_at := kept.get(trigger.id, now)) is not None
    ]


def history(action: str, automation: Automation, actor: str, now: datetime) -> dict[str, Any]:
    """Return a row of ``automation_history`` for a change to ``automation``."""
    document = canonical_form(automation.draft).decode()
    return history_of(action, automation.id, automation.revision, document, actor, now)


def history_of(
    action: str, automation_id: str, revision: str, document: str, actor: str, now: datetime
) -> dict[str, Any]:
    """Return a row of ``automation_history`` from its parts."""
    return {
        "automation_id": automation_id,
        "action": action,
        "revision": revision,
        "document": document,
        "actor": actor,
        "recorded_at": now,
    }
