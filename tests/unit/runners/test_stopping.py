"""Requests to stop, and locks that let themselves be stopped waiting for."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.runners.locks import Busy, held
from app.runners.stopping import Stop, Stopped, StopReason

CLOCK = SystemClock()


@pytest.mark.parametrize(
    ("asked", "stands"),
    [
        (["canceled"], "canceled"),
        (["canceled", "shutdown"], "canceled"),
        (["shutdown", "canceled"], "shutdown"),
        (["canceled", "lost"], "lost"),
        (["lost", "canceled"], "lost"),
    ],
)
def test_the_first_reason_stands_unless_the_run_is_lost(
    asked: list[StopReason], stands: str
) -> None:
    stop = Stop()
    assert stop.reason is None
    for reason in asked:
        stop.request(reason)
    assert stop.reason == stands


def test_a_request_wakes_who_sleeps_and_who_comes_later() -> None:
    stop, early, late = Stop(), threading.Event(), threading.Event()
    with stop.waking(early):
        assert not early.is_set()
        stop.request("canceled")
        assert early.is_set()
    early.clear()
    stop.request("lost")
    assert not early.is_set()
    with stop.waking(late):
        assert late.is_set()


def test_a_lock_excludes_and_may_be_shared(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with held(lock, clock=CLOCK, shared=True) as one, held(lock, clock=CLOCK, shared=True) as two:
        assert one != two
        with pytest.raises(Busy):
            held(lock, clock=CLOCK, limit=0.1).__enter__()
    with held(lock, clock=CLOCK), pytest.raises(Busy), held(lock, clock=CLOCK, shared=True):
        pass


def test_waiting_for_a_lock_can_be_stopped(tmp_path: Path) -> None:
    stop = Stop()
    with held(tmp_path / "lock", clock=CLOCK):
        timer = threading.Timer(0.1, stop.request, ["canceled"])
        timer.start()
        with pytest.raises(Stopped), held(tmp_path / "lock", clock=CLOCK, limit=60, stop=stop):
            pass
        timer.join()


def test_a_lock_lives_on_in_a_child_that_keeps_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with held(lock, clock=CLOCK) as descriptor:
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(descriptor,)
        )
    with pytest.raises(Busy), held(lock, clock=CLOCK):
        pass
    child.communicate(b"\n", timeout=20)
    with held(lock, clock=CLOCK):
        pass
