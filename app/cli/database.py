"""``bellringer migrate`` and ``bellringer import``: what a database needs before the service starts."""

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click
from rich.progress import Progress

from app.automations.legacy import ImportReport, import_directory
from app.cli.main import settings_of
from app.cli.output import complain, json_option, print_json
from app.clock import SystemClock
from app.db import Database, open_database
from app.db.migrating import current, head
from app.db.migrating import migrate as migrate_database
from app.errors import DatabaseUnavailable


@click.command()
@click.option("--no-import", is_flag=True, help="Leave the legacy directory automations/ alone.")
@json_option
@click.pass_context
def migrate(ctx: click.Context, no_import: bool, as_json: bool) -> None:
    """Bring the database to this release's schema, then import automations/ if it is there."""
    settings = settings_of(ctx)
    database = open_database(settings)
    before = _current_or_none(database)
    migrate_database(database)
    report = None if no_import else import_legacy(database, settings.automations_dir)
    after = current(database)
    if as_json:
        print_json({"from": before, "to": after, "import": report and _as_json(report)})
        return
    if after != before:
        click.echo(f"The database is at {after} now (it was at {before or 'no schema at all'}).")
    elif after == head():
        click.echo(f"The database is at {after} already.")
    else:
        click.echo(f"The database is at {after}, of a later release; it is left as it is.")
    if report is not None and (report.imported or report.skipped):
        tell(report)


@click.command("import")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Say what would be imported; write nothing.")
@json_option
@click.pass_context
def import_(ctx: click.Context, directory: Path, dry_run: bool, as_json: bool) -> None:
    """Import a DIRECTORY of TOML definitions, then rename it out of the way.

    An automation that the database has, or ever had, is skipped.
    """
    database = open_database(settings_of(ctx))
    report = import_legacy(database, directory, dry_run=dry_run)
    if as_json:
        print_json(_as_json(report))
    else:
        tell(report, dry_run=dry_run)


def import_legacy(database: Database, directory: Path, *, dry_run: bool = False) -> ImportReport:
    """Import ``directory``, showing progress on a terminal. Raises ImportRefused."""
    on_terminal = sys.stderr.isatty()
    bar: AbstractContextManager[Progress | None] = (
        Progress(transient=True) if on_terminal else nullcontext()
    )
    with bar as shown:
        if shown is None:
            return import_directory(database, directory, SystemClock(), dry_run=dry_run)
        task = shown.add_task(f"Reading {directory}", total=None)
        return import_directory(
            database,
            directory,
            SystemClock(),
            dry_run=dry_run,
            progress=lambda done, total: shown.update(task, completed=done, total=total),
        )


def tell(report: ImportReport, *, dry_run: bool = False) -> None:
    """Say what an import did."""
    if not (report.imported or report.skipped or report.rename_problem):
        click.echo(f"There is nothing to import in {report.directory}.")
        return
    done = "would be imported" if dry_run else "imported"
    click.echo(f"{report.directory}: {len(report.imported)} {done}{_listed(report.imported)}.")
    if report.skipped:
        click.echo(
            f"{len(report.skipped)} skipped, since the database has or had them"
            f"{_listed(report.skipped)}."
        )
    for warning in report.warnings:
        complain(f"warning: {warning}")
    if report.backup is not None:
        click.echo(f"The directory is now {report.backup}.")
    if report.rename_problem is not None:
        complain(
            f"warning: {report.directory} {report.rename_problem}",
            "What is imported stays imported; the next import skips it and tries again.",
        )


def _listed(ids: tuple[str, ...]) -> str:
    if not ids:
        return ""
    shown = ", ".join(ids[:10])
    return f" ({shown}{', …' if len(ids) > 10 else ''})"


def _as_json(report: ImportReport) -> dict[str, object]:
    return {
        "directory": str(report.directory),
        "imported": list(report.imported),
        "skipped": list(report.skipped),
        "warnings": list(report.warnings),
        "backup": str(report.backup) if report.backup else None,
        "rename_problem": report.rename_problem,
    }


def _current_or_none(database: Database) -> str | None:
    try:
        return current(database)
    except DatabaseUnavailable:
        # A SQLite file in a directory that migrate is about to make; a server that is away is told then.
        return None
