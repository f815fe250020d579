"""Turns rows into automations, judging each again: a row that breaks a rule is an error that names it."""

import json
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import rfc8785
from sqlalchemy import ColumnElement, Connection, and_, bindparam, exists, func, or_, select

from app.automations import values
from app.automations.documents import read_draft
from app.automations.models import automation_history, automation_triggers, automations
from app.automations.values import API_TRIGGER_ID, Automation, Draft, ScheduleTrigger, Target, judge
from app.db.undecodable import rows_of
from app.errors import InvalidInput, StoredAutomationInvalid, Violation

_parent = automations.c
_child = automation_triggers.c
TRIGGER_TYPES = ("api", "schedule")
_PARENT_COLUMNS = len(automations.c)
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True, slots=True)
class AutomationFilter:
    """Which automations to list: of one repository, with a text in id or name, with a trigger type.

    ASCII letters of the text match in either case, on each database; whether others do is up to it.
    """

    repository: str | None = None
    text: str | None = None
    trigger_type: str | None = None

    def __post_init__(self) -> None:
        """Raise InvalidInput for an unknown type of trigger, and for what no column could hold."""
        violations = [*_storable("/repository", self.repository), *_storable("/q", self.text)]
        if self.trigger_type is not None and self.trigger_type not in TRIGGER_TYPES:
            known = ", ".join(TRIGGER_TYPES)
            violations.append(
                Violation("/trigger", "unknown-type", f"A trigger's type is one of {known}.")
            )
        if violations:
            raise InvalidInput(violations)


def _storable(pointer: str, text: str | None) -> Iterator[Violation]:
    if text is not None and not is_storable(text):
        yield Violation(pointer, "invalid", "This holds a NUL or a lone surrogate.")


def is_storable(text: str) -> bool:
    """Tell whether a text could stand in a column at all; drivers fail on one that can't."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


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
    return list(_assembled(rows_of(connection, query)))


def one(connection: Connection, automation_id: str) -> Automation | None:
    """Return one automation, or None."""
    return next(_assembled(_rows_of_one(connection, automation_id)), None)


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


def as_stored(
    connection: Connection, automation_id: str, *, lock: bool = False
) -> tuple[str, str] | None:
    """Return revision and document of an automation, as its rows have them and unjudged, or None.

    With ``lock`` nobody else changes it until the transaction ends.
    """
    if lock:
        locked = select(_parent.id).where(_parent.id == automation_id).with_for_update()
        if connection.scalar(locked) is None:
            # One that was created since then is not locked, and so not what was asked for.
            return None
    rows = [_Row(*tuple(row)) for row in _rows_of_one(connection, automation_id)]
    if not rows:
        return None
    return rows[0].revision, _as_canonical_as_can_be(_document(rows))


def _as_canonical_as_can_be(document: dict[str, Any]) -> str:
    try:
        return rfc8785.dumps(document).decode()
    except (rfc8785.CanonicalizationError, UnicodeError):
        return json.dumps(document, sort_keys=True, default=repr)


# Built once: building it costs about as much as running it.
_JOINED = (
    select(automations, _child.id, _child.enabled, _child.expression)
    .select_from(automations.outerjoin(automation_triggers, _child.automation_id == _parent.id))
    .where(_parent.id == bindparam("automation_id"))
    .order_by(_child.id)
)


def _rows_of_one(connection: Connection, automation_id: str) -> Sequence[Any]:
    return rows_of(connection, _JOINED, {"automation_id": automation_id})


def _conditions(where: AutomationFilter | None) -> Iterator[ColumnElement[bool]]:
    if where is None:
        return
    if where.repository is not None:
        yield _parent.target_repository == where.repository
    if where.text is not None:
        # SQLite and PostgreSQL's "C" fold ASCII alone, MariaDB folds all letters.
        for_ascii = where.text.translate(_ASCII_LOWER)
        name = func.lower(_parent.name)
        yield or_(
            _parent.id.contains(for_ascii, autoescape=True),
            *(name.contains(t, autoescape=True) for t in {for_ascii: 1, where.text.lower(): 1}),
        )
    if where.trigger_type == "api":
        yield _parent.api_enabled == True  # noqa: E712
    if where.trigger_type == "schedule":
        yield exists().where(and_(_child.automation_id == _parent.id))


def _assembled(rows: Iterable[Any]) -> Iterator[Automation]:
    for _, group in groupby(rows, key=itemgetter(0)):
        yield _automation(list(group))


def _automation(rows: list[Any]) -> Automation:
    automation_id, revision, name, description, api_enabled, *target = rows[0][:_PARENT_COLUMNS]
    try:
        return Automation(
            automation_id,
            revision,
            Draft(
                name,
                description,
                Target(*target),
                api_enabled,
                tuple(
                    ScheduleTrigger(*row[_PARENT_COLUMNS:])
                    for row in rows
                    if row[_PARENT_COLUMNS] is not None
                ),
            ),
        )
    except (InvalidInput, TypeError) as error:
        found = _violations([_Row(*tuple(row)) for row in rows])
        raise StoredAutomationInvalid(str(automation_id), found) from error


def _violations(rows: list[_Row]) -> list[Violation]:
    """Return every rule that the rows break, with pointers into their document.

    SQLite lets any type stand in any column, so that the values can't say it on their own.
    """
    first = rows[0]
    violations = [
        *judge("/id", first.id, values.automation_id_fault),
        *judge("/revision", first.revision, values.revision_fault),
    ]
    try:
        read_draft(_document(rows))
    except InvalidInput as error:
        violations += error.violations
    return violations


def _document(rows: list[_Row]) -> dict[str, Any]:
    first = rows[0]
    triggers: list[dict[str, Any]] = []
    if first.api_enabled:
        triggers.append({"type": "api", "id": API_TRIGGER_ID, "enabled": True})
    triggers += [
        {"type": "schedule", "id": r.trigger_id, "enabled": r.enabled, "expression": r.expression}
        for r in rows
        if r.trigger_id is not None
    ]
    document: dict[str, Any] = {
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
    return document
