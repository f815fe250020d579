"""``bellringer up``: everything on one machine, under one supervisor."""

import errno
import os
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import click

from app.auth.tokens import TokenStore
from app.automations.store import AutomationStore
from app.cli import demo as demonstration
from app.cli.client import TOKEN_FILE
from app.cli.database import import_legacy, tell
from app.cli.main import settings_of
from app.cli.output import complain
from app.cli.supervisor import Program, Supervisor
from app.db import Database, open_database
from app.db.migrating import migrate
from app.settings import PREFIX, Settings, default_of


@click.command()
@click.option("--bind", help="Where to serve, host:port.")
@click.option(
    "--demo/--no-demo", default=False, help="On an empty database, make an automation to look at."
)
@click.option("--no-import", is_flag=True, help="Leave the directory automations/ alone.")
@click.pass_context
def up(ctx: click.Context, bind: str | None, demo: bool, no_import: bool) -> None:
    """Migrate, import automations/, then run web, scheduler and worker until told to stop."""
    if bind:
        os.environ[f"{PREFIX}BIND"] = bind
    settings = settings_of(ctx)
    _refuse_taken_ports(settings)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    database = open_database(settings)
    migrate(database)
    if not no_import:
        report = import_legacy(database, settings.automations_dir)
        if report.imported or report.skipped or report.rename_problem:
            tell(report)
    made_demo = demo and _make_demo(database, settings)
    token, is_new = _admin_token(database, settings)
    database.close()
    supervisor = Supervisor(_programs(settings), patience=settings.drain + 30)
    address = f"http://{settings.bind}"
    supervisor.when_ready(
        f"{address}/readyz", lambda: _welcome(settings, address, token, is_new, made_demo)
    )
    sys.exit(supervisor.run())


def _make_demo(database: Database, settings: Settings) -> bool:
    try:
        return demonstration.make(AutomationStore(database), settings.local_repositories)
    except (OSError, subprocess.SubprocessError) as error:
        complain(f"warning: the demo could not be made ({type(error).__name__}); is git there?")
        return False


def _programs(settings: Settings) -> list[Program]:
    metrics = settings.data_dir / "web-metrics"
    shutil.rmtree(metrics, ignore_errors=True)
    metrics.mkdir(parents=True)
    gunicorn = (
        *("-m", "gunicorn", "--config", "python:app.gunicorn", "--bind", settings.bind),
        *("--workers", str(settings.web_workers), "app.wsgi:app"),
    )
    web = Program("web", gunicorn, {"PROMETHEUS_MULTIPROC_DIR": str(metrics.absolute())})
    scheduler = Program("scheduler", ("-m", "app", "scheduler"))
    worker = Program("worker", ("-m", "app", "worker"))
    if settings.metrics_bind is not None:
        worker.environment = {f"{PREFIX}METRICS_BIND": _next_port(settings.metrics_bind)}
    # Stopped from the end: the web serves until nothing runs, so that a run can be canceled meanwhile.
    return [web, scheduler, worker]


def _next_port(bind: str) -> str:
    """Return where the worker serves its metrics: scheduler and worker can't both have ``bind``."""
    host, _, port = bind.rpartition(":")
    return f"{host}:{int(port) + 1}"


def _refuse_taken_ports(settings: Settings) -> None:
    """End the command if something listens already where one of the programs is to serve."""
    binds = {"BIND": settings.bind}
    if settings.metrics_bind is not None:
        binds["METRICS_BIND"] = settings.metrics_bind
        binds["METRICS_BIND, the worker's"] = _next_port(settings.metrics_bind)
    if len(set(binds.values())) < len(binds):
        complain(
            f"{PREFIX}BIND and {PREFIX}METRICS_BIND need ports of their own.",
            f"Under 'up' the scheduler serves its metrics at {settings.metrics_bind} and the worker "
            f"at {binds[list(binds)[-1]]}; the web serves at {settings.bind}.",
        )
        sys.exit(2)
    for bind in binds.values():
        _refuse_taken_port(bind)


def _refuse_taken_port(bind: str) -> None:
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            taken = (
                "Is it running already? " if getattr(error, "errno", 0) == errno.EADDRINUSE else ""
            )
            complain(
                f"Cannot serve at {bind}: {reason}.",
                f"{taken}{PREFIX}BIND or --bind names another address.",
            )
            sys.exit(1)


def _admin_token(database: Database, settings: Settings) -> tuple[str, bool]:
    """Return the admin token of this data dir, and whether it was made just now."""
    file = settings.data_dir / TOKEN_FILE
    tokens = TokenStore(database)
    if file.exists():
        token = file.read_text(encoding="ascii", errors="replace").strip()
        if tokens.verify(token) is not None:
            return token, False
    made = tokens.create(f"bellringer up on {socket.gethostname()}", "admin", created_by="up")
    _write_secret(file, made.token)
    return made.token, True


def _write_secret(file: Path, text: str) -> None:
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(text + "\n")
    beside.replace(file)


def _welcome(settings: Settings, address: str, token: str, is_new: bool, made_demo: bool) -> None:
    file = settings.data_dir / TOKEN_FILE
    shown = token if sys.stdout.isatty() and is_new else f"in the file {file}"
    command = "bellringer" if shutil.which("bellringer") else os.path.relpath(sys.argv[0])
    lines = [
        "",
        f"Bellringer serves at {address} (its API is described at {address}/docs).",
        f"Admin token: {shown}",
        "",
        "What next, in another terminal:",
    ]
    if settings.bind != default_of("bind"):
        lines += [f"  export {PREFIX}URL={address}"]
    if settings.data_dir != default_of("data_dir"):
        lines += [f"  export {PREFIX}DATA_DIR={settings.data_dir.absolute()}"]
    if made_demo:
        lines += [
            f"  {command} run list                        (the demo 'hello' runs at each full minute)",
            f"  {command} automation run hello --follow   (or start it now and watch it)",
        ]
    lines += [
        f"  {command} automation list",
        f"  {command} automation create nightly --repository owner/repo \\",
        "      --workflow ci/nightly.sh --schedule '0 3 * * *'",
        f'  curl -H "Authorization: Bearer $(cat {file})" {address}/api/v1/automations',
        "",
        f"Ctrl-C stops it; runs that are at work may end first, for {settings.drain:g} s at most.",
        "",
    ]
    click.echo("\n".join(lines))
