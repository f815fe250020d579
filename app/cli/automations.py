"""``bellringer automation …``: looks after definitions, over the API."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from app.cli.client import client_of, refuse, segment
from app.cli.documents import read_json, read_toml
from app.cli.output import complain, json_option, print_fields, print_json, print_table
from app.cli.runs import follow_run, print_run


@click.group()
def automation() -> None:
    """List, show, create, edit, delete and run automations."""


@automation.command("list")
@click.option("--repository", help="Only those of this repository, owner/repo.")
@click.option("--q", "text", help="Only those with this text in id or name.")
@click.option(
    "--trigger", type=click.Choice(["api", "schedule"]), help="Only those with such a trigger."
)
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@json_option
@click.pass_context
def list_(
    ctx: click.Context,
    repository: str | None,
    text: str | None,
    trigger: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """List automations by id."""
    found = list(
        client_of(ctx).pages("/automations", limit, repository=repository, q=text, trigger=trigger)
    )
    if as_json:
        print_json(found)
        return
    print_table(
        ("id", "name", "repository", "ref", "workflow", "triggers"),
        ((a["id"], a["name"], *_target(a), _triggers_in_short(a)) for a in found),
        empty="There are no automations. 'bellringer automation create' makes one.",
    )


@automation.command()
@click.argument("automation_id")
@json_option
@click.pass_context
def show(ctx: click.Context, automation_id: str, as_json: bool) -> None:
    """Show one automation, and when it is due next."""
    client = client_of(ctx)
    found = client.get(f"/automations/{segment(automation_id)}")
    if as_json:
        print_json(found)
        return
    _print_automation(found)
    schedules = client.get(f"/automations/{segment(automation_id)}/schedule", count=3)
    for schedule in schedules["data"]:
        upcoming = ", ".join(schedule["next"]) or "never"
        click.echo(f"\n{schedule['id']}: {schedule['description']}\n  next: {upcoming}")


@automation.command()
@click.argument("automation_id")
@click.option(
    "--file", "file", type=click.File("rb"), help="A JSON or TOML definition; - is standard input."
)
@click.option("--name", help="The name that people read; the id if left out.")
@click.option("--description", help="What it is for.")
@click.option("--repository", help="owner/repo")
@click.option("--ref", default="main", show_default=True, help="A branch, a tag or a commit.")
@click.option("--workflow", help="The workflow's file, or its name under .bellringer/workflows/.")
@click.option(
    "--schedule",
    "schedules",
    multiple=True,
    metavar="[ID=]EXPRESSION",
    help="A cron expression; may be repeated.",
)
@click.option(
    "--api/--no-api", default=True, show_default=True, help="Let it be started over the API."
)
@json_option
@click.pass_context
def create(
    ctx: click.Context,
    automation_id: str,
    file: Any,
    name: str | None,
    description: str | None,
    repository: str | None,
    ref: str,
    workflow: str | None,
    schedules: tuple[str, ...],
    api: bool,
    as_json: bool,
) -> None:
    """Create an automation from options, or from a file."""
    if file is not None:
        body = _read_definition(file.read())
    else:
        if not (repository and workflow):
            raise click.UsageError("give --repository and --workflow, or --file")
        body = {
            "name": name or automation_id,
            "target": {"repository": repository, "ref": ref, "workflow": workflow},
            "triggers": [
                *([{"type": "api", "id": "manual", "enabled": True}] if api else []),
                *(_schedule(text, number) for number, text in enumerate(schedules, start=1)),
            ],
        }
        if description is not None:
            body["description"] = description
    body["id"] = automation_id
    made = client_of(ctx).call("POST", "/automations", body=body).json()
    if as_json:
        print_json(made)
    else:
        _print_automation(made)


@automation.command()
@click.argument("automation_id")
@json_option
@click.pass_context
def edit(ctx: click.Context, automation_id: str, as_json: bool) -> None:
    """Open the definition in $EDITOR and save it, unless somebody changed it meanwhile."""
    client = client_of(ctx)
    path = f"/automations/{segment(automation_id)}"
    answer = client.call("GET", path)
    tag = answer.headers["ETag"]
    before = answer.json()
    del before["id"], before["revision"]
    text = json.dumps(before, indent=2, ensure_ascii=False) + "\n"
    while True:
        edited = _edited(text)
        if edited is None or _same(edited, before):
            if as_json:
                print_json(answer.json())
            else:
                click.echo("Nothing was changed.")
            return
        text = edited
        try:
            body = read_json(text)
        except ValueError as error:
            complain(f"That is not JSON: {error}")
        else:
            answer = client.call(
                "PUT", path, body=body, headers={"If-Match": tag}, accept=(404, 412, 422)
            )
            if answer.is_success:
                saved = answer.json()
                if as_json:
                    print_json(saved)
                else:
                    click.echo(f"Saved: {automation_id} is at revision {saved['revision']}.")
                return
            if answer.status_code != 422:
                click.echo(f"Your text is kept in {_keep(automation_id, text)}.", err=True)
                refuse(answer)
            for wrong in answer.json().get("errors", []):
                complain(f"{wrong['pointer'] or '/'}: {wrong['detail']}")
        if not sys.stdin.isatty() or not click.confirm("Edit it again?", default=True):
            click.echo(
                f"Nothing was saved. Your text is kept in {_keep(automation_id, text)}.", err=True
            )
            ctx.exit(1)


@automation.command()
@click.argument("automation_id")
@click.option(
    "--if-match",
    "revision",
    help="Delete only this revision, or * for any, even one stored invalid; what is read if left out.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_context
def delete(
    ctx: click.Context, automation_id: str, revision: str | None, yes: bool, as_json: bool
) -> None:
    """Delete an automation; its runs and its history stay."""
    if revision == "":
        raise click.BadParameter("a revision is not empty", param_hint="--if-match")
    client = client_of(ctx)
    path = f"/automations/{segment(automation_id)}"
    if revision is None:
        tag = client.call("GET", path).headers["ETag"]
    else:
        tag = "*" if revision == "*" else f'"{revision}"'
    if not yes:
        click.confirm(f"Delete {automation_id}?", abort=True)
    client.call("DELETE", path, headers={"If-Match": tag})
    if as_json:
        print_json({"id": automation_id, "deleted": True})
    else:
        click.echo(f"{automation_id} is deleted.")


@automation.command("run")
@click.argument("automation_id")
@click.option("--input", "text", help="JSON that the workflow is handed, or @FILE.")
@click.option("--idempotency-key", help="The same key answers the same run.")
@click.option("--follow", is_flag=True, help="Print the log until the run ends.")
@json_option
@click.pass_context
def run_(
    ctx: click.Context,
    automation_id: str,
    text: str | None,
    idempotency_key: str | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Start a run. With --follow the exit code is 0 only if it succeeds."""
    client = client_of(ctx)
    headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    body = {} if text is None else {"input": _json_input(text)}
    path = f"/automations/{segment(automation_id)}/runs"
    made = client.call("POST", path, body=body, headers=headers).json()
    if follow:
        ctx.exit(follow_run(client, made["id"], as_json=as_json))
    print_run(made, as_json=as_json)


