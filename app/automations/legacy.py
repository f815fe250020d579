"""Imports a directory of TOML files, as automations were kept before they moved into SQL.

All files are read and judged before anything is written; then one transaction takes in what SQL does
not know yet, and the directory is renamed. What SQL knows, or ever knew, wins as a whole.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import DBAPIError

from app.automations import children, legacy_files, rows
from app.automations.legacy_files import Progress
from app.automations.models import (
    automation_history,
    automation_trigger_arms,
    automation_triggers,
    automations,
)
from app.automations.values import Automation
from app.clock import Clock
from app.db import Database
from app.db.failures import Failure, classify

ACTOR = "import"
_CHUNK = 500
_TRIES = 10


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. ``backup`` is where the directory is now, or None if it stands as it was.

    ``rename_problem`` says why it could not be renamed; what was imported is imported all the same,
    and the next import skips it and tries to rename again.
    """

    directory: Path
    imported: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    backup: Path | None = None
    rename_problem: str | None = None


def import_directory(
    database: Database,
    directory: Path,
    clock: Clock,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import ``directory`` and rename it; without a directory, or a TOML file in it, do nothing.

    With ``dry_run`` the report says what would be done, and nothing is written. Raises ImportRefused
    with every error of every file, and DatabaseUnavailable; in both cases nothing is written and the
    directory stands as it was.
    """
    imported: list[str] = []
    skipped: list[str] = []
    warnings: tuple[str, ...] = ()
    for _ in range(_TRIES):
        try:
            found = legacy_files.read(directory, progress)
        except legacy_files.Gone:
            continue
        if found is None:
            return ImportReport(directory, tuple(imported), tuple(skipped), warnings)
        warnings = found.warnings
        if dry_run:
            known = database.read(lambda c, a=found.automations: _known(c, a))  # type: ignore[misc]
            return ImportReport(
                directory,
                tuple(a.id for a in found.automations if a.id not in known),
                tuple(a.id for a in found.automations if a.id in known),
                warnings,
            )
        new = _take_in(database, found.automations)
        imported += new
        ours = set(imported)
        skipped = [a.id for a in found.automations if a.id not in ours]
        if legacy_files.listing(directory) == found.listing:
            return _renamed(
                ImportReport(directory, tuple(imported), tuple(skipped), warnings), clock.now()
            )
    return ImportReport(
        directory,
        tuple(imported),
        tuple(skipped),
        warnings,
        rename_problem="files in it kept changing while they were read; import it again",
    )


# --- writing ---------------------------------------------------------------------------------------


def _take_in(database: Database, found: Sequence[Automation]) -> list[str]:
    """Insert what SQL does not know, in one transaction, and return its ids."""
    for attempt in range(_TRIES):
        try:
            return database.write(lambda c: _insert_unknown(c, found, database.now(c)))
        except DBAPIError as error:
            # Another import committed the same ids while this one was waiting: look again.
            if classify(error) is not Failure.UNIQUE or attempt == _TRIES - 1:
                raise
    raise AssertionError("unreachable")


def _known(connection: Connection, found: Iterable[Automation]) -> set[str]:
    """Return which ids SQL has, or has any history of."""
    known: set[str] = set()
    ids = [a.id for a in found]
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        known.update(
            connection.scalars(select(automations.c.id).where(automations.c.id.in_(chunk)))
        )
        known.update(
            connection.scalars(
                select(automation_history.c.automation_id)
                .where(automation_history.c.automation_id.in_(chunk))
                .distinct()
            )
        )
    return known


def _insert_unknown(
    connection: Connection, found: Sequence[Automation], now: datetime
) -> list[str]:
    known = _known(connection, found)
    new = [a for a in found if a.id not in known]
    children.delete_orphans(connection, [a.id for a in new])
    for table, inserted in (
        (automations, [rows.parent(a) for a in new]),
        (automation_triggers, [row for a in new for row in rows.triggers(a)]),
        (automation_trigger_arms, [row for a in new for row in rows.arms(a, now)]),
        (automation_history, [rows.history("import", a, ACTOR, now) for a in new]),
    ):
        if inserted:
            connection.execute(insert(table), inserted)
    return [a.id for a in new]


# --- afterwards ------------------------------------------------------------------------------------


def _renamed(report: ImportReport, now: datetime) -> ImportReport:
    directory = report.directory
    if directory.name in ("", ".."):
        # It was called "." or "..", and only under its own name can it be renamed.
        directory = directory.resolve()
    if not directory.name:
        return replace(report, rename_problem="cannot be renamed: it is the root")
    stamp = f"{directory.name}.imported-{now:%Y%m%dT%H%M%SZ}"
    for number in range(1, 1000):
        backup = directory.with_name(f"{stamp}{f'-{number}' if number > 1 else ''}.bak")
        if os.path.lexists(backup):
            continue
        try:
            directory.rename(backup)
        except FileNotFoundError:
            return report
        except OSError as error:
            reason = f"cannot be renamed to {backup.name}: {error.strerror}"
            return replace(report, rename_problem=reason)
        return replace(report, backup=backup)
    return replace(report, rename_problem=f"there are 999 backups named {stamp} already")
