"""``bellringer cron``: what an expression means and when it is due; needs no server."""

from datetime import datetime

import click

from app import cron as expressions
from app.cli.output import complain, instant, json_option, print_json
from app.clock import SystemClock, format_instant
from app.errors import InvalidExpression


@click.command()
@click.argument("expression")
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True)
@click.option(
    "--after", help="The instant to count from, as in 2026-12-01T00:00:00Z; now if left out."
)
@json_option
@click.pass_context
def cron(ctx: click.Context, expression: str, count: int, after: str | None, as_json: bool) -> None:
    """Say in words what EXPRESSION means, and when it is due next (UTC)."""
    try:
        parsed = expressions.parse(expression)
    except InvalidExpression as error:
        complain(error.detail)
        ctx.exit(1)
    due = instant(after, "--after") or SystemClock().now()
    upcoming: list[datetime] = []
    while len(upcoming) < count and (later := parsed.next(due)):
        upcoming.append(due := later)
    described = expressions.describe(parsed)
    if as_json:
        print_json(
            {
                "expression": parsed.source,
                "description": described,
                "next": [format_instant(each) for each in upcoming],
            }
        )
        return
    click.echo(described)
    for each in upcoming:
        click.echo(f"  {format_instant(each)}")
    if not upcoming:
        click.echo("  It never fires.")
