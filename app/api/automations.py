"""The calls on automations: list, create, read, replace, patch, delete."""

from collections.abc import Iterator, Mapping
from typing import Any

from flask import Response
from flask_smorest import Blueprint

from app.api import documents, etags
from app.api import parameters as given
from app.api.access import principal
from app.api.bodies import MERGE_PATCH, read_json
from app.api.calls import answer_of, body_of, call, empty_answer
from app.api.documents import answer, link_to_next
from app.api.drafts import judged, merged
from app.api.etags import Condition
from app.api.problems import Refusal
from app.api.services import services
from app.automations.reading import AutomationFilter
from app.automations.revision import canonical_document, revision_of
from app.automations.store import ANY, Expected
from app.automations.values import Automation, Draft, automation_id_fault, judge
from app.errors import AlreadyExists, InvalidInput, NotFound, StaleRevision, Violation

blueprint = Blueprint(
    "automations", __name__, description="What Bellringer keeps: what to run, and when."
)

_FILTERS = (given.REPOSITORY, given.TEXT, given.TRIGGER_TYPE)
_IS_CHANGED = ("invalid-id", "invalid-header", "not-found", "stale-revision")
_CHANGES = (*_IS_CHANGED, "precondition-required")


@call(
    blueprint,
    "GET",
    "/automations",
    role="viewer",
    parameters=[p.documented() for p in (given.LIMIT, given.AFTER_ID, *_FILTERS)],
    answers={200: answer_of("AutomationPage", "A page of automations, by id.", headers=["Link"])},
    problems=["invalid-input", "stored-automation-invalid"],
)
def list_automations() -> Response:
    """List automations.

    Sorted by id. Where there are more, `meta.next` is the `after` of the next page, which the `Link`
    header has as a whole.
    """
    query = given.read_query(given.LIMIT, given.AFTER_ID, *_FILTERS)
    where = AutomationFilter(query["repository"], query["q"], query["trigger"])
    after, limit = query["after"], query["limit"]
    found = services().automations.list(after, limit + 1, where)
    page = found[:limit]
    is_all = after is None and len(found) <= limit
    total = len(found) if is_all else services().automations.count(where)
    following = page[-1].id if len(found) > limit else None
    response = answer(
        {
            "data": [documents.automation(value) for value in page],
            "meta": {"total": total, "next": following},
        }
    )
    if following is not None:
        response.headers["Link"] = link_to_next(after=following)
    return response


@call(
    blueprint,
    "POST",
    "/automations",
    role="editor",
    body=body_of("NewAutomation"),
    answers={201: answer_of("Automation", "It was created.", headers=["Location", "ETag"])},
    problems=["already-exists"],
)
def create_automation() -> Response:
    """Create an automation."""
    document = read_json()
    automation_id, *more = _id_in_body(document)
    draft = judged(document, own_id=None, allowed=None, before=None, more=more)
    assert isinstance(automation_id, str)
    return _created(services().automations.create(automation_id, draft, principal().actor))


@call(
    blueprint,
    "GET",
    "/automations/<automation_id>",
    role="viewer",
    parameters=[given.AUTOMATION_ID, given.IF_NONE_MATCH],
    answers={
        200: answer_of("Automation", "The automation.", headers=["ETag"]),
        304: empty_answer("It is what the client has.", ["ETag"]),
    },
    problems=["invalid-id", "invalid-header", "not-found", "stored-automation-invalid"],
)
def read_automation(automation_id: str) -> Response:
    """Read an automation.

    `If-None-Match` with the `ETag` that the client has is answered with 304 while that is current.
    """
    given.require_automation_id(automation_id)
    known = given.condition("If-None-Match")
    if known is not None:
        current = services().automations.revision(automation_id)
        if current is not None and known.matches_weakly(current):
            response = Response(status=304)
            response.headers["ETag"] = etags.quoted(current)
            return response
    return _shown(_existing(automation_id))


@call(
    blueprint,
    "PUT",
    "/automations/<automation_id>",
    role="editor",
    parameters=[given.AUTOMATION_ID, given.OPTIONAL_IF_MATCH, given.CREATE_ONLY],
    body=body_of("Replacement"),
    answers={
        200: answer_of("Automation", "It is replaced.", headers=["ETag"]),
        201: answer_of("Automation", "It was created.", headers=["Location", "ETag"]),
    },
    problems=[*_CHANGES, "precondition-failed", "stored-automation-invalid"],
)
def replace_automation(automation_id: str) -> Response:
    """Replace an automation, or create it under an id of one's choice.

    With `If-Match` it replaces what is at that revision. With `If-None-Match: *` it creates. One of the
    two is needed. A replacement that is what the automation is already is answered with 200 whatever
    revision it names, so that a request whose answer was lost can be repeated.
    """
    given.require_automation_id(automation_id)
    condition = given.condition("If-Match")
    create_only = given.condition("If-None-Match")
    if create_only is None:
        document = read_json()
        current = _existing(automation_id)
        return _change(current, _needed(condition), document, document)
    if condition is not None or not create_only.any:
        raise Refusal(
            "invalid-header",
            "PUT takes If-Match with a revision, to replace, or If-None-Match: *, to create.",
            header="If-None-Match",
        )
    document = read_json()
    _refuse_existing(automation_id)
    draft = judged(document, own_id=automation_id, allowed=None, before=None)
    try:
        return _created(services().automations.create(automation_id, draft, principal().actor))
    except AlreadyExists:
        _refuse_existing(automation_id)
        raise


