"""A stand-in for ``ctx`` that keeps what it was told."""

from collections.abc import Sequence
from typing import Any

from bellringer import ANYTHING, Connection, Integrations, Params, ParamValues, Signal


class KeepingLogger:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def info(self, message: object) -> None:
        self.lines.append(("info", str(message)))

    def warning(self, message: object) -> None:
        self.lines.append(("warning", str(message)))

    def error(self, message: object) -> None:
        self.lines.append(("error", str(message)))


class KeptState:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    async def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    async def set(self, key: str, value: Any, *, expected: Any = ANYTHING) -> bool:
        if expected is not ANYTHING and self.values.get(key) != expected:
            return False
        self.values[key] = value
        return True


class FakeContext:
    def __init__(self, params: ParamValues | None = None) -> None:
        self.params = params or Params().resolve({})
        self.signal = Signal()
        self.logger = KeepingLogger()
        self.state = KeptState()
        self.failures: list[BaseException | str] = []
        self.emitted: list[list[Any]] = []

    @property
    def integrations(self) -> Integrations:
        raise LookupError("This context has no integrations.")

    def get_config(self, key: str) -> str:
        raise LookupError(key)

    async def emit(self, events: Sequence[Any], connection: Connection | None = None) -> None:
        self.emitted.append(list(events))

    def fail(self, error: BaseException | str) -> None:
        self.failures.append(error)
