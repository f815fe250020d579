"""The one way to the stored definitions.

Every method is a transaction of its own, nothing is cached, and any thread may call any of them. What a
writer read decides whether it may write: the revision stands in the statement, never in a check before
it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, insert, select, update
from sqlalchemy.exc import DBAPIError

from app.automations import children, history, reading, rows
from app.automations.history import Entry
from app.automations.models import (
    automation_history,
    automation_trigger_arms,
    automation_triggers,
    automations,
)
from app.automations.reading import AutomationFilter, is_storable
from app.automations.revision import canonical_form, revision_of
from app.automations.values import Automation, Draft
from app.db import Database
from app.db.failures import Failure, classify
from app.errors import AlreadyExists, InvalidInput, NotFound, StaleRevision, Violation

T = TypeVar("T")


class AnyRevision:
    """Stands for whichever revision is current, as ``If-Match: *`` does."""


# Built once: building it costs about as much as running it.
_REVISION = select(automations.c.revision).where(automations.c.id == bindparam("automation_id"))

ANY: Final = AnyRevision()
Expected = frozenset[str] | AnyRevision


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a replace led to; ``changed`` is False if the automation was at that revision already."""

    automation: Automation
    changed: bool


class AutomationStore:
    """Keeps automations in SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- reading ------------------------------------------------------------------------------------

    def list(
        self,
        after: str | None = None,
        limit: int | None = None,
        where: AutomationFilter | None = None,
    ) -> Sequence[Automation]:
        """Return the automations whose ids sort after ``after``, by id, at most ``limit``.

        Raises StoredAutomationInvalid for a row that breaks a rule, InvalidInput for an ``after`` that
        no column could hold, and DatabaseUnavailable.
        """
        if after is not None and not is_storable(after):
            raise InvalidInput([Violation("/after", "invalid", "This is no id.")])
        return self._database.read(lambda c: reading.page(c, after, limit, where))

    def count(self, where: AutomationFilter | None = None) -> int:
        """Return how many automations there are."""
        return self._database.read(lambda c: reading.count(c, where))

    def get(self, automation_id: str) -> Automation | None:
        """Return the automation, or None.

        Raises StoredAutomationInvalid if its rows break a rule, and DatabaseUnavailable.
        """
        return self._database.read(lambda c: reading.one(c, automation_id))

    def revision(self, automation_id: str) -> str | None:
        """Return the current revision, or None; it reads even what is invalid otherwise."""
        return self._database.read(lambda c: _current_revision(c, automation_id))

    def history(
        self, automation_id: str, before: int | None = None, limit: int = 100
    ) -> Sequence[Entry]:
        """Return what the automation was, newest first; it may be long gone."""
        return self._database.read(lambda c: history.page(c, automation_id, before, limit))

    def history_entry(self, automation_id: str, number: int) -> Entry | None:
        """Return one entry of the history with its document, or None."""
        return self._database.read(lambda c: history.entry(c, automation_id, number))

    def was_ever_used(self) -> bool:
        """Tell whether there is, or ever was, any automation."""
        return self._database.read(reading.was_ever_used)

    # --- writing ------------------------------------------------------------------------------------

    def create(self, automation_id: str, draft: Draft, actor: str) -> Automation:
        """Store a new automation with its triggers.

        Raises AlreadyExists, InvalidInput for an id that breaks the rules, and DatabaseUnavailable.
        """
        automation = Automation(automation_id, revision_of(draft), draft)

        def work(connection: Connection) -> Automation:
            now = self._database.now(connection)
            _insert(connection, automation, now)
            _record(connection, rows.history("create", automation, actor, now))
            return automation

        return self._database.write(_refusals_told(work))

    def replace(self, automation_id: str, expected: Expected, draft: Draft, actor: str) -> Replaced:
        """Replace the automation if its revision is one of ``expected``.

        A draft whose revision is the current one changes nothing and succeeds whatever was expected:
        it was applied already. Raises NotFound, StaleRevision and DatabaseUnavailable.
        """
        automation = Automation(automation_id, revision_of(draft), draft)

        def work(connection: Connection) -> Replaced:
            of_this = automations.c.id == automation_id
            statement = update(automations).values(**rows.parent(automation))
            changes = automations.c.revision != automation.revision
            written = connection.execute(statement.where(of_this, changes, _is_expected(expected)))
            if written.rowcount == 0:
                stored = reading.as_stored(connection, automation_id, lock=True)
                if stored == (automation.revision, canonical_form(draft).decode()):
                    return Replaced(automation, changed=False)
                # Rows changed by hand may bear the revision and still differ: those are mended.
                if (
                    connection.execute(statement.where(of_this, _is_expected(expected))).rowcount
                    == 0
                ):
                    raise _why_not(automation_id, expected, stored and stored[0])
            now = self._database.now(connection)
            _replace_triggers(connection, automation, now)
            _record(connection, rows.history("replace", automation, actor, now))
            return Replaced(automation, changed=True)

        return self._database.write(_refusals_told(work))

    def delete(self, automation_id: str, expected: Expected, actor: str) -> None:
        """Delete the automation if its revision is one of ``expected``; its triggers go with it.

        With ANY it deletes also what is stored invalid. Raises NotFound, StaleRevision and
        DatabaseUnavailable.
        """

        def work(connection: Connection) -> None:
            last = reading.as_stored(connection, automation_id, lock=True)
            statement = delete(automations).where(
                automations.c.id == automation_id, _is_expected(expected)
            )
            if connection.execute(statement).rowcount == 0 or last is None:
                raise _why_not(automation_id, expected, last and last[0])
            now = self._database.now(connection)
            _record(connection, rows.history_of("delete", automation_id, *last, actor, now))

        self._database.write(work)


def _refusals_told(work: Callable[[Connection], T]) -> Callable[[Connection], T]:
    """Let InvalidInput be raised where the database refuses a row, by a CHECK or trigger of its own."""

    def told(connection: Connection) -> T:
        try:
            return work(connection)
        except DBAPIError as error:
            if classify(error) is not Failure.CONSTRAINT:
                raise
            refused = Violation("", "refused", "The database refuses this automation.")
            raise InvalidInput([refused]) from error

    return told


def _record(connection: Connection, row: Mapping[str, object]) -> None:
    connection.execute(insert(automation_history).inline(), row)


def _insert(connection: Connection, automation: Automation, now: datetime) -> None:
    """Insert parent, children and arms inside the caller's transaction. Raises AlreadyExists."""
    try:
        connection.execute(insert(automations), rows.parent(automation))
    except DBAPIError as error:
        if classify(error) is Failure.UNIQUE:
            raise AlreadyExists("automation", automation.id) from error
        raise
    children.delete_orphans(connection, [automation.id])
    _insert_triggers(connection, automation, now)


