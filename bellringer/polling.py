"""The two helpers that almost every trigger needs: a loop that polls, and a wait that stops at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from bellringer.calling import call, home_loop, in_loop
from bellringer.checking import is_number
from bellringer.context import Context
from bellringer.signals import Signal

Stop = Callable[[], Awaitable[None]]


async def sleep(seconds: float, signal: Signal) -> None:
    """Return after ``seconds``, or as soon as ``signal`` is set, also if that came before the call.

    An abort raises nothing: look at ``signal.aborted``. No listener and no timer stays behind.
    """
    if signal.aborted or seconds <= 0:
        await asyncio.sleep(0)
        return
    try:
        async with asyncio.timeout(seconds):
            await signal.wait()
    except TimeoutError:
        pass


def poll(
    ctx: Context,
    every: float,
    tick: Callable[[], object],
    on_error: Callable[[Any], object] | None = None,
) -> Stop:
    """Run ``tick`` now and again, ``every`` seconds after it last returned, until the trigger stops.

    Return the stop function, for ``start`` to return: it ends the loop and waits for the tick in
    progress. ``tick`` and ``on_error`` may each be async or plain.

    A tick that returns ``"again"`` is followed by the next without a wait. An error of a tick goes to
    ``on_error(error)``; without one it is logged as a warning; either way the loop waits and goes on.
    If ``on_error`` returns ``"fail"``, the tick's error is reported through ``ctx.fail``; if it raises,
    what it raised is; both end the loop. Once the trigger stops, no error is reported.

    Raises ValueError unless ``every`` is a finite number above 0.
    """
    if not (is_number(every) and every > 0):
        raise ValueError("poll: every is a finite number of seconds above 0.")
    loop = home_loop()
    stopping, ended = Signal(), Signal()
    unlink = ctx.signal.add_callback(stopping.abort)
    work = _Loop(ctx, every, tick, on_error, stopping)

    def at_end(task: asyncio.Task[None]) -> None:
        unlink()
        _tasks.discard(task)
        ended.abort()

    def begin() -> None:
        task = loop.create_task(work.run())
        _tasks.add(task)
        task.add_done_callback(at_end)

    if in_loop(loop):
        begin()
    else:
        loop.call_soon_threadsafe(begin)

    async def stop() -> None:
        stopping.abort()
        await ended.wait()

    return stop


_tasks: set[asyncio.Task[None]] = set()
"""Polls at work: an event loop keeps only weak references to its tasks."""


class _Loop:
    """What one ``poll`` does, until its own signal is set."""

    def __init__(
        self,
        ctx: Context,
        every: float,
        tick: Callable[[], object],
        on_error: Callable[[Any], object] | None,
        stopping: Signal,
    ) -> None:
        self._ctx = ctx
        self._every = every
        self._tick = tick
        self._on_error = on_error
        self._stopping = stopping

    async def run(self) -> None:
        while not self._stopping.aborted:
            outcome: object = None
            try:
                outcome = await _attempt(self._tick)
            except _Failed as failed:
                fatal = await self._fatal(failed.error)
                if fatal is not None:
                    self._ctx.fail(fatal)
                    return
            # Even "again" lets the loop breathe: a tick may never have awaited anything.
            await sleep(0 if outcome == "again" else self._every, self._stopping)

    async def _fatal(self, error: BaseException) -> BaseException | None:
        """Return the error to report and end with, or None if the loop goes on, or ends in silence."""
        fatal: BaseException | None = None
        if self._has_stopped():
            return None
        if self._on_error is None:
            self._ctx.logger.warning(f"A tick failed: {type(error).__name__}: {error}")
            return None
        try:
            if await _attempt(self._on_error, error) == "fail":
                fatal = error
        except _Failed as failed:
            fatal = failed.error
        # The stop may have come while on_error was at work.
        return None if self._has_stopped() else fatal

    def _has_stopped(self) -> bool:
        return self._stopping.aborted


class _Failed(Exception):
    """An author's function raised ``error``."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _attempt(fn: Callable[..., object], *args: object) -> object:
    """Call ``fn``; whatever it raises by itself becomes _Failed, so that no poll ends unseen."""
    try:
        return await call(fn, *args)
    except (Exception, SystemExit) as error:
        raise _Failed(error) from error
    except asyncio.CancelledError as error:
        # Ours only if this very task is being canceled; else the function awaited something canceled.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise _Failed(error) from error
