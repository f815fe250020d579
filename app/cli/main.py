"""The root of all commands: what there is, and how a command ends.

Exit codes: 0 done; 1 refused or failed; 2 the call, or a setting, is wrong; 3 no such thing; 4 somebody
else was faster; 5 the server or the database is away; 130 interrupted.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from app.cli.output import complain
from app.errors import (
    AlreadyExists,
    BellringerError,
    DatabaseUnavailable,
    ImportRefused,
    InvalidInput,
    NotFound,
    PluginInvalid,
    SchemaOutOfDate,
    SettingsInvalid,
    StaleRevision,
    WouldOverwrite,
)
from app.settings import Settings, load

_COMMANDS = {
    "up": "app.cli.up:up",
    "migrate": "app.cli.database:migrate",
    "import": "app.cli.database:import_",
    "scheduler": "app.cli.processes:scheduler",
    "worker": "app.cli.processes:worker",
    "automation": "app.cli.automations:automation",
    "run": "app.cli.runs:run",
    "cron": "app.cli.cron:cron",
    "plugin": "app.cli.plugins:plugin",
    "trigger": "app.cli.plugins:trigger",
    "token": "app.cli.tokens:token",
    "settings": "app.cli.settings:settings",
}

_EXIT_CODES: tuple[tuple[type[BellringerError], int], ...] = (
    (SettingsInvalid, 2),
    (InvalidInput, 1),
    (NotFound, 3),
    (AlreadyExists, 4),
    (WouldOverwrite, 4),
    (StaleRevision, 4),
    (DatabaseUnavailable, 5),
    (SchemaOutOfDate, 5),
)


class Commands(click.Group):
    """A group whose commands are imported when they are asked for, and whose errors end well."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which one meets them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of ours becomes a message and an exit code."""
        try:
            return super().invoke(ctx)
        except SettingsInvalid as error:
            complain("The settings are wrong:", *error.problems)
            sys.exit(2)
        except ImportRefused as error:
            complain(
                f"{error.directory} was not imported, and nothing was written:", *error.problems
            )
            sys.exit(1)
        except PluginInvalid as error:
            complain(f"{error.subject} breaks the rules:", *error.problems)
            sys.exit(1)
        except InvalidInput as error:
            complain(
                "That breaks the rules:",
                *(f"{v.pointer or '/'}: {v.detail}" for v in error.violations),
            )
            sys.exit(1)
        except BellringerError as error:
            complain(str(error))
            sys.exit(next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), 1))
        except KeyboardInterrupt:
            complain("interrupted")
            sys.exit(130)
        except BrokenPipeError:
            # Whoever read our output has seen enough; Python would complain again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except OSError as error:
            complain(f"{error.filename or 'the system'}: {error.strerror or error}")
            sys.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="bellringer", prog_name="bellringer")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Automations kept in SQL and rung on time."""
    # Python has no stream at all where the caller closed it.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    ctx.obj = _Lazy()


class _Lazy:
    """The settings, read when a command first needs them: ``cron`` and ``--help`` need none."""

    @property
    def settings(self) -> Settings:
        return load(os.environ)


def settings_of(ctx: click.Context) -> Settings:
    """Return the settings. Raises SettingsInvalid."""
    settings: Settings = ctx.obj.settings
    return settings
