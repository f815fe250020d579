"""From a body to the draft it describes, with everything that is wrong with it said at once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from app import cron
from app.api.etags import Condition
from app.automations.documents import read_draft
from app.automations.values import EXPRESSION_LIMIT, Draft, revision_fault
from app.errors import InvalidExpression, InvalidInput, Violation

_SENT_BESIDE = ("id", "revision")
"""What GET answers besides the definition, and a body may carry back."""


def judged(
    document: Any,
    *,
    own_id: str | None,
    allowed: Condition | None,
    before: Draft | None,
    sent: Any = None,
    more: Iterable[Violation] = (),
) -> Draft:
    """Return the draft that ``document`` describes.

    ``own_id`` is the id in the path, None where the body gives it; ``allowed`` is what If-Match names;
    ``sent`` is the body where that is not the document itself; ``before`` is what the automation was:
    an expression that stands there already may be one that never fires. Raises InvalidInput with all
    that is wrong, ``more`` included.
    """
    violations = [*more, *_beside(document if sent is None else sent, own_id, allowed)]
    rest = document
    if isinstance(document, Mapping):
        rest = {name: value for name, value in document.items() if name not in _SENT_BESIDE}
    draft = None
    try:
        draft = read_draft(rest)
    except InvalidInput as error:
        violations += error.violations
    violations += _never_firing(rest, before)
    if violations or draft is None:
        raise InvalidInput(violations)
    return draft


def merged(target: Any, patch: Any) -> Any:
    """Return ``target`` with a JSON merge patch (RFC 7396) applied."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def _beside(sent: Any, own_id: str | None, allowed: Condition | None) -> Iterator[Violation]:
    if not isinstance(sent, Mapping):
        return
    if own_id is not None and sent.get("id", own_id) != own_id:
        detail = f"The id in the path is {own_id!r}. Leave it out of the body, or send the same."
        yield Violation("/id", "mismatch", detail)
    if "revision" in sent and (fault := _revision_fault(sent["revision"], allowed)):
        yield Violation("/revision", "mismatch", fault)


def _revision_fault(value: object, allowed: Condition | None) -> str | None:
    if not isinstance(value, str) or revision_fault(value):
        return "A revision is 64 hexadecimal digits, a-f small, as the server gave it."
    if allowed is None:
        return "What is being created has no revision yet; leave it out."
    if not allowed.matches_weakly(value):
        return (
            "The revision in the body is not the one in If-Match. Leave it out, or send the same."
        )
    return None


def _never_firing(document: Any, before: Draft | None) -> Iterator[Violation]:
    """Yield a violation for each expression that has no occurrence and was not there before."""
    triggers = document.get("triggers") if isinstance(document, Mapping) else None
    if not isinstance(triggers, list):
        return
    kept = {(t.id, t.expression) for t in before.schedules} if before is not None else set()
    for index, trigger in enumerate(triggers):
        match trigger:
            case {"type": "schedule", "expression": str(text), **rest} if not _fires(text):
                # As text, since what stands there may be of any type.
                if (str(rest.get("id")), cron.canonical(text)) not in kept:
                    yield Violation(
                        f"/triggers/{index}/expression",
                        "never-fires",
                        f"{text!r} is valid, but there is no such day, so it would never fire.",
                    )


def _fires(text: str) -> bool:
    """Tell whether ``text`` has occurrences; what is no expression is for others to report."""
    if len(text) > EXPRESSION_LIMIT:
        return True
    try:
        return cron.parse(text).ever_fires
    except InvalidExpression:
        return True
