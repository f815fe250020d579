"""Authors' functions are called alike, whether async or plain; a plain one never blocks the loop."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bellringer import blocking, call
from bellringer.calling import is_async

LIMIT = 20
number: contextvars.ContextVar[int] = contextvars.ContextVar("number")


async def async_add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


def plain_add(a: int, b: int) -> int:
    return a + b


class AsyncObject:
    async def __call__(self, a: int, b: int) -> int:
        return a + b

    async def method(self, a: int, b: int) -> int:
        return a + b


FUNCTIONS: list[Callable[..., Any]] = [
    async_add,
    plain_add,
    AsyncObject(),
    AsyncObject().method,
    functools.partial(async_add),
    functools.partial(plain_add),
    lambda a, b: async_add(a, b),
    lambda a, b: a + b,
]


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_every_kind_of_function_is_called_and_awaited(fn: Callable[..., Any]) -> None:
    assert asyncio.run(call(fn, 2, 3)) == 5


def test_async_functions_are_told_from_plain_ones() -> None:
    assert [is_async(fn) for fn in FUNCTIONS] == [
        True,
        False,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_an_async_function_runs_in_the_loop_and_a_plain_one_in_a_daemon_thread() -> None:
    async def where() -> threading.Thread:
        return threading.current_thread()

    async def scenario() -> None:
        assert await call(where) is threading.current_thread()
        thread = await call(threading.current_thread)
        assert thread is not threading.current_thread()
        assert thread.daemon

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("k"), SystemExit(3)])
def test_an_error_of_a_plain_function_reaches_the_caller(error: BaseException) -> None:
    def fails() -> None:
        raise error

    async def scenario() -> BaseException | None:
        try:
            await call(fails)
        except BaseException as caught:
            return caught
        return None

    assert asyncio.run(scenario()) is error


def test_stop_iteration_becomes_an_error_instead_of_a_hang() -> None:
    async def scenario() -> None:
        with pytest.raises(RuntimeError, match="StopIteration") as caught:
            await asyncio.wait_for(call(next, iter([])), LIMIT)
        assert isinstance(caught.value.__cause__, StopIteration)

    asyncio.run(scenario())


def test_context_variables_are_those_of_the_caller_and_what_a_call_sets_stays_in_it() -> None:
    def plain() -> int:
        seen = number.get()
        number.set(0)
        return seen

    async def scenario() -> None:
        number.set(42)
        assert await call(plain) == 42
        assert number.get() == 42

    asyncio.run(scenario())


def test_many_plain_functions_that_hang_take_no_place_from_others() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        hanging = [asyncio.create_task(call(gate.wait, LIMIT)) for _ in range(100)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(call(plain_add, 1, 2), LIMIT) == 3
        assert not any(task.done() for task in hanging)
        gate.set()
        assert all(await asyncio.gather(*hanging))

    asyncio.run(scenario())


def test_canceling_a_call_abandons_a_plain_function() -> None:
    async def scenario() -> None:
        gate, ended = threading.Event(), threading.Event()

        def work() -> None:
            gate.wait(LIMIT)
            ended.set()

        task = asyncio.create_task(call(work))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        assert ended.wait(LIMIT)
        await asyncio.sleep(0)

    asyncio.run(scenario())


def test_a_plain_function_that_outlives_its_loop_harms_nobody() -> None:
    gate, errors = threading.Event(), []

    async def scenario() -> threading.Thread:
        before = set(threading.enumerate())
        task = asyncio.create_task(call(gate.wait, LIMIT))
        while not (started := set(threading.enumerate()) - before):
            await asyncio.sleep(0)
        task.cancel()
        return started.pop()

    before, threading.excepthook = threading.excepthook, errors.append
    try:
        thread = asyncio.run(scenario())
        gate.set()
        thread.join(LIMIT)
        assert not thread.is_alive()
    finally:
        threading.excepthook = before
    assert errors == []


# --- blocking --------------------------------------------------------------------------------------


def test_a_plain_function_waits_for_something_async_on_the_loop() -> None:
    async def scenario() -> None:
        loop_thread = threading.current_thread()

        async def here() -> bool:
            await asyncio.sleep(0)
            return threading.current_thread() is loop_thread

        assert await call(lambda: blocking(here())) is True

    asyncio.run(scenario())


def test_blocking_raises_what_it_waited_for_raises() -> None:
    async def fails() -> None:
        raise KeyError("gone")

    async def scenario() -> None:
        with pytest.raises(KeyError, match="gone"):
            await call(lambda: blocking(fails()))

    asyncio.run(scenario())


def test_blocking_in_an_event_loop_says_to_await() -> None:
    async def scenario() -> None:
        with pytest.raises(RuntimeError, match="use await"):
            blocking(async_add(1, 2))

    asyncio.run(scenario())


def test_blocking_where_there_is_no_loop_says_so() -> None:
    with pytest.raises(RuntimeError, match="no event loop here"):
        blocking(async_add(1, 2))
