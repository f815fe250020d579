"""Calling authors' functions, async and plain alike: a plain one runs in a thread of its own.

A thread for each call, and no pool: a function that hangs takes no place from others, and since the thread
is a daemon it does not keep the process from ending.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

_home: contextvars.ContextVar[asyncio.AbstractEventLoop] = contextvars.ContextVar("bellringer_home")


async def call(fn: Callable[..., Any], *args: object) -> Any:
    """Call ``fn`` and return what it returns: in this loop if it is async, else in a thread.

    Context variables are those of the caller. An awaitable that a plain function returns is awaited
    here. Canceling the call abandons a plain function; nothing can interrupt it.
    """
    result = fn(*args) if is_async(fn) else await _in_thread(fn, *args)
    return await result if inspect.isawaitable(result) else result


def is_async(fn: Callable[..., Any]) -> bool:
    """Tell whether calling ``fn`` makes a coroutine; also for partials, methods and callable objects."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def blocking(awaitable: Awaitable[T]) -> T:
    """Wait, in a plain function, for something async: ``blocking(ctx.emit(rows))``.

    It runs on the loop of the trigger, while this thread waits. Raises RuntimeError in an event loop,
    where one writes ``await``, and in a thread that Bellringer did not start.
    """
    if _running_loop() is not None:
        _discard(awaitable)
        raise RuntimeError("blocking() is for plain functions; in an async one, use await.")
    try:
        loop = home_loop()
    except RuntimeError:
        _discard(awaitable)
        raise

    async def awaited() -> T:
        return await awaitable

    return asyncio.run_coroutine_threadsafe(awaited(), loop).result()


def home_loop() -> asyncio.AbstractEventLoop:
    """Return the running loop, else the one from which ``call`` started this thread.

    Raises RuntimeError where there is neither.
    """
    loop = _running_loop() or _home.get(None)
    if loop is None:
        raise RuntimeError(
            "There is no event loop here: this works in a function that Bellringer calls, "
            "and in threads that inherit its context."
        )
    return loop


def in_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether ``loop`` is the one that runs this code."""
    return _running_loop() is loop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _discard(awaitable: object) -> None:
    if inspect.iscoroutine(awaitable):
        awaitable.close()


async def _in_thread(fn: Callable[..., Any], *args: object) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()
    context.run(_home.set, loop)

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(fn, *args)
        except StopIteration as stop:
            # A future refuses this one, and then its waiter would wait for ever.
            error = RuntimeError(f"{_name(fn)} raised StopIteration")
            error.__cause__ = stop
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            # The loop closed meanwhile: nobody is left to tell.
            pass

    threading.Thread(target=work, name=f"bellringer {_name(fn)}", daemon=True).start()
    return await done


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", type(fn).__qualname__)
