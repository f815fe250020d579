"""Duties: they go on whatever happens, and say what hinders them once."""

import threading
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import capture_logs

from app.errors import DatabaseUnavailable
from app.worker.duty import Duty
from tests.support.waiting import until


@pytest.fixture
def start() -> Iterator[Callable[..., Duty]]:
    started: list[Duty] = []

    def begin(work: Callable[[], None], every: float = 0.01, **options) -> Duty:
        duty = Duty("test", work, every, **options)
        started.append(duty)
        duty.start()
        return duty

    yield begin
    for duty in started:
        duty.end()
        duty.join(5)
        assert not duty.is_alive()


def test_a_duty_is_done_again_and_again(start) -> None:
    turns: list[None] = []
    start(lambda: turns.append(None))
    until(lambda: len(turns) > 5)


def test_a_woken_duty_does_not_wait_for_its_turn(start) -> None:
    turns = threading.Semaphore(0)
    duty = start(turns.release, every=3600)
    assert turns.acquire(timeout=5)
    duty.wake()
    assert turns.acquire(timeout=5)
    assert not turns.acquire(blocking=False)


def test_a_database_that_is_away_is_said_once_and_that_it_is_back_too(start) -> None:
    failures: list[str] = []
    turns: list[None] = []

    def work() -> None:
        turns.append(None)
        if len(turns) in (2, 3):
            raise DatabaseUnavailable("cut")

    with capture_logs() as said:
        start(work, on_failure=failures.append)
        until(lambda: len(turns) > 5)
    assert failures == ["cut", "cut"]
    assert [entry["event"] for entry in said] == ["database-away", "database-back"]
    assert said[0]["reason"] == "cut"


def test_no_error_ends_a_duty(start) -> None:
    failures: list[str] = []
    turns: list[None] = []

    def work() -> None:
        turns.append(None)
        if len(turns) == 1:
            raise ZeroDivisionError

    with capture_logs() as said:
        start(work, on_failure=failures.append)
        until(lambda: len(turns) > 2)
    assert failures == ["the duty 'test' failed (ZeroDivisionError)"]
    assert [entry["event"] for entry in said] == ["duty-failed"]
