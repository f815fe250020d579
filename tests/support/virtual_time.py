"""An event loop whose clock moves only when nothing else is left to do: an hour passes in no time."""

import asyncio
import selectors
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LIMIT = 20.0
"""Real seconds without anything to do after which a test is given up."""


class _Selector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Asked first: a thread that is over by now has left its answer where select finds it.
        at_work = any(t.name.startswith("bellringer ") for t in threading.enumerate())
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if at_work and timeout is not None:
            return super().select(0.01)
        if timeout is None:
            # No timer is set: only another thread can wake the loop.
            ready = super().select(LIMIT)
            if not ready:
                raise AssertionError("The loop waits for something that never comes.")
            return ready
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that jumps to its next timer instead of waiting for it.

    Time stands still while a plain function is at work in a thread of the SDK's.
    """

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    @property
    def timers(self) -> int:
        """How many timers are set."""
        return sum(not handle.cancelled() for handle in self._scheduled)  # type: ignore[attr-defined]


def run_virtual(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a loop of its own with a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
