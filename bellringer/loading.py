"""Loading an author's module and finding the one definition in it; also as the work of a child process.

The child is started with ``bellringer.loading.COMMAND`` and knows only the SDK, so that nothing of the
service stands in the way of a plugin's own packages.
"""

import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from bellringer.definitions import TriggerDefinition
from bellringer.errors import PluginError
from bellringer.integrations import IntegrationDefinition

COMMAND = (
    "import os, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from bellringer.loading import report; report(*sys.argv[1:]); "
    # Threads that the module started have no say in when the child ends.
    "os._exit(0)"
)
"""Program for ``python -P -c``; its arguments: SDK's directory, root, module, noun, file to write."""

Definition = TriggerDefinition | IntegrationDefinition

_KINDS: dict[str, type[Definition]] = {
    "trigger": TriggerDefinition,
    "integration": IntegrationDefinition,
}


class NotLoaded(PluginError):
    """A module does not load, or does not hold exactly one definition; the message says why."""


def load(module: str, noun: str) -> tuple[str, Definition]:
    """Import ``module`` and return its one definition of a ``noun`` with the name it has there.

    Raises NotLoaded, and whatever the module raises.
    """
    loaded = importlib.import_module(module)
    found: dict[int, tuple[str, Definition]] = {}
    for name, value in vars(loaded).items():
        # What a file imports from another is that other file's.
        if isinstance(value, _KINDS[noun]) and value.module == module:
            found.setdefault(id(value), (name, value))
    if len(found) != 1:
        names = ", ".join(name for name, _ in found.values())
        held = f"defines {len(found)}: {names}" if found else "defines none"
        raise NotLoaded(f"A file holds exactly one {noun}; this one {held}.")
    return next(iter(found.values()))


def report(root: str, module: str, noun: str, target: str) -> None:
    """Load a module with ``root`` on the path and write what came of it to the file ``target``.

    It is JSON: ``{"entry", "warnings", "document"}``, or ``{"error"}`` with a message for the author.
    """
    sys.path.insert(0, root)
    result: dict[str, Any]
    try:
        name, definition = load(module, noun)
        result = {
            "entry": f"{module}:{name}",
            "warnings": list(getattr(definition.shape, "warnings", ())),
            "document": definition.shape.document(),
        }
    except PluginError as error:
        result = {"error": str(error)}
    except Exception as error:
        result = {"error": f"It does not load: {_told(error, Path(root))}"}
    Path(target).write_text(json.dumps(result), "utf-8")


def _told(error: Exception, root: Path) -> str:
    """Return an error as a line, with the last place in the author's own files."""
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return told
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(root):
            return f"{told} ({path.relative_to(root)}, line {frame.lineno})"
    return told
