"""The claiming thread: nothing that was handed on is lost, whatever the database does."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from app.errors import DatabaseUnavailable
from app.scheduling.claiming import WAITING_LIMIT, Claiming, ClaimingOptions
from app.scheduling.metrics import SchedulerMetrics
from app.scheduling.values import Claimed, Due, Fired
from tests.support.waiting import until

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Ledger:
    """Claims everything, unless ``fails`` raises for it."""

    def __init__(self) -> None:
        self.claims: list[list[Due]] = []
        self.sweeps: list[Due] = []
        self.fails: Callable[[Sequence[Due]], None] = lambda due: None
        self.answer: Callable[[Sequence[Due]], Claimed] = lambda due: Claimed(
            NOON, tuple(Fired(d.expression, d.due_at, 1) for d in due)
        )

    def claim(self, due: Sequence[Due], node: str) -> Claimed:
        self.fails(due)
        self.claims.append(list(due))
        return self.answer(due)

    def sweep(self, due: Sequence[Due]) -> int:
        self.sweeps += due
        return 0

    def claimed(self) -> list[tuple[str, datetime]]:
        return [(d.expression, d.due_at) for claim in self.claims for d in claim]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def claiming(ledger: Ledger):
    metrics = SchedulerMetrics()
    thread = Claiming(ledger, "node", metrics, ClaimingOptions(sweeps=(0.01,)))  # type: ignore[arg-type]
    thread.start()
    yield thread
    ledger.fails = lambda due: None
    thread.stop(10)
    assert not thread._thread.is_alive()


def test_what_is_handed_on_together_is_claimed_together(claiming, ledger) -> None:
    claiming.hand_on([Due("a", NOON), Due("b", NOON)])
    until(lambda: ledger.claims)
    assert ledger.claims == [[Due("a", NOON), Due("b", NOON)]]
    until(lambda: set(ledger.sweeps) == {Due("a", NOON), Due("b", NOON)})


def test_instants_that_come_while_a_claim_is_slow_are_all_claimed_in_order(
    claiming, ledger
) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def slow(due: Sequence[Due]) -> None:
        busy.set()
        assert go_on.wait(10)

    ledger.fails = slow
    claiming.hand_on([Due("a", NOON)])
    assert busy.wait(10)
    for minutes in (2, 1, 2, 3):
        claiming.hand_on([Due("a", NOON + minutes * MINUTE)])
    go_on.set()
    until(lambda: len(ledger.claims) == 4)
    assert [at for _, at in ledger.claimed()] == [NOON + n * MINUTE for n in range(4)]
    assert all(len(claim) == 1 for claim in ledger.claims)


def test_what_waits_is_bounded(claiming, ledger) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def slow(due: Sequence[Due]) -> None:
        busy.set()
        assert go_on.wait(10)

    ledger.fails = slow
    claiming.hand_on([Due("a", NOON)])
    assert busy.wait(10)
    for minutes in range(1, WAITING_LIMIT + 50):
        claiming.hand_on([Due("a", NOON + minutes * MINUTE)])
    assert len(claiming._waiting["a"]) == WAITING_LIMIT
    go_on.set()
    until(lambda: ("a", NOON + (WAITING_LIMIT + 49) * MINUTE) in ledger.claimed())


def test_while_the_database_is_away_the_latest_is_kept_and_looks_as_far_back(
    claiming, ledger
) -> None:
    tries = []

    def away(due: Sequence[Due]) -> None:
        tries.append(due)
        raise DatabaseUnavailable("gone")

    ledger.fails = away
    claiming.hand_on([Due("a", NOON, None), Due("b", NOON, NOON)])
    until(lambda: tries)
    claiming.hand_on([Due("a", NOON + MINUTE, NOON), Due("b", NOON + MINUTE, NOON - MINUTE)])
    until(lambda: len(tries) > 2)
    assert "gone" in str(claiming.problem)
    ledger.fails = lambda due: None
    until(lambda: ledger.claims)
    assert ledger.claims[0] == [
        Due("a", NOON + MINUTE, None),
        Due("b", NOON + MINUTE, NOON - MINUTE),
    ]
    until(lambda: claiming.problem is None)


def test_what_the_database_refuses_keeps_nothing_else_from_firing(claiming, ledger) -> None:
    def refuses(due: Sequence[Due]) -> None:
        if any(d.expression == "bad" for d in due):
            raise RuntimeError("no")

    ledger.fails = refuses
    claiming.hand_on([Due("a", NOON), Due("bad", NOON), Due("b", NOON)])
    until(lambda: len(ledger.claims) == 2)
    assert ledger.claimed() == [("a", NOON), ("b", NOON)]
    assert "'bad'" in claiming.problem


def test_what_is_early_is_claimed_when_it_is_due(claiming, ledger) -> None:
    ahead = Due("a", NOON + timedelta(seconds=0.2))
    began = time.monotonic()
    ledger.answer = lambda due: (
        Claimed(NOON, early=tuple(due)) if len(ledger.claims) == 1 else Claimed(NOON)
    )
    claiming.hand_on([ahead])
    until(lambda: len(ledger.claims) == 2)
    assert time.monotonic() - began >= 0.2
    assert ledger.claims == [[ahead], [ahead]]
    assert claiming._metrics.registry.get_sample_value("bellringer_clock_ahead_total") == 1


def test_what_waits_is_claimed_before_the_end(ledger) -> None:
    thread = Claiming(ledger, "node", SchedulerMetrics())  # type: ignore[arg-type]
    thread.hand_on([Due("a", NOON)])
    thread.start()
    thread.stop(10)
    assert ledger.claimed() == [("a", NOON)]


def test_it_ends_while_the_database_is_away(ledger) -> None:
    def away(due: Sequence[Due]) -> None:
        raise DatabaseUnavailable("gone")

    ledger.fails = away
    thread = Claiming(ledger, "node", SchedulerMetrics())  # type: ignore[arg-type]
    thread.start()
    thread.hand_on([Due("a", NOON)])
    until(lambda: thread.problem)
    thread.stop(10)
    assert not thread._thread.is_alive()
