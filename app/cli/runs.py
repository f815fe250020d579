"""``bellringer run …``: looks at the ledger, over the API."""

import json
import time
from typing import Any

import click

from app.cli.client import Client, client_of, segment
from app.cli.output import complain, instant, json_option, print_fields, print_json, print_table
from app.clock import format_instant

_STATES = ("queued", "running", "succeeded", "failed", "canceled", "missed")
_QUIET_SECONDS = 1200.0
"""How long following goes on without one event before it gives up."""
_AGAIN_SECONDS = 1.0
"""How long to wait before coming again after a stream that ended, as the server asks."""


@click.group()
def run() -> None:
    """List, show, follow, cancel and repeat runs."""


@run.command("list")
@click.option("--automation", help="Only runs of this automation.")
@click.option(
    "--state",
    "states",
    type=click.Choice(_STATES),
    multiple=True,
    help="Only runs in this state; may be repeated.",
)
@click.option("--trigger", help="Only runs that this trigger started.")
@click.option("--since", help="Only runs queued at or after this instant.")
@click.option("--until", help="Only runs queued before this instant.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@json_option
@click.pass_context
def list_(
    ctx: click.Context,
    automation: str | None,
    states: tuple[str, ...],
    trigger: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List runs, newest first."""
    found = list(
        client_of(ctx).pages(
            "/runs",
            limit,
            automation=automation,
            state=",".join(states) or None,
            trigger=trigger,
            since=_sent(since, "--since"),
            until=_sent(until, "--until"),
        )
    )
    if as_json:
        print_json(found)
        return
    print_table(
        ("id", "state", "automation", "trigger", "queued", "finished", "reason"),
        (
            (
                r["id"],
                r["state"],
                r["automation"]["id"],
                r["trigger"]["id"],
                r["queued_at"],
                r["finished_at"],
                r["reason"] and r["reason"]["code"],
            )
            for r in found
        ),
        empty="There are no runs.",
    )


@run.command()
@click.argument("run_id", type=click.IntRange(1))
@json_option
@click.pass_context
def show(ctx: click.Context, run_id: int, as_json: bool) -> None:
    """Show one run."""
    print_run(client_of(ctx).get(f"/runs/{run_id}"), as_json=as_json)


@run.command()
@click.argument("run_id", type=click.IntRange(1))
@click.option("--attempt", type=click.IntRange(1), help="Only the lines of this attempt.")
@click.option("--follow", is_flag=True, help="Go on until the run ends.")
@json_option
@click.pass_context
def log(ctx: click.Context, run_id: int, attempt: int | None, follow: bool, as_json: bool) -> None:
    """Print a run's log. With --follow the exit code is 0 only if the run succeeds."""
    client = client_of(ctx)
    if follow:
        ctx.exit(follow_run(client, run_id, as_json=as_json))
    params = {"attempt": attempt}
    path = f"/runs/{run_id}/log"
    answer = client.call("GET", path, params=params, headers={"Accept": "text/plain"})
    if as_json:
        print_json(answer.text.splitlines())
    else:
        click.echo(answer.text, nl=False)


@run.command()
@click.argument("run_id", type=click.IntRange(1))
@json_option
@click.pass_context
def cancel(ctx: click.Context, run_id: int, as_json: bool) -> None:
    """Cancel a run that is queued or running."""
    asked = client_of(ctx).call("POST", f"/runs/{run_id}/cancel").json()
    print_run(asked, as_json=as_json)
    if asked["state"] == "running" and not as_json:
        click.echo("Its worker is told to end it; that takes seconds.", err=True)


@run.command()
@click.argument("run_id", type=click.IntRange(1))
@click.option("--follow", is_flag=True, help="Print the log until the new run ends.")
@json_option
@click.pass_context
def rerun(ctx: click.Context, run_id: int, follow: bool, as_json: bool) -> None:
    """Start a new run of the same target with the same events."""
    client = client_of(ctx)
    made = client.call("POST", f"/runs/{run_id}/rerun").json()
    if follow:
        ctx.exit(follow_run(client, made["id"], as_json=as_json))
    print_run(made, as_json=as_json)


def follow_run(client: Client, run_id: int, *, as_json: bool) -> int:
    """Print the log as it comes; return 0 if the run succeeds, else 1."""
    if not as_json and client.get(f"/runs/{run_id}")["state"] == "queued":
        click.echo(f"Run {run_id} is queued; its log begins when a worker takes it.", err=True)
    last: str | None = None
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET_SECONDS:
        for number, name, data in client.events(f"/runs/{segment(run_id)}/log", last):
            last = number or last
            if name == "end":
                found = client.get(f"/runs/{run_id}")
                if as_json:
                    print_json(found)
                else:
                    _print_end(found)
                return 0 if found["state"] == "succeeded" else 1
            quiet_since = time.monotonic()
            if not as_json:
                _print_line(data)
        time.sleep(_AGAIN_SECONDS)
    complain(
        f"Run {run_id} has said nothing for long; 'bellringer run log {run_id} --follow' goes on."
    )
    return 1


def print_run(found: dict[str, Any], *, as_json: bool) -> None:
    """Print one run."""
    if as_json:
        print_json(found)
        return
    target, reason = found["target"], found["reason"]
    print_fields(
        [
            ("id", found["id"]),
            ("state", found["state"]),
            ("automation", found["automation"]["id"]),
            ("trigger", f"{found['trigger']['type']} {found['trigger']['id']}"),
            ("target", f"{target['repository']} {target['ref']} {target['workflow']}"),
            ("commit", found["commit"]),
            ("due", found["due_at"]),
            ("queued", found["queued_at"]),
            ("started", found["started_at"]),
            ("finished", found["finished_at"]),
            ("attempt", f"{found['attempt']} of {found['max_attempts']}"),
            ("worker", found["worker"]),
            ("rerun of", found["rerun_of"]),
            ("events", found["events"]),
            ("exit code", found["exit_code"]),
            ("reason", reason and f"{reason['code']}: {reason['detail']}"),
        ]
    )


def _sent(text: str | None, option: str) -> str | None:
    given = instant(text, option)
    return None if given is None else format_instant(given)


def _print_line(data: str) -> None:
    try:
        line = json.loads(data)
    except json.JSONDecodeError:
        click.echo(data)
        return
    click.echo(line["text"], err=line["stream"] != "stdout")


def _print_end(found: dict[str, Any]) -> None:
    reason = found["reason"]
    click.echo(
        f"Run {found['id']} {found['state']}" + (f": {reason['detail']}" if reason else "."),
        err=True,
    )
