"""``bellringer scheduler`` and ``bellringer worker``: the processes of which any number may run."""

import sys
from dataclasses import replace

import click

from app.cli.main import settings_of


@click.command()
@click.pass_context
def scheduler(ctx: click.Context) -> None:
    """Claim due occurrences and queue their runs, until told to stop. Any number may run."""
    from app.scheduling.service import serve

    sys.exit(serve(settings_of(ctx)))


@click.command()
@click.option("--concurrency", type=click.IntRange(1, 256), help="Runs carried out at a time.")
@click.option("--group", help="The group of this worker.")
@click.pass_context
def worker(ctx: click.Context, concurrency: int | None, group: str | None) -> None:
    """Carry out queued runs, until told to stop. Any number may run."""
    from app.worker.service import serve

    settings = settings_of(ctx)
    sys.exit(
        serve(
            replace(
                settings,
                worker_concurrency=concurrency or settings.worker_concurrency,
                worker_group=group or settings.worker_group,
            )
        )
    )
