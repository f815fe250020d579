"""``bellringer settings``: every setting with the value in force; secrets are only said to be set."""

import click

from app.cli.main import settings_of
from app.cli.output import json_option, print_json, print_table
from app.settings import PREFIX, RUN_ENV_PREFIX, table


@click.command()
@json_option
@click.pass_context
def settings(ctx: click.Context, as_json: bool) -> None:
    """Show every setting, its value in force, and what it is for."""
    in_force = settings_of(ctx)
    shown = in_force.shown()
    # Their values are the operator's own and may be secret.
    run_env = [name for name, _ in in_force.run_env]
    if as_json:
        file = str(in_force.file) if in_force.file else None
        print_json({"file": file, "settings": shown, "run_env": run_env})
        return
    click.echo(f"Settings file: {in_force.file or 'none'}", err=True)
    rows = [(PREFIX + name.upper(), shown[name], about.doc) for name, about in table().items()]
    rows += [
        (f"{PREFIX}{RUN_ENV_PREFIX}{name}", "set (not shown)", f"Given to runs as {name}.")
        for name in run_env
    ]
    print_table(("setting", "value", "meaning"), rows, empty="")
