"""``bellringer plugin`` and ``bellringer trigger``: what authors of plugins need; no server, no database."""

from pathlib import Path

import click

from app.cli.output import json_option, print_json
from app.plugins import authoring, building

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def plugin() -> None:
    """Write, check and package plugins."""


@plugin.command("new")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write into; acme-shop for acme/shop if left out.",
)
def new_plugin(name: str, directory: Path | None) -> None:
    """Write a plugin NAME, as in acme/shop: a package that can be tested and built as it is."""
    files = authoring.new_plugin(name, directory)
    _list(files)
    click.echo(f"Next: cd {files[0].parent} && bellringer trigger new orders/new")


@plugin.command()
@click.argument("directory", type=_FOLDER, default=Path())
@click.option(
    "--load-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=building.LOAD_LIMIT,
    show_default=True,
    help="Seconds that one file may take to load.",
)
@json_option
def build(directory: Path, load_limit: float, as_json: bool) -> None:
    """Check the plugin in DIRECTORY (here, if left out) and write its manifest, bellringer.json."""
    built = building.build(directory, load_limit)
    for warning in built.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        print_json(built.manifest.document())
        return
    for found in built.manifest.triggers:
        click.echo(f"{found.name}  {found.label}")
    click.echo(f"{built.path}: {len(built.manifest.triggers)} trigger(s).")


@click.group()
def trigger() -> None:
    """Write event triggers."""


@trigger.command("new")
@click.argument("path")
@click.option(
    "--directory",
    type=_FOLDER,
    default=Path(),
    help="The plugin's folder, or one inside it; here, if left out.",
)
def new_trigger(path: str, directory: Path) -> None:
    """Write a trigger at PATH under triggers/, as in orders/new, with a test and an icon."""
    _list(authoring.new_trigger(path, directory))
    click.echo("Next: python -m pytest && bellringer plugin build")


def _list(files: list[Path]) -> None:
    for path in files:
        click.echo(str(path))
