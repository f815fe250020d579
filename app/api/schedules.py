"""The calls on time: when an automation fires next, and what an expression means."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from flask import Response
from flask_smorest import Blueprint

from app import cron
from app.api import parameters as given
from app.api.bodies import read_json
from app.api.calls import answer_of, body_of, call
from app.api.documents import answer
from app.api.problems import Refusal, violations_document
from app.api.services import services
from app.automations.values import EXPRESSION_LIMIT, ScheduleTrigger, expression_fault, judge
from app.clock import format_instant
from app.errors import InvalidExpression, NotFound, Violation

blueprint = Blueprint("schedules", __name__, description="When automations fire, in UTC.")

_QUESTION = ("expression", "after", "count")


@call(
    blueprint,
    "GET",
    "/automations/<automation_id>/schedule",
    role="viewer",
    parameters=[given.AUTOMATION_ID, given.COUNT.documented()],
    answers={200: answer_of("Schedule", "Each schedule trigger, in words and in instants.")},
    problems=["invalid-id", "invalid-input", "not-found", "stored-automation-invalid"],
)
def read_schedule(automation_id: str) -> Response:
    """Tell when an automation fires next.

    A disabled trigger is described, and has no next instants.
    """
    given.require_automation_id(automation_id)
    count = given.read_query(given.COUNT)["count"]
    found = services().automations.get(automation_id)
    if found is None:
        raise NotFound("automation", automation_id)
    now = services().clock.now()
    return answer({"data": [_schedule(trigger, now, count) for trigger in found.draft.schedules]})


@call(
    blueprint,
    "POST",
    "/cron/preview",
    role="viewer",
    body=body_of("CronQuestion"),
    answers={200: answer_of("CronAnswer", "What the expression means.")},
)
def preview_expression() -> Response:
    """Tell what a cron expression means and when it is due.

    One that never fires has an empty `next`, and its description says so. For one that is no
    expression, `errors` says why, and the problem's `field` is the field that is wrong.
    """
    question = read_json()
    after, count = _judged(question)
    expression = cron.parse(question["expression"])
    return answer(
        {
            "expression": expression.source,
            "description": cron.describe(expression),
            "next": _instants(expression, after, count),
        }
    )


def _schedule(trigger: ScheduleTrigger, now: datetime, count: int) -> dict[str, Any]:
    expression = cron.parse(trigger.expression)
    return {
        "id": trigger.id,
        "enabled": trigger.enabled,
        "expression": trigger.expression,
        "description": cron.describe(expression),
        "next": _instants(expression, now, count) if trigger.enabled else [],
    }


def _instants(expression: cron.Expression, after: datetime, count: int) -> list[str]:
    found: list[str] = []
    instant = expression.next(after)
    while instant is not None and len(found) < count:
        found.append(format_instant(instant))
        instant = expression.next(instant)
    return found


def _judged(question: Any) -> tuple[datetime, int]:
    """Return from when and how many; refuse with all that is wrong with the question."""
    after, count = services().clock.now(), given.COUNT.default
    violations: list[Violation] = []
    if not isinstance(question, Mapping):
        question = {}
        violations.append(Violation("", "type", "The question is an object."))
    elif "expression" not in question:
        violations.append(
            Violation("/expression", "required", "The field 'expression' is required.")
        )
    else:
        violations += judge("/expression", question["expression"], expression_fault)
    for name in question.keys() - _QUESTION:
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        detail = f"There is no such field; known: {', '.join(_QUESTION)}."
        violations.append(Violation(pointer, "unknown-field", detail))
    if question.get("after") is not None:
        try:
            after = given.instant(str(question["after"]))
        except ValueError as error:
            violations.append(Violation("/after", "invalid", str(error)))
    if "count" in question:
        count = question["count"]
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 100:
            violations.append(Violation("/count", "invalid", "This is a whole number, 1 to 100."))
    if violations:
        field = _field_at_fault(question.get("expression"))
        extra: dict[str, Any] = {} if field is None else {"field": field}
        detail = "The question breaks rules; 'errors' lists each."
        listed = violations_document(tuple(violations))
        raise Refusal("invalid-input", detail, errors=listed, **extra)
    return after, count


def _field_at_fault(expression: object) -> str | None:
    if not isinstance(expression, str) or len(expression) > EXPRESSION_LIMIT:
        return None
    try:
        cron.parse(expression)
    except InvalidExpression as error:
        return error.field
    return None
