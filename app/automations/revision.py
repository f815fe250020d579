"""The canonical form of an automation, and the revision that is its hash.

A revision is content: equal definitions have equal revisions. A field that is added in a later release
is left out of the canonical form while it is at its default, so that it changes no existing revision.
"""

import hashlib
from typing import Any

import rfc8785

from app.automations.values import API_TRIGGER_ID, Draft


def triggers_document(draft: Draft) -> list[dict[str, Any]]:
    """Return the triggers in canonical order: an enabled API trigger, then schedules by id."""
    triggers: list[dict[str, Any]] = []
    if draft.api_enabled:
        triggers.append({"type": "api", "id": API_TRIGGER_ID, "enabled": True})
    for trigger in draft.schedules:
        triggers.append(
            {
                "type": "schedule",
                "id": trigger.id,
                "enabled": trigger.enabled,
                "expression": trigger.expression,
            }
        )
    return triggers


def canonical_document(draft: Draft) -> dict[str, Any]:
    """Return what is hashed: all that the client may set, a null description left out."""
    document: dict[str, Any] = {
        "name": draft.name,
        "target": {
            "repository": draft.target.repository,
            "ref": draft.target.ref,
            "workflow": draft.target.workflow,
        },
        "triggers": triggers_document(draft),
    }
    if draft.description is not None:
        document["description"] = draft.description
    return document


def canonical_form(draft: Draft) -> bytes:
    """Return the canonical document in RFC 8785 form."""
    return rfc8785.dumps(canonical_document(draft))


def revision_of(draft: Draft) -> str:
    """Return the revision: the SHA-256 of the canonical form, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_form(draft)).hexdigest()
