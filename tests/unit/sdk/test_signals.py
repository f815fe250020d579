"""The signal: once, for everybody, in any order of events, with nothing left behind."""

import asyncio
import threading

import pytest

from bellringer import Signal, sleep
from tests.support.virtual_time import VirtualLoop, run_virtual

LIMIT = 20


def listeners(signal: Signal) -> int:
    return len(signal._callbacks)


def test_it_is_set_once_and_for_good() -> None:
    signal = Signal()
    assert not signal.aborted
    signal.abort()
    signal.abort()
    assert signal.aborted


def test_callbacks_are_called_once_and_in_order() -> None:
    signal, called = Signal(), []
    for number in range(3):
        signal.add_callback(lambda number=number: called.append(number))
    signal.abort()
    signal.abort()
    assert called == [0, 1, 2]
    assert listeners(signal) == 0


def test_the_same_function_may_be_added_twice_and_taken_away_once() -> None:
    signal, called = Signal(), []

    def callback() -> None:
        called.append(1)

    remove = signal.add_callback(callback)
    signal.add_callback(callback)
    remove()
    remove()
    signal.abort()
    remove()
    assert called == [1]


def test_a_callback_added_after_the_abort_is_called_at_once() -> None:
    signal, called = Signal(), []
    signal.abort()
    remove = signal.add_callback(lambda: called.append(1))
    assert called == [1]
    remove()
    assert listeners(signal) == 0


def test_the_signal_reads_as_set_inside_a_callback() -> None:
    signal, seen = Signal(), []
    signal.add_callback(lambda: seen.append(signal.aborted))
    signal.abort()
    assert seen == [True]


def test_a_callback_may_add_and_remove_others() -> None:
    signal, called = Signal(), []
    signal.add_callback(lambda: signal.add_callback(lambda: called.append("inner")))
    signal.abort()
    assert called == ["inner"]


def test_a_callback_that_raises_is_logged_and_hinders_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    signal, called = Signal(), []
    signal.add_callback(lambda: 1 / 0)
    signal.add_callback(lambda: called.append(1))
    signal.abort()
    assert called == [1]
    assert "ZeroDivisionError" in caplog.text


def test_wait_returns_at_once_when_it_is_set_already() -> None:
    async def scenario() -> None:
        signal = Signal()
        signal.abort()
        await signal.wait()

    run_virtual(scenario())


def test_every_waiter_wakes_and_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        signal = Signal()
        waiters = [asyncio.create_task(signal.wait()) for _ in range(50)]
        await asyncio.sleep(0)
        assert listeners(signal) == 50
        signal.abort()
        await asyncio.gather(*waiters)
        assert listeners(signal) == 0

    run_virtual(scenario())


def test_a_canceled_wait_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        signal = Signal()
        waiter = asyncio.create_task(signal.wait())
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert listeners(signal) == 0
        signal.abort()

    run_virtual(scenario())


def test_it_wakes_waiters_in_loops_and_threads_from_another_thread() -> None:
    signal = Signal()
    woken: list[object] = []

    def in_a_loop() -> None:
        asyncio.run(asyncio.wait_for(signal.wait(), LIMIT))
        woken.append("loop")

    def in_a_thread() -> None:
        woken.append(signal.wait_blocking(LIMIT))

    threads = [threading.Thread(target=t) for t in (in_a_loop, in_a_thread) * 3]
    for thread in threads:
        thread.start()
    signal.abort()
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(map(str, woken)) == ["True"] * 3 + ["loop"] * 3
    assert listeners(signal) == 0


def test_many_threads_may_set_it_and_each_callback_runs_once() -> None:
    for _ in range(50):
        signal, called = Signal(), []
        start = threading.Barrier(5)

        def add(signal: Signal, called: list[int], start: threading.Barrier) -> None:
            start.wait(LIMIT)
            for _ in range(20):
                signal.add_callback(lambda: called.append(1))

        def abort(signal: Signal, called: list[int], start: threading.Barrier) -> None:
            start.wait(LIMIT)
            signal.abort()

        threads = [
            threading.Thread(target=t, args=(signal, called, start))
            for t in (add, add, add, abort, abort)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        assert len(called) == 60
        assert listeners(signal) == 0


def test_blocking_waits_end_at_their_time_and_leave_nothing_behind() -> None:
    signal = Signal()
    assert signal.wait_blocking(0.001) is False
    assert listeners(signal) == 0
    signal.abort()
    assert signal.wait_blocking() is True


def test_setting_it_after_a_loop_closed_in_a_wait_harms_nobody() -> None:
    signal = Signal()
    loop = asyncio.new_event_loop()
    task = loop.create_task(signal.wait())
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    signal.abort()
    assert signal.aborted
    # The task can never end now; asyncio would complain about it when it is collected.
    task._log_destroy_pending = False  # type: ignore[attr-defined]


# --- sleep -----------------------------------------------------------------------------------------


def test_sleep_lasts_as_long_as_it_was_asked_to() -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await sleep(3600, Signal())
        return loop.time() - began

    assert run_virtual(scenario()) == pytest.approx(3600)


def test_sleep_returns_at_the_abort() -> None:
    async def scenario() -> float:
        loop, signal = asyncio.get_running_loop(), Signal()
        loop.call_later(5, signal.abort)
        await sleep(3600, signal)
        return loop.time()

    assert run_virtual(scenario()) == pytest.approx(5)


def test_sleep_returns_at_once_if_the_abort_came_before() -> None:
    async def scenario() -> float:
        signal = Signal()
        signal.abort()
        await sleep(3600, signal)
        return asyncio.get_running_loop().time()

    assert run_virtual(scenario()) == 0


@pytest.mark.parametrize("seconds", [0, -1, 0.0])
def test_a_sleep_of_nothing_lets_others_run(seconds: float) -> None:
    async def scenario() -> list[str]:
        seen: list[str] = []
        asyncio.get_running_loop().call_soon(seen.append, "other")
        await sleep(seconds, Signal())
        return seen

    assert run_virtual(scenario()) == ["other"]


def test_a_thousand_sleeps_leave_no_listener_and_no_timer() -> None:
    async def scenario() -> None:
        signal, loop = Signal(), asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        for _ in range(1000):
            await sleep(1, signal)
        assert listeners(signal) == 0
        assert loop.timers == 0
        loop.call_soon(signal.abort)
        for _ in range(1000):
            await sleep(3600, signal)
        assert listeners(signal) == 0
        assert loop.timers == 0
        assert loop.time() == pytest.approx(1000)

    run_virtual(scenario())


def test_a_canceled_sleep_is_canceled_and_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        signal, loop = Signal(), asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        task = asyncio.create_task(sleep(3600, signal))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (listeners(signal), loop.timers) == (0, 0)

    run_virtual(scenario())


def test_a_sleep_and_an_abort_at_the_same_instant_raise_nothing() -> None:
    async def scenario() -> None:
        signal, loop = Signal(), asyncio.get_running_loop()
        loop.call_later(5, signal.abort)
        await asyncio.gather(*(sleep(5, signal) for _ in range(20)))
        assert listeners(signal) == 0

    run_virtual(scenario())


def test_an_endless_sleep_ends_at_the_abort() -> None:
    async def scenario() -> None:
        signal = Signal()
        threading.Timer(0.01, signal.abort).start()
        await asyncio.wait_for(sleep(float("inf"), signal), LIMIT)

    asyncio.run(scenario())