@call(
    blueprint,
    "PATCH",
    "/automations/<automation_id>",
    role="editor",
    parameters=[given.AUTOMATION_ID, given.IF_MATCH],
    body=body_of("MergePatch", MERGE_PATCH),
    answers={200: answer_of("Automation", "It is changed.", headers=["ETag"])},
    problems=[*_CHANGES, "stored-automation-invalid"],
)
def patch_automation(automation_id: str) -> Response:
    """Change parts of an automation.

    A JSON merge patch (RFC 7396) on the definition: what it leaves out stays, null takes away, and
    `triggers` is replaced as a whole. Pointers in errors are into the definition that it led to.
    """
    given.require_automation_id(automation_id)
    condition = _if_match_only()
    patch = read_json(MERGE_PATCH)
    current = _existing(automation_id)
    condition = _needed(condition)
    return _change(current, condition, patch, merged(canonical_document(current.draft), patch))


@call(
    blueprint,
    "DELETE",
    "/automations/<automation_id>",
    role="editor",
    parameters=[given.AUTOMATION_ID, given.IF_MATCH],
    answers={204: empty_answer("It is gone; its history and its runs stay.")},
    problems=_CHANGES,
)
def delete_automation(automation_id: str) -> Response:
    """Delete an automation.

    `If-Match: *` deletes it whatever it is, also where its stored form breaks the rules.
    """
    given.require_automation_id(automation_id)
    condition = _if_match_only()
    current = services().automations.revision(automation_id)
    if current is None:
        raise NotFound("automation", automation_id)
    expected = _expected(_needed(condition), automation_id, current)
    services().automations.delete(automation_id, expected, principal().actor)
    return Response(status=204)


# --- the steps of a change --------------------------------------------------------------------------


def _change(current: Automation, condition: Condition, sent: Any, document: Any) -> Response:
    """Bring ``current`` to what ``document`` says, if ``condition`` holds.

    ``sent`` is the body itself, whose ``id`` and ``revision`` are compared with the request's.
    """
    automations = services().automations
    if not condition.matches_strongly(current.revision):
        if _is_already(current, condition, sent, document):
            return _shown(current)
        raise _stale(condition, current.id, current.revision)
    draft = _judged_change(current, condition, sent, document)
    expected = _expected(condition, current.id, current.revision)
    return _shown(automations.replace(current.id, expected, draft, principal().actor).automation)


def _judged_change(current: Automation, condition: Condition, sent: Any, document: Any) -> Draft:
    return judged(document, own_id=current.id, allowed=condition, before=current.draft, sent=sent)


def _is_already(current: Automation, condition: Condition, sent: Any, document: Any) -> bool:
    try:
        draft = _judged_change(current, condition, sent, document)
    except InvalidInput:
        return False
    return revision_of(draft) == current.revision


def _expected(condition: Condition, automation_id: str, current: str) -> Expected:
    if condition.any:
        return ANY
    if not condition.matches_strongly(current):
        raise _stale(condition, automation_id, current)
    return condition.revisions


def _stale(condition: Condition, automation_id: str, current: str) -> Exception:
    if condition.matches_weakly(current):
        return Refusal(
            "stale-revision",
            'If-Match compares strongly, and W/"…" is a weak tag, which matches nothing. A proxy that '
            "compresses may have made it weak: send the revision in quotes, without W/.",
            headers={"ETag": etags.quoted(current)},
            current_revision=current,
        )
    return StaleRevision(automation_id, condition.revisions, current)


def _if_match_only() -> Condition | None:
    if given.condition("If-None-Match") is not None:
        raise Refusal(
            "invalid-header",
            "This call takes If-Match, and not If-None-Match.",
            header="If-None-Match",
        )
    return given.condition("If-Match")


def _needed(condition: Condition | None) -> Condition:
    if condition is None:
        raise Refusal(
            "precondition-required",
            "Send If-Match with the ETag of the automation as you read it, so that nobody's change "
            "is lost.",
        )
    return condition


def _existing(automation_id: str) -> Automation:
    found = services().automations.get(automation_id)
    if found is None:
        raise NotFound("automation", automation_id)
    return found


def _refuse_existing(automation_id: str) -> None:
    current = services().automations.revision(automation_id)
    if current is not None:
        raise Refusal(
            "precondition-failed",
            f"The automation {automation_id!r} exists already. To replace it, send If-Match.",
            headers={"ETag": etags.quoted(current)},
            current_revision=current,
        )


def _id_in_body(document: Any) -> Iterator[Any]:
    """Yield the id that the body gives, then what is wrong with it."""
    if not isinstance(document, Mapping):
        yield None
    elif "id" not in document:
        yield None
        yield Violation("/id", "required", "The field 'id' is required.")
    else:
        yield document["id"]
        yield from judge("/id", document["id"], automation_id_fault)


def _created(value: Automation) -> Response:
    location = f"/api/v1/automations/{value.id}"
    etag = etags.quoted(value.revision)
    return answer(documents.automation(value), 201, Location=location, ETag=etag)


def _shown(value: Automation) -> Response:
    return answer(documents.automation(value), ETag=etags.quoted(value.revision))
