"""The signal that tells a trigger to stop: set once, from any thread, heard in every thread and loop."""

import asyncio
import logging
import threading
from collections.abc import Callable

_log = logging.getLogger("bellringer")


class Signal:
    """Set once and for good. Every way to wait takes its listener away when it returns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._aborted = False
        self._callbacks: dict[object, Callable[[], object]] = {}

    @property
    def aborted(self) -> bool:
        """Whether the signal is set."""
        return self._aborted

    def abort(self) -> None:
        """Set the signal, then call each callback, in the order they were added, in this thread.

        Bellringer does this when it stops the trigger. A callback that raises is logged and hinders
        no other. Setting it again does nothing.
        """
        with self._lock:
            self._aborted = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            _run(callback)

    def add_callback(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Have ``callback`` called once when the signal is set; at once if it is set already.

        It runs in the thread that sets the signal, so it must be plain and quick. Return a function
        that takes it away again, and may be called at any time, from any thread, any number of times.
        """
        key = object()
        with self._lock:
            waits = not self._aborted
            if waits:
                self._callbacks[key] = callback
        if not waits:
            _run(callback)

        def remove() -> None:
            with self._lock:
                self._callbacks.pop(key, None)

        return remove

    async def wait(self) -> None:
        """Return when the signal is set; at once if it is set already."""
        if self._aborted:
            return
        loop = asyncio.get_running_loop()
        heard = loop.create_future()

        def settle() -> None:
            if not heard.done():
                heard.set_result(None)

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:
                # The loop closed with us in it: nobody is left to wake.
                pass

        remove = self.add_callback(wake)
        try:
            await heard
        finally:
            remove()

    def wait_blocking(self, timeout: float | None = None) -> bool:
        """Block this thread until the signal is set, ``timeout`` seconds at most; return whether it is.

        For plain functions, which run in a thread of their own. In an event loop, use ``wait``.
        """
        heard = threading.Event()
        remove = self.add_callback(heard.set)
        try:
            heard.wait(timeout)
        finally:
            remove()
        return self._aborted


def _run(callback: Callable[[], object]) -> None:
    try:
        callback()
    except Exception:
        _log.exception("A callback of a signal raised.")
