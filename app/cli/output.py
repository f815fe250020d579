"""How commands speak and read: tables for people, JSON for programs, complaints on stderr."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
from rich.cells import cell_len, set_cell_size

F = TypeVar("F", bound=Callable[..., Any])

json_option: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs."
)


def complain(headline: str, *details: str) -> None:
    """Print what is wrong on standard error."""
    click.echo(f"bellringer: {headline}", err=True)
    for detail in details:
        click.echo(f"  - {detail}", err=True)


def print_json(value: object) -> None:
    """Print ``value`` as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Print rows under their headings, or the sentence ``empty`` if there are none.

    Where the output is no terminal, columns are separated by tabs and nothing is cut.
    """
    listed = [[_cell(value) for value in row] for row in rows]
    if not listed:
        click.echo(empty, err=True)
        return
    if not sys.stdout.isatty():
        for row in listed:
            click.echo("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))
        return
    # Not cut and not folded, whatever the width: what is shown can be copied.
    shown = [list(columns), *([_for_people(cell) for cell in row] for row in listed)]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    for number, row in enumerate(shown):
        padded = (set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True))
        click.secho("  ".join(padded).rstrip(), bold=number == 0)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print names and values under one another."""
    listed = [(name, _cell(value)) for name, value in fields]
    width = max(len(name) for name, _ in listed)
    for name, value in listed:
        click.echo(f"{name:<{width}}  {value}")


def instant(text: str | None, option: str) -> datetime | None:
    """Return the instant that an option names; without a zone it is in UTC."""
    if text is None:
        return None
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            "expected an instant as in 2027-01-01T00:00:00Z", param_hint=option
        ) from None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def _for_people(text: str) -> str:
    """Return an instant without the fraction of its second, anything else as it is."""
    return re.sub(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z$", r"\1Z", text)


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case True:
            return "yes"
        case False:
            return "no"
        case _:
            return str(value)
