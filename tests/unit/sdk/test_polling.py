"""``poll``, rule by rule, on a clock that costs nothing; plain functions and threads on the real one."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellringer import blocking, call, poll
from tests.support.contexts import FakeContext
from tests.support.virtual_time import VirtualLoop, run_virtual

LIMIT = 20


def now() -> float:
    return asyncio.get_running_loop().time()


async def finish(ctx: FakeContext, stop: Callable[[], Awaitable[None]]) -> None:
    ctx.signal.abort()
    await asyncio.wait_for(stop(), LIMIT)
    assert len(ctx.signal._callbacks) == 0


def polled(
    results: list[Any], on_error: Any = None, *, takes: float = 0, until: float = 100
) -> tuple[list[float], FakeContext]:
    """Poll every 10 s with ticks that return, or raise, ``results`` in turn; return when each began."""
    ctx, began = FakeContext(), []

    async def tick() -> Any:
        began.append(now())
        result = results[min(len(began), len(results)) - 1]
        if takes:
            await asyncio.sleep(takes)
        if isinstance(result, BaseException):
            raise result
        return result

    async def scenario() -> None:
        stop = poll(ctx, every=10, tick=tick, on_error=on_error)
        await asyncio.sleep(until)
        await finish(ctx, stop)

    run_virtual(scenario())
    return began, ctx


def test_the_first_tick_is_at_once_and_others_follow_after_the_wait() -> None:
    began, _ = polled([None], until=35)
    assert began == pytest.approx([0, 10, 20, 30])


def test_the_wait_counts_from_the_end_of_a_tick() -> None:
    began, _ = polled([None], takes=5, until=40)
    assert began == pytest.approx([0, 15, 30])


def test_again_skips_the_wait() -> None:
    began, _ = polled(["again", "again", None, "again", None], until=15)
    assert began == pytest.approx([0, 0, 0, 10, 10])


@pytest.mark.parametrize("result", [None, True, 1, "Again", "fail", [1]])
def test_nothing_else_that_a_tick_returns_skips_the_wait(result: object) -> None:
    began, ctx = polled([result], until=15)
    assert began == pytest.approx([0, 10])
    assert ctx.failures == []


def test_a_tick_that_always_says_again_lets_others_run_and_can_be_stopped() -> None:
    ctx, ticks = FakeContext(), []

    async def scenario() -> None:
        stop = poll(ctx, every=10, tick=lambda_async(lambda: ticks.append(1) or "again"))
        for _ in range(50):
            await asyncio.sleep(0)
        await finish(ctx, stop)

    run_virtual(scenario())
    assert len(ticks) > 5


def lambda_async(fn: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    async def wrapped() -> Any:
        return fn()

    return wrapped


def test_ticks_never_overlap() -> None:
    ctx, active, most = FakeContext(), 0, 0

    async def tick() -> str:
        nonlocal active, most
        active += 1
        most = max(most, active)
        await asyncio.sleep(25)
        active -= 1
        return "again"

    async def scenario() -> None:
        stop = poll(ctx, every=10, tick=tick)
        await asyncio.sleep(100)
        await finish(ctx, stop)

    run_virtual(scenario())
    assert most == 1


# --- errors ----------------------------------------------------------------------------------------


def test_a_failed_tick_is_a_warning_and_the_loop_waits_and_goes_on() -> None:
    began, ctx = polled([ValueError("away"), None], until=15)
    assert began == pytest.approx([0, 10])
    assert ctx.logger.lines == [("warning", "A tick failed: ValueError: away")]
    assert ctx.failures == []


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), asyncio.CancelledError(), TimeoutError()]
)
def test_on_error_is_told_of_whatever_a_tick_raises(error: BaseException) -> None:
    told: list[BaseException] = []
    began, ctx = polled([error, None], told.append, until=15)
    assert told == [error]
    assert began == pytest.approx([0, 10])
    assert (ctx.logger.lines, ctx.failures) == ([], [])


def test_fail_reports_the_error_of_the_tick_and_ends_the_loop() -> None:
    error = ValueError("wrong type")
    began, ctx = polled([error], lambda _: "fail")
    assert ctx.failures == [error]
    assert began == [0]


@pytest.mark.parametrize("raised", [KeyError("from on_error"), SystemExit(2)])
def test_raising_in_on_error_reports_that_error_and_ends_the_loop(raised: BaseException) -> None:
    def on_error(_: BaseException) -> None:
        raise raised

    began, ctx = polled([ValueError("from tick")], on_error)
    assert ctx.failures == [raised]
    assert began == [0]


@pytest.mark.parametrize("answer", [None, True, "again", "FAIL"])
def test_any_other_answer_of_on_error_goes_on_after_the_wait(answer: object) -> None:
    began, ctx = polled([ValueError("x")], lambda _: answer, until=25)
    assert began == pytest.approx([0, 10, 20])
    assert ctx.failures == []


def test_an_async_on_error_is_awaited() -> None:
    async def on_error(_: BaseException) -> str:
        await asyncio.sleep(1)
        return "fail"

    _, ctx = polled([error := ValueError("x")], on_error)
    assert ctx.failures == [error]


def test_a_slow_plain_on_error_is_waited_for() -> None:
    def on_error(_: BaseException) -> None:
        threading.Event().wait(0.2)
        told.append(1)

    told: list[int] = []
    began, _ = polled([ValueError("x"), None], on_error, until=15)
    assert told == [1]
    assert began == pytest.approx([0, 10])


# --- stopping --------------------------------------------------------------------------------------


def test_stopping_waits_for_the_tick_in_progress() -> None:
    ctx, ended = FakeContext(), []

    async def tick() -> None:
        await asyncio.sleep(7)
        ended.append(now())

    async def scenario() -> float:
        stop = poll(ctx, every=10, tick=tick)
        await asyncio.sleep(1)
        await finish(ctx, stop)
        return now()

    assert run_virtual(scenario()) == pytest.approx(7)
    assert ended == pytest.approx([7])


def test_stopping_during_the_wait_is_immediate() -> None:
    async def scenario() -> float:
        ctx = FakeContext()
        stop = poll(ctx, every=3600, tick=lambda_async(lambda: None))
        await asyncio.sleep(1)
        await finish(ctx, stop)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        assert loop.timers == 0
        return now()

    assert run_virtual(scenario()) == pytest.approx(1)


def test_a_stop_that_came_first_means_no_tick() -> None:
    ticks: list[int] = []

    async def scenario() -> None:
        ctx = FakeContext()
        ctx.signal.abort()
        await finish(ctx, poll(ctx, every=1, tick=lambda_async(lambda: ticks.append(1))))

    run_virtual(scenario())
    assert ticks == []


def test_the_stop_function_stops_by_itself_and_may_be_called_twice() -> None:
    async def scenario() -> None:
        ctx, ticks = FakeContext(), []
        stop = poll(ctx, every=1, tick=lambda_async(lambda: ticks.append(1)))
        await asyncio.sleep(2.5)
        await stop()
        await stop()
        await asyncio.sleep(10)
        assert len(ticks) == 3
        assert not ctx.signal.aborted
        assert len(ctx.signal._callbacks) == 0

    run_virtual(scenario())


@pytest.mark.parametrize("handler", [None, lambda _: "fail"])
def test_an_error_after_the_stop_is_reported_to_nobody(handler: Any) -> None:
    async def scenario() -> FakeContext:
        ctx = FakeContext()

        async def tick() -> None:
            await asyncio.sleep(5)
            raise ValueError("the connection is closing")

        stop = poll(ctx, every=10, tick=tick, on_error=handler)
        await asyncio.sleep(1)
        await finish(ctx, stop)
        return ctx

    ctx = run_virtual(scenario())
    assert (ctx.failures, ctx.logger.lines) == ([], [])


@pytest.mark.parametrize("ends_in", ["fail", KeyError("late")])
def test_an_error_on_which_on_error_is_still_at_work_at_the_stop_is_not_reported(
    ends_in: Any,
) -> None:
    async def on_error(_: BaseException) -> Any:
        await asyncio.sleep(5)
        if isinstance(ends_in, BaseException):
            raise ends_in
        return ends_in

    async def scenario() -> FakeContext:
        ctx = FakeContext()
        stop = poll(ctx, every=10, tick=lambda_async(lambda: 1 / 0), on_error=on_error)
        await asyncio.sleep(1)
        await finish(ctx, stop)
        return ctx

    assert run_virtual(scenario()).failures == []


def test_stop_returns_also_after_the_loop_ended_by_fail() -> None:
    async def scenario() -> None:
        ctx = FakeContext()
        stop = poll(ctx, every=1, tick=lambda_async(lambda: 1 / 0), on_error=lambda_fail)
        await asyncio.sleep(5)
        assert len(ctx.failures) == 1
        await finish(ctx, stop)

    run_virtual(scenario())


async def lambda_fail(_: BaseException) -> str:
    return "fail"


def test_a_poll_whose_stop_function_was_dropped_goes_on() -> None:
    async def scenario() -> None:
        ctx, ticks = FakeContext(), []
        poll(ctx, every=1, tick=lambda_async(lambda: ticks.append(1)))
        for _ in range(5):
            await asyncio.sleep(1)
            gc.collect()
        assert len(ticks) >= 5
        ctx.signal.abort()
        await asyncio.sleep(1)

    run_virtual(scenario())


@given(st.lists(st.sampled_from(["again", "wait", "raise"]), max_size=30), st.integers(0, 200))
def test_whatever_ticks_do_they_begin_when_the_rules_say(script: list[str], until: int) -> None:
    expected, clock = [], 0.0
    for step in [*script, "wait"] * (until // 10 + 2):
        if clock > until + 0.5:
            break
        expected.append(clock)
        clock += 1 + (0 if step == "again" else 10)
    results = [ValueError(step) if step == "raise" else step for step in script]
    began: list[float] = []
    ctx = FakeContext()

    async def tick() -> Any:
        result = [*results, "wait"][len(began) % (len(results) + 1)]
        began.append(now())
        await asyncio.sleep(1)
        if isinstance(result, ValueError):
            raise result
        return result

    async def scenario() -> None:
        stop = poll(ctx, every=10, tick=tick)
        await asyncio.sleep(until + 0.5)
        await finish(ctx, stop)

    run_virtual(scenario())
    assert began == pytest.approx(expected)


# --- plain functions and threads -------------------------------------------------------------------


def test_a_plain_tick_runs_off_the_loop_and_stopping_waits_for_it() -> None:
    async def scenario() -> None:
        ctx, gate, began, ended = FakeContext(), threading.Event(), threading.Event(), []

        def tick() -> None:
            began.set()
            gate.wait(LIMIT)
            ended.append(threading.current_thread())

        stop = poll(ctx, every=3600, tick=tick)
        assert await call(began.wait, LIMIT)
        ctx.signal.abort()
        stopping = asyncio.ensure_future(stop())
        await asyncio.sleep(0)
        assert not stopping.done()
        gate.set()
        await asyncio.wait_for(stopping, LIMIT)
        assert ended != [threading.current_thread()]

    asyncio.run(scenario())


def test_a_plain_start_and_tick_poll_on_the_loop_of_their_trigger() -> None:
    async def scenario() -> None:
        ctx, seen = FakeContext(), threading.Event()

        def tick() -> None:
            blocking(ctx.emit([{"id": 1}]))
            seen.set()

        def start() -> Callable[[], Awaitable[None]]:
            return poll(ctx, every=3600, tick=tick)

        stop = await call(start)
        assert await call(seen.wait, LIMIT)
        ctx.signal.abort()
        await asyncio.wait_for(call(stop), LIMIT)
        assert ctx.emitted == [[{"id": 1}]]

    asyncio.run(scenario())


def test_poll_without_any_loop_says_so() -> None:
    ctx = FakeContext()
    with pytest.raises(RuntimeError, match="no event loop here"):
        poll(ctx, every=1, tick=lambda: None)
    assert len(ctx.signal._callbacks) == 0


@pytest.mark.parametrize("every", [0, -1, float("nan"), float("inf"), True, "5", None, 10**400])
def test_every_is_a_finite_number_above_zero(every: Any) -> None:
    with pytest.raises(ValueError, match="poll: every is"):
        poll(FakeContext(), every=every, tick=lambda: None)
