"""What a workflow is and what it sees: ``@workflow`` and the value that it is called with."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from bellringer.checking import alone_faults, callable_faults, function_name
from bellringer.context import Connection, Logger
from bellringer.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its payload ``data``, and ``meta``, which says where it came from."""

    data: Any
    meta: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, item: Any) -> "Event":
        """Return the event that an item handed to ``emit`` stands for."""
        return item if isinstance(item, Event) else cls(item)


@dataclass(frozen=True, slots=True)
class TriggerMeta:
    """How many events came, and which attempt this is: 1, then 2 …"""

    size: int
    attempt: int


@dataclass(frozen=True, slots=True)
class TriggerData:
    """What a workflow is called with.

    ``connection`` is the object that the trigger handed to ``emit``, if it handed one and the
    workflow runs in its process.
    """

    data: tuple[Event, ...]
    meta: TriggerMeta
    logger: Logger
    connection: Connection | None = None

    @classmethod
    def of(
        cls,
        items: Iterable[Any],
        *,
        logger: Logger,
        attempt: int = 1,
        connection: Connection | None = None,
    ) -> "TriggerData":
        """Return what the items of one ``emit`` become in the workflow."""
        data = tuple(Event.of(item) for item in items)
        return cls(data, TriggerMeta(len(data), attempt), logger, connection)

    @property
    def input(self) -> Any:
        """The event's payload if there is exactly one, else the list of payloads."""
        payloads = [event.data for event in self.data]
        return payloads[0] if len(payloads) == 1 else payloads


@dataclass(frozen=True, slots=True, eq=False)
class WorkflowDefinition:
    """A function that Bellringer calls with a TriggerData; calling the definition calls it.

    ``module`` is the name of the module that defines it.
    """

    run: Callable[[TriggerData], Any]
    module: str

    @property
    def function(self) -> Callable[[TriggerData], Any]:
        """The decorated function."""
        return self.run

    def __call__(self, trigger: TriggerData) -> Any:
        """Return what the function returns; if it is async, something to await."""
        return self.run(trigger)


def workflow(run: Callable[[TriggerData], Any]) -> WorkflowDefinition:
    """Declare the workflow of a file: a function, async or plain, that takes ``trigger``.

    One to a file. Raises DefinitionError.
    """
    home = sys._getframe(1).f_globals
    faults = callable_faults("run", run, "trigger")
    faults = faults or alone_faults(run, home, WorkflowDefinition, "workflow")
    if faults:
        raise DefinitionError(f"workflow {function_name(run)}", faults)
    return WorkflowDefinition(run, home.get("__name__", ""))
