"""When a worker may reap: after it has seen the database without a break for one whole lease."""

from datetime import timedelta

import pytest

from app.worker.sight import Sight
from tests.support.clocks import DrivenClock

LEASE = 30.0


@pytest.fixture
def clock() -> DrivenClock:
    return DrivenClock()


@pytest.fixture
def sight(clock: DrivenClock) -> Sight:
    return Sight(clock, LEASE)


def look_on(sight: Sight, clock: DrivenClock, seconds: int) -> None:
    """See the database each second."""
    for _ in range(seconds):
        clock.advance(1)
        sight.seen(clock.now())


def test_a_worker_that_has_just_begun_may_not_reap(sight: Sight, clock: DrivenClock) -> None:
    assert not sight.steady()
    sight.seen(clock.now())
    look_on(sight, clock, 29)
    assert not sight.steady()
    look_on(sight, clock, 1)
    assert sight.steady()


def test_a_failure_begins_the_wait_again(sight: Sight, clock: DrivenClock) -> None:
    sight.seen(clock.now())
    look_on(sight, clock, 60)
    sight.lost()
    assert not sight.steady()
    look_on(sight, clock, 30)
    assert not sight.steady()
    look_on(sight, clock, 1)
    assert sight.steady()


def test_a_sight_long_ago_is_none(sight: Sight, clock: DrivenClock) -> None:
    sight.seen(clock.now())
    look_on(sight, clock, 60)
    clock.advance(15)
    assert sight.steady()
    clock.advance(1)
    assert not sight.steady()


def test_a_process_that_stood_still_begins_again(sight: Sight, clock: DrivenClock) -> None:
    sight.seen(clock.now())
    look_on(sight, clock, 60)
    clock.advance(16)
    sight.seen(clock.now())
    assert not sight.steady()


@pytest.mark.parametrize("jump", [16, -16])
def test_a_clock_of_the_database_that_jumps_begins_the_wait_again(
    sight: Sight, clock: DrivenClock, jump: int
) -> None:
    sight.seen(clock.now())
    look_on(sight, clock, 60)
    clock.advance(1)
    sight.seen(clock.now() + timedelta(seconds=jump))
    assert not sight.steady()
