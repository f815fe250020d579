"""``bellringer cron``: what an expression means and when it is due; needs no server."""

from datetime import UTC, datetime

import click

from app import cron as expressions
from app.cli.output import complain, json_option, print_json
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
    instant: datetime | None = _instant(after) if after else SystemClock().now()
    upcoming: list[datetime] = []
    while len(upcoming) < count and instant is not None:
        instant = parsed.next(instant)
        if instant is not None:
            upcoming.append(instant)
    described = expressions.describe(parsed)
    if as_json:
        print_json(
            {
                "expression": parsed.source,
                "description": described,
                "next": [format_instant(i) for i in upcoming],
            }
        )
        return
    click.echo(described)
    for due in upcoming:
        click.echo(f"  {format_instant(due)}")
    if not upcoming:
        click.echo("  It never fires.")


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            "expected an instant as in 2026-12-01T00:00:00Z", param_hint="--after"
        ) from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
