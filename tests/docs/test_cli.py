"""docs/cli.md lists every command there is, and none that there is not."""

import re
from pathlib import Path

import click

from app.cli.main import main

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def commands(group: click.Group, path: str) -> set[str]:
    found: set[str] = set()
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        full = f"{path} {name}"
        found |= commands(command, full) if isinstance(command, click.Group) else {full}
    return found


def test_every_command_is_documented() -> None:
    documented = set(
        re.findall(r"^\| `(bellringer [a-z ]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    )
    assert documented == commands(main, "bellringer")


def test_every_command_and_option_explains_itself() -> None:
    def unexplained(command: click.Command, path: str) -> list[str]:
        missing = [] if command.help else [path]
        missing += [
            f"{path} {option.opts[-1]}"
            for option in command.params
            if isinstance(option, click.Option) and not option.help and not option.show_default
        ]
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                missing += unexplained(inner, f"{path} {name}")
        return missing

    assert unexplained(main, "bellringer") == []
