"""A stand-in for ``ctx`` that keeps what it was told."""

from collections.abc import Sequence
from typing import Any

from bellringer import Connection, Integrations, Params, ParamValues, Signal, State


class KeepingLogger:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def info(self, message: object) -> None:
        self.lines.append(("info", str(message)))

    def warning(self, message: object) -> None:
        self.lines.append(("warning", str(message)))

    def error(self, message: object) -> None:
        self.lines.append(("error", str(message)))


class FakeContext:
    def __init__(self, params: ParamValues | None = None) -> None:
        self.params = params or Params().resolve({})
        self.signal = Signal()
        self.logger = KeepingLogger()
        self.failures: list[BaseException | str] = []
        self.emitted: list[list[Any]] = []

    @property
    def integrations(self) -> Integrations:
        raise LookupError("This context has no integrations.")

    @property
    def state(self) -> State:
        raise LookupError("This context has no state.")

    def get_config(self, key: str) -> str:
        raise LookupError(key)

    async def emit(self, events: Sequence[Any], connection: Connection | None = None) -> None:
        self.emitted.append(list(events))

    def fail(self, error: BaseException | str) -> None:
        self.failures.append(error)
