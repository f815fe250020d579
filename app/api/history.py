"""The calls on what automations were."""

from flask import Response
from flask_smorest import Blueprint

from app.api import documents
from app.api import parameters as given
from app.api.calls import answer_of, call
from app.api.documents import answer, link_to_next
from app.api.services import services
from app.errors import NotFound

blueprint = Blueprint(
    "history", __name__, description="What automations were, and who changed them."
)


@call(
    blueprint,
    "GET",
    "/automations/<automation_id>/history",
    role="viewer",
    parameters=[given.AUTOMATION_ID, given.LIMIT.documented(), given.BEFORE.documented()],
    answers={200: answer_of("ChangePage", "Changes, the newest first.", headers=["Link"])},
    problems=["invalid-id", "invalid-input", "not-found"],
)
def list_changes(automation_id: str) -> Response:
    """List the changes of an automation.

    The newest first, also of an automation that is gone.
    """
    given.require_automation_id(automation_id)
    query = given.read_query(given.LIMIT, given.BEFORE)
    limit = query["limit"]
    found = services().automations.history(automation_id, query["before"], limit + 1)
    if not found and not _is_known(automation_id):
        raise NotFound("automation", automation_id)
    page = found[:limit]
    following = page[-1].number if len(found) > limit else None
    response = answer(
        {"data": [documents.change(entry) for entry in page], "meta": {"next": following}}
    )
    if following is not None:
        response.headers["Link"] = link_to_next(before=following)
    return response


@call(
    blueprint,
    "GET",
    "/automations/<automation_id>/history/<number>",
    role="viewer",
    parameters=[given.AUTOMATION_ID, given.HISTORY_NUMBER],
    answers={200: answer_of("ChangeWithDocument", "The change, and the document as it was.")},
    problems=["invalid-id", "not-found"],
)
def read_change(automation_id: str, number: str) -> Response:
    """Read an automation as it was after a change."""
    given.require_automation_id(automation_id)
    wanted = given.number_in_path("change", number)
    entry = services().automations.history_entry(automation_id, wanted)
    if entry is None:
        raise NotFound("change", f"{automation_id}/{wanted}")
    return answer({**documents.change(entry), "document": entry.document})


def _is_known(automation_id: str) -> bool:
    automations = services().automations
    return bool(automations.history(automation_id, None, 1)) or (
        automations.revision(automation_id) is not None
    )
