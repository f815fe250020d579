"""``bellringer settings``: every setting with the value in force; secrets are only said to be set."""

import click

from app.cli.main import settings_of
from app.cli.output import json_option, print_json, print_table
from app.settings import PREFIX, table


@click.command()
@json_option
@click.pass_context
def settings(ctx: click.Context, as_json: bool) -> None:
    """Show every setting, its value in force, and what it is for."""
    in_force = settings_of(ctx)
    shown = in_force.shown()
    if as_json:
        print_json({"file": str(in_force.file) if in_force.file else None, "settings": shown})
        return
    click.echo(f"Settings file: {in_force.file or 'none'}", err=True)
    print_table(
        ("setting", "value", "meaning"),
        (
            (
                PREFIX + name.upper(),
                f"{shown[name]}" if shown[name] is not None else None,
                about.doc,
            )
            for name, about in table().items()
        ),
        empty="",
    )
