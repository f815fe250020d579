"""What a trigger is given: ``ctx``, its parts, and the connection that it may hand to a workflow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from bellringer.calling import call
from bellringer.params import ParamValues
from bellringer.signals import Signal


class Logger(Protocol):
    """Lines for people, tagged with the trigger and its kind and kept with the instance."""

    def info(self, message: object) -> None:
        """Note what happened."""

    def warning(self, message: object) -> None:
        """Note what somebody may want to look at."""

    def error(self, message: object) -> None:
        """Note what went wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """An open integration: its ``client``, its ``variant``, and ``raw``, the variant's own client."""

    client: Any
    variant: str
    raw: Any


class Integrations(Protocol):
    """The integrations that the trigger was granted, each opened once for the life of an instance."""

    async def get(self, integration_id: str | None) -> Any:
        """Return the client of an integration. Raises IntegrationError."""

    async def connection(self, integration_id: str | None) -> Opened:
        """Return the client with its variant and the variant's own client. Raises IntegrationError."""


class _Anything:
    """The default of ``expected``: whatever is stored."""


ANYTHING = _Anything()


class State(Protocol):
    """A small mapping of this trigger that survives restarts: a cursor, a last id. Values are JSON."""

    async def get(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``, or ``default`` if it was never set."""

    async def set(self, key: str, value: Any, *, expected: Any = ANYTHING) -> bool:
        """Store a value, and return True.

        With ``expected``, only if that is what is stored now (None: nothing is); else change nothing
        and return False.
        """


class Connection:
    """What a source lets a workflow do with a batch; it is ``trigger.connection`` there.

    ``commit()`` marks the batch processed, ``move_to_dlq(error)`` parks it, ``lag()`` returns how many
    wait behind it or None; all three are required and may be async or plain. ``raw`` is whatever the
    workflow may want besides, such as a transaction. Nothing calls ``commit`` unless the workflow does.
    """

    def __init__(
        self,
        commit: Callable[[], object],
        move_to_dlq: Callable[[Any], object],
        lag: Callable[[], object],
        raw: Any = None,
    ) -> None:
        """Raise TypeError if one of the three is no function."""
        for name, fn in (("commit", commit), ("move_to_dlq", move_to_dlq), ("lag", lag)):
            if not callable(fn):
                raise TypeError(f"Connection: {name} is a function, async or plain.")
        self._commit = commit
        self._move_to_dlq = move_to_dlq
        self._lag = lag
        self.raw = raw

    async def commit(self) -> None:
        """Mark this batch processed."""
        await call(self._commit)

    async def move_to_dlq(self, error: object = None) -> None:
        """Park this batch somewhere else; ``error`` says why."""
        await call(self._move_to_dlq, error)

    async def lag(self) -> int | None:
        """Return how many wait behind this batch, or None if nobody knows."""
        waiting: int | None = await call(self._lag)
        return waiting


class Context(Protocol):
    """``ctx``: what one instance of a trigger may use. Each instance has its own."""

    @property
    def params(self) -> ParamValues:
        """The settings, defaulted and checked: ``ctx.params.table``."""

    @property
    def integrations(self) -> Integrations:
        """The integrations that the trigger was granted."""

    @property
    def logger(self) -> Logger:
        """Where the trigger writes lines for people."""

    @property
    def signal(self) -> Signal:
        """Set when Bellringer stops the trigger, before the stop function is called."""

    @property
    def state(self) -> State:
        """What the trigger remembers across restarts."""

    def get_config(self, key: str) -> str | int | float | bool:
        """Return an app config value, by its key or by ``cfg:KEY``.

        Without ``permissions["appconfig"]`` only keys that the trigger's secret params name.
        Raises ConfigError, which names the key and never a value.
        """

    async def emit(self, events: Sequence[Any], connection: Connection | None = None) -> None:
        """Run the workflow once with ``events``, one item each; return when the run has succeeded.

        An item is the event's payload, JSON, or an ``Event`` with a payload and ``meta``. At most
        4 MiB in all. An empty list is a run without events. Two calls in flight are two runs.

        Raises RunFailed when the run failed, after the last attempt; TriggerStopping and
        WorkflowNotLoaded without running anything.
        """

    def fail(self, error: BaseException | str) -> None:
        """Report that the trigger's own loop can't go on: the instance stops and is started again.

        May be called from any thread. A failed run is no such failure.
        """