def _is_expected(expected: Expected) -> ColumnElement[bool]:
    if isinstance(expected, AnyRevision):
        return automations.c.id.is_not(None)
    return automations.c.revision.in_(sorted(expected))


def _why_not(automation_id: str, expected: Expected, current: str | None) -> Exception:
    if current is None or isinstance(expected, AnyRevision):
        return NotFound("automation", automation_id)
    return StaleRevision(automation_id, expected, current)


def _current_revision(connection: Connection, automation_id: str) -> str | None:
    revision: str | None = connection.scalar(_REVISION, {"automation_id": automation_id})
    return revision


def _replace_triggers(connection: Connection, automation: Automation, now: datetime) -> None:
    """Put the new children in place of the old; what was enabled and unchanged stays armed as it was."""
    old, armed = automation_triggers.c, automation_trigger_arms.c
    of_this = old.automation_id == automation.id
    of_trigger = and_(armed.automation_id == old.automation_id, armed.trigger_id == old.id)
    enabled_before = {
        trigger_id: (expression, armed_at)
        for trigger_id, expression, armed_at in connection.execute(
            select(old.id, old.expression, armed.armed_at)
            .select_from(automation_triggers.outerjoin(automation_trigger_arms, of_trigger))
            .where(of_this, old.enabled == True)  # noqa: E712
        )
    }
    children.delete_of(connection, automation.id)
    kept = {
        trigger.id: enabled_before[trigger.id][1]
        for trigger in automation.draft.schedules
        if trigger.enabled
        and trigger.id in enabled_before
        and enabled_before[trigger.id][0] == trigger.expression
    }
    _insert_triggers(connection, automation, now, kept)


def _insert_triggers(
    connection: Connection,
    automation: Automation,
    now: datetime,
    kept: Mapping[str, datetime | None] | None = None,
) -> None:
    for table, inserted in (
        (automation_triggers, rows.triggers(automation)),
        (automation_trigger_arms, rows.arms(automation, now, kept)),
    ):
        if inserted:
            connection.execute(insert(table), inserted)