def _read_definition(raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise click.BadParameter("the file is not UTF-8", param_hint="--file") from None
    try:
        body = read_json(text) if text.lstrip().startswith("{") else read_toml(text)
    except ValueError as error:
        raise click.BadParameter(f"neither JSON nor TOML: {error}", param_hint="--file") from None
    return {name: value for name, value in body.items() if name != "revision"}


def _schedule(text: str, number: int) -> dict[str, object]:
    named = re.match(r"([a-z0-9][a-z0-9_-]*)=", text)
    trigger_id = named[1] if named else ("schedule" if number == 1 else f"schedule-{number}")
    expression = text[named.end() :] if named else text
    return {"type": "schedule", "id": trigger_id, "enabled": True, "expression": expression}


def _json_input(text: str) -> object:
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(
                f"cannot read {text[1:]}: {error}", param_hint="--input"
            ) from None
    try:
        return read_json(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--input") from None


def _edited(text: str) -> str | None:
    try:
        return click.edit(text, extension=".json", require_save=False)
    except UnicodeDecodeError:
        raise click.ClickException("That is not UTF-8; nothing was saved.") from None


def _same(text: str, document: object) -> bool:
    try:
        return bool(read_json(text) == document)
    except ValueError:
        return False


def _keep(automation_id: str, text: str) -> Path:
    for number in range(1, 1000):
        path = Path(f"{automation_id}.{os.getpid()}-{number}.json")
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            return path.absolute()
        except FileExistsError:
            continue
    raise click.ClickException("Your text could not be kept.")


def _target(found: dict[str, Any]) -> tuple[str, str, str]:
    target = found["target"]
    return target["repository"], target["ref"], target["workflow"]


def _triggers_in_short(found: dict[str, Any]) -> str:
    return ", ".join(
        t.get("expression", t["type"]) + ("" if t["enabled"] else " (disabled)")
        for t in found["triggers"]
    )


def _print_automation(found: dict[str, Any]) -> None:
    repository, ref, workflow = _target(found)
    print_fields(
        [
            ("id", found["id"]),
            ("name", found["name"]),
            ("description", found["description"]),
            ("repository", repository),
            ("ref", ref),
            ("workflow", workflow),
            *(
                (
                    "trigger",
                    f"{t['type']} {t['id']}"
                    + (f" {t['expression']}" if "expression" in t else "")
                    + ("" if t["enabled"] else " (disabled)"),
                )
                for t in found["triggers"]
            ),
            ("revision", found["revision"]),
        ]
    )
