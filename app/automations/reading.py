"""Turns rows into automations, judging each again: a row that breaks a rule is an error that names it."""

import json
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import rfc8785
from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, or_, select

from app.automations.models import automation_history, automation_triggers, automations
from app.automations.values import API_TRIGGER_ID, Automation, Draft, ScheduleTrigger, Target
from app.errors import InvalidInput, StoredAutomationInvalid, Violation

_parent = automations.c
_child = automation_triggers.c
TRIGGER_TYPES = ("api", "schedule")
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True, slots=True)
class AutomationFilter:
    """Which automations to list: of one repository, with a text in id or name, with a trigger type."""

    repository: str | None = None
    text: str | None = None
    trigger_type: str | None = None

    def __post_init__(self) -> None:
        """Raise InvalidInput for an unknown type of trigger."""
        if self.trigger_type is not None and self.trigger_type not in TRIGGER_TYPES:
            known = ", ".join(TRIGGER_TYPES)
            raise InvalidInput(
                [Violation("/trigger", "unknown-type", f"A trigger's type is one of {known}.")]
            )


class _Row(NamedTuple):
    """One row of the join: the automation's columns, then one trigger's or NULLs."""

    id: Any
    revision: Any
    name: Any
    description: Any
    api_enabled: Any
    target_repository: Any
    target_ref: Any
    target_workflow: Any
    trigger_id: Any
    enabled: Any
    expression: Any


def page(
    connection: Connection,
    after: str | None,
    limit: int | None,
    where: AutomationFilter | None,
) -> list[Automation]:
    """Return automations by id; one join with the triggers, whatever their number."""
    chosen = select(automations).where(*_conditions(where))
    if after is not None:
        chosen = chosen.where(_parent.id > after)
    if limit is not None:
        chosen = chosen.order_by(_parent.id).limit(limit)
    page_of = chosen.subquery("page")
    query = (
        select(page_of, _child.id, _child.enabled, _child.expression)
        .select_from(page_of.outerjoin(automation_triggers, _child.automation_id == page_of.c.id))
        .order_by(page_of.c.id, _child.id)
    )
    return list(_assembled(connection.execute(query)))


def one(connection: Connection, automation_id: str) -> Automation | None:
    """Return one automation, or None."""
    return next(_assembled(connection.execute(_joined(automation_id))), None)


def count(connection: Connection, where: AutomationFilter | None) -> int:
    """Return how many automations there are."""
    query = select(func.count()).select_from(automations).where(*_conditions(where))
    return connection.scalar(query) or 0


def was_ever_used(connection: Connection) -> bool:
    """Tell whether there is, or ever was, any automation."""
    return bool(
        connection.scalar(
            select(or_(exists().select_from(automations), exists().select_from(automation_history)))
        )
    )


def as_stored(connection: Connection, automation_id: str) -> tuple[str, str] | None:
    """Return revision and document of an automation, as its rows have them and unjudged, or None."""
    rows = [_Row(*row) for row in connection.execute(_joined(automation_id))]
    if not rows:
        return None
    first = rows[0]
    triggers: list[dict[str, object]] = []
    if first.api_enabled:
        triggers.append({"type": "api", "id": API_TRIGGER_ID, "enabled": True})
    triggers += [
        {"type": "schedule", "id": r.trigger_id, "enabled": r.enabled, "expression": r.expression}
        for r in rows
        if r.trigger_id is not None
    ]
    document: dict[str, object] = {
        "name": first.name,
        "target": {
            "repository": first.target_repository,
            "ref": first.target_ref,
            "workflow": first.target_workflow,
        },
        "triggers": triggers,
    }
    if first.description is not None:
        document["description"] = first.description
    return first.revision, _as_canonical_as_can_be(document)


def _as_canonical_as_can_be(document: dict[str, Any]) -> str:
    try:
        return rfc8785.dumps(document).decode()
    except (rfc8785.CanonicalizationError, UnicodeError):
        return json.dumps(document, sort_keys=True, default=repr)


def _joined(automation_id: str) -> Select[Any]:
    return (
        select(automations, _child.id, _child.enabled, _child.expression)
        .select_from(automations.outerjoin(automation_triggers, _child.automation_id == _parent.id))
        .where(_parent.id == automation_id)
        .order_by(_child.id)
    )


def _conditions(where: AutomationFilter | None) -> Iterator[ColumnElement[bool]]:
    if where is None:
        return
    if where.repository is not None:
        yield _parent.target_repository == where.repository
    if where.text is not None:
        # SQLite and PostgreSQL (in the C collation) fold A to Z only, MariaDB folds all letters.
        folded = where.text.translate(_ASCII_LOWER)
        yield or_(
            _parent.id.contains(folded, autoescape=True),
            func.lower(_parent.name).contains(folded, autoescape=True),
            func.lower(_parent.name).contains(where.text.lower(), autoescape=True),
        )
    if where.trigger_type == "api":
        yield _parent.api_enabled == True  # noqa: E712
    if where.trigger_type == "schedule":
        yield exists().where(and_(_child.automation_id == _parent.id))


def _assembled(rows: Iterable[Any]) -> Iterator[Automation]:
    for _, group in groupby(rows, key=itemgetter(0)):
        yield _automation([_Row(*row) for row in group])


def _automation(rows: list[_Row]) -> Automation:
    first = rows[0]
    try:
        return Automation(
            first.id,
            first.revision,
            Draft(
                first.name,
                first.description,
                Target(first.target_repository, first.target_ref, first.target_workflow),
                first.api_enabled,
                tuple(
                    ScheduleTrigger(row.trigger_id, row.enabled, row.expression)
                    for row in rows
                    if row.trigger_id is not None
                ),
            ),
        )
    except InvalidInput as error:
        raise StoredAutomationInvalid(str(first.id), error.violations) from error
    except TypeError as error:
        # SQLite lets any type stand in any column.
        wrong_type = Violation("", "type", "A text column holds something that is not text.")
        raise StoredAutomationInvalid(str(first.id), [wrong_type]) from error
