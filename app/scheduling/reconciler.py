"""Keeps one job per enabled expression, says that the node is alive, and notices clocks that jump.

All of it on one thread that waits on the monotonic clock, which no jump touches.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from app import cron
from app.clock import Clock
from app.cron import Expression
from app.errors import DatabaseUnavailable, InvalidExpression
from app.nodes.registry import NodeRegistry
from app.scheduling.expressions import EnabledExpressions
from app.scheduling.metrics import SchedulerMetrics
from app.scheduling.values import Due

log = structlog.get_logger()

_INSTANT = timedelta(microseconds=1)
_STEP = timedelta(seconds=1)
_SLOW = timedelta(seconds=2)
_SHOWN_INVALID = 5
_HANGS_AFTER = 180.0
"""Seconds. Every statement has a limit, and a round has but few."""


class Jobs(Protocol):
    """What the reconciler asks of the scheduler; a job is named by its expression."""

    def add(self, expression: str, parsed: Expression, since: datetime) -> None:
        """Fire ``expression`` from its first instant after ``since``."""

    def remove(self, expression: str) -> None:
        """Fire it no more."""

    def wakeup(self) -> None:
        """Look at the clock now."""


class Reconciler:
    """Compares jobs with the database, every ``interval`` seconds.

    ``hand_on`` takes what was due before this node began, ``hindrance`` tells what hinders claims.
    """

    def __init__(
        self,
        expressions: EnabledExpressions,
        jobs: Jobs,
        hand_on: Callable[[Sequence[Due]], None],
        nodes: NodeRegistry,
        node: str,
        hindrance: Callable[[], str | None],
        metrics: SchedulerMetrics,
        clock: Clock,
        *,
        interval: float,
        heartbeat: float,
    ) -> None:
        self.away: str | None = None
        """Why the last read failed, or None."""
        self._expressions = expressions
        self._jobs = jobs
        self._hand_on = hand_on
        self._nodes = nodes
        self._node = node
        self._hindrance = hindrance
        self._metrics = metrics
        self._clock = clock
        self._interval = interval
        self._heartbeat = heartbeat
        self._known: dict[str, Expression] = {}
        self._since: dict[str, datetime] = {}
        self._invalid: dict[str, str] = {}
        self._read_at: datetime | None = None
        self._wall = clock.now()
        self._slow = False
        self._beaten = float("-inf")
        self._went_round = clock.monotonic()
        self._said: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        """Begin, with a first reading at once."""
        self._thread.start()

    def stop(self, within: float) -> None:
        """End within ``within`` seconds, and take the node's row away."""
        self._stopping.set()
        self._thread.join(within)
        try:
            self._nodes.remove(self._node)
        except DatabaseUnavailable as error:
            log.warning("node-not-removed", reason=error.reason)

    def fault(self) -> str | None:
        """Return that the thread has ended or hangs, or None."""
        if not self._thread.is_alive():
            return "the reconciling thread has ended"
        silent = self._clock.monotonic() - self._went_round
        return f"nothing was reconciled for {silent:.0f} s" if silent > _HANGS_AFTER else None

    def hindrance(self) -> str | None:
        """Return why nothing fires just now, or None."""
        away = f"The enabled expressions cannot be read: {self.away}" if self.away else None
        return " ".join(filter(None, (away, self._hindrance()))) or None

    def problem(self) -> str | None:
        """Return all that hinders this node or that it can't fire, in a sentence each."""
        return " ".join(filter(None, (self.hindrance(), self._invalid_ones()))) or None

    # --- the thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            for step in (self._notice_step, self._jobs.wakeup, self.reconcile, self._beat):
                try:
                    step()
                except Exception:
                    log.exception("reconciling-failed")
            self._went_round = self._clock.monotonic()
            if self._stopping.wait(self._interval):
                return

    def reconcile(self) -> None:
        """Read the enabled expressions, add and remove jobs; if it fails the jobs stay as they are."""
        try:
            read_at, enabled = self._expressions.read()
            added = enabled - self._known.keys() - self._invalid.keys()
            armed = self._armed_meanwhile(added)
        except DatabaseUnavailable as error:
            if self.away is None:
                log.warning("expressions-unreadable", reason=error.reason)
            self.away = error.reason
            self._metrics.read_failures.inc()
            return
        self.away = None
        self._remove(self._known.keys() - enabled)
        for gone in self._invalid.keys() - enabled:
            del self._invalid[gone]
        for expression in sorted(added):
            self._add(expression, armed.get(expression), read_at)
        if self._read_at is None:
            self._look_back(read_at)
        else:
            self._make_up_for_a_slow_clock(self._read_at, read_at)
        self._read_at = read_at
        self._metrics.expressions.set(len(self._known))
        self._metrics.invalid.set(len(self._invalid))

    def _armed_meanwhile(self, added: Iterable[str]) -> dict[str, datetime]:
        """Find definitions whose write was open for so long that the read before did not see them."""
        if self._read_at is None or not added:
            return {}
        return self._expressions.recently_armed(self._read_at)

    def _add(self, expression: str, armed: datetime | None, read_at: datetime) -> None:
        try:
            parsed = cron.parse(expression)
        except InvalidExpression as error:
            self._invalid[expression] = error.detail
            log.error("expression-invalid", expression=expression, detail=error.detail)
            return
        since = self._read_at or read_at
        if armed is not None:
            since = min(since, armed - _INSTANT)
        self._jobs.add(expression, parsed, since)
        self._known[expression], self._since[expression] = parsed, since

    def _remove(self, expressions: Iterable[str]) -> None:
        for expression in list(expressions):
            self._jobs.remove(expression)
            del self._known[expression], self._since[expression]

    def _look_back(self, now: datetime) -> None:
        """As the node starts, have what was due last claimed, and with it found what was missed."""
        due = [
            Due(expression, last)
            for expression, parsed in self._known.items()
            if (last := parsed.previous(now + _INSTANT)) is not None
        ]
        if due:
            self._hand_on(due)

    def _make_up_for_a_slow_clock(self, before: datetime, now: datetime) -> None:
        """Hand on what is due by the database's clock, if ours would come to it too late."""
        behind = now - self._clock.now()
        slow, self._slow = self._slow, behind > _SLOW
        if not self._slow:
            return
        if not slow:
            log.warning("clock-behind", seconds=behind.total_seconds())
        due = [
            Due(expression, last, self._since[expression])
            for expression, parsed in self._known.items()
            if (last := parsed.previous(now + _INSTANT)) is not None and last > before
        ]
        if due:
            self._hand_on(due)

    def _notice_step(self) -> None:
        """Count anew when the wall clock was set back, or the jobs would wait for the old time."""
        wall, self._wall = self._wall, self._clock.now()
        if self._wall >= wall - _STEP:
            return
        log.warning("clock-set-back", seconds=(wall - self._wall).total_seconds())
        for expression, parsed in self._known.items():
            self._jobs.remove(expression)
            self._jobs.add(expression, parsed, self._wall)

    def _beat(self) -> None:
        """Write the heartbeat when it is time or the problem is another; register if there's no row."""
        problem = self.problem()
        now = self._clock.monotonic()
        if problem == self._said and now - self._beaten < self._heartbeat:
            return
        try:
            if not self._nodes.beat(self._node, problem):
                self._nodes.register(self._node, "scheduler")
                self._nodes.beat(self._node, problem)
        except DatabaseUnavailable:
            return
        self._said, self._beaten = problem, now

    def _invalid_ones(self) -> str | None:
        if not self._invalid:
            return None
        shown = [f"{e!r} ({why})" for e, why in sorted(self._invalid.items())[:_SHOWN_INVALID]]
        more = len(self._invalid) - len(shown)
        return f"Stored expressions that are not valid do not fire: {', '.join(shown)}" + (
            f" and {more} more." if more else "."
        )
