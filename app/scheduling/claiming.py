"""The thread that claims: it takes what fell due, and goes on asking until the database has it."""

import heapq
import itertools
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from app.errors import DatabaseUnavailable
from app.scheduling.metrics import SchedulerMetrics
from app.scheduling.occurrences import OccurrenceLedger
from app.scheduling.values import Claimed, Due

log = structlog.get_logger()

WAITING_LIMIT = 60
"""How many instants of one expression may wait. Beyond it the oldest is left to be found as missed."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_GIVES_UP_AFTER = 3


@dataclass(frozen=True, slots=True)
class ClaimingOptions:
    """``sweeps`` are the seconds after a claim at which its latecomers are looked for."""

    sweeps: tuple[float, ...] = (2.0, 15.0)


class Claiming:
    """Claims on a thread of its own, so that a database that is slow holds up no clock.

    What waits is bounded by the number of expressions. Nothing ends the thread but :meth:`stop`.
    """

    def __init__(
        self,
        ledger: OccurrenceLedger,
        node: str,
        metrics: SchedulerMetrics,
        options: ClaimingOptions | None = None,
    ) -> None:
        self.problem: str | None = None
        """What hinders claims now, for people; None while they go through."""
        self._ledger = ledger
        self._node = node
        self._metrics = metrics
        self._options = options or ClaimingOptions()
        self._changed = threading.Condition()
        self._waiting: dict[str, list[Due]] = {}
        self._timed: list[tuple[float, int, str, tuple[Due, ...]]] = []
        self._numbers = itertools.count()
        self._stopping = False
        self._pause = _FIRST_PAUSE
        self._thread = threading.Thread(target=self._run, name="claiming", daemon=True)

    def start(self) -> None:
        """Begin to claim."""
        self._thread.start()

    def stop(self, within: float) -> None:
        """Claim what waits, unless the database is away, and end within ``within`` seconds."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(within)

    def hand_on(self, due: Iterable[Due]) -> None:
        """Have ``due`` claimed; returns at once. Any thread may call this."""
        with self._changed:
            for each in due:
                waiting = self._waiting.setdefault(each.expression, [])
                if all(other.due_at != each.due_at for other in waiting):
                    waiting.append(each)
                    waiting.sort(key=lambda d: d.due_at)
                    del waiting[:-WAITING_LIMIT]
            self._changed.notify()

    def fault(self) -> str | None:
        """Return that the thread has ended, which nothing should make it do, or None."""
        return None if self._thread.is_alive() else "the claiming thread has ended"

    # --- the thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            batch, sweep = self._take()
            try:
                if batch:
                    self._claim(batch)
                if sweep:
                    self._sweep(sweep)
            except Exception:
                log.exception("claiming-failed")
                self._later(_LONGEST_PAUSE, "due", tuple(batch))
            with self._changed:
                if self._stopping and (self.problem or not self._waiting):
                    return

    def _take(self) -> tuple[list[Due], list[Due]]:
        """Wait for something to do; return the oldest of each expression, and what to sweep."""
        with self._changed:
            while not self._waiting and not self._stopping and self._seconds_left() > 0:
                self._changed.wait(min(self._seconds_left(), threading.TIMEOUT_MAX))
            sweep: list[Due] = []
            while self._timed and self._seconds_left() <= 0:
                _, _, kind, due = heapq.heappop(self._timed)
                if kind == "sweep":
                    sweep += due
                else:
                    for each in due:
                        self._waiting.setdefault(each.expression, []).insert(0, each)
            batch = [waiting.pop(0) for waiting in self._waiting.values()]
            self._waiting = {e: waiting for e, waiting in self._waiting.items() if waiting}
            return batch, sweep

    def _seconds_left(self) -> float:
        return self._timed[0][0] - time.monotonic() if self._timed else threading.TIMEOUT_MAX

    def _later(self, seconds: float, kind: str, due: tuple[Due, ...]) -> None:
        with self._changed:
            entry = (time.monotonic() + seconds, next(self._numbers), kind, due)
            heapq.heappush(self._timed, entry)

    # --- claiming -----------------------------------------------------------------------------------

    def _claim(self, batch: Sequence[Due]) -> None:
        try:
            self._note(batch, self._ledger.claim(batch, self._node))
        except DatabaseUnavailable as error:
            self._failed(batch, error.reason)
            return
        except Exception as error:
            if len(batch) == 1:
                self._refused(batch[0], error)
                return
            self._claim_each(batch)
            return
        self.problem = None
        self._pause = _FIRST_PAUSE

    def _claim_each(self, batch: Sequence[Due]) -> None:
        """Claim one by one, so that what the database refuses keeps nothing else from firing."""
        refused = None
        for number, due in enumerate(batch):
            try:
                self._note([due], self._ledger.claim([due], self._node))
            except DatabaseUnavailable as error:
                self._failed(batch[number:], error.reason)
                return
            except Exception as error:
                refused = self._refused(due, error)
        self.problem = refused

    def _refused(self, due: Due, error: Exception) -> str:
        self._metrics.failures.inc()
        log.error("claim-refused", expression=due.expression, due_at=due.due_at, exc_info=error)
        self.problem = f"The occurrences of {due.expression!r} cannot be claimed; see the log."
        self._later(_LONGEST_PAUSE, "due", (due,))
        return self.problem

    def _failed(self, batch: Sequence[Due], reason: str) -> None:
        """Keep the latest of each expression, and wait a little longer each time."""
        self._metrics.failures.inc()
        log.warning("claim-failed", reason=reason, expressions=len(batch), again_in=self._pause)
        self.problem = f"Claims fail: {reason}"
        with self._changed:
            for due in batch:
                every = [due, *self._waiting.get(due.expression, ())]
                self._waiting[due.expression] = [_latest(every)]
            if not self._stopping:
                deadline = time.monotonic() + self._pause
                while not self._stopping and (left := deadline - time.monotonic()) > 0:
                    self._changed.wait(left)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _note(self, batch: Sequence[Due], claimed: Claimed) -> None:
        self._metrics.overtaken.inc(claimed.overtaken)
        for fired in claimed.fired:
            self._metrics.lateness.observe((claimed.now - fired.due_at).total_seconds())
        self._metrics.fired.inc(len(claimed.fired))
        self._metrics.runs.inc(sum(fired.runs for fired in claimed.fired))
        self._metrics.missed.inc(claimed.missed)
        for gap in claimed.gaps:
            log.warning(
                "occurrences-missed",
                expression=gap.expression,
                count=gap.count,
                first=gap.first,
                last=gap.last,
            )
        if claimed.fired:
            log.info(
                "occurrences-fired",
                occurrences=len(claimed.fired),
                runs=sum(fired.runs for fired in claimed.fired),
            )
        if claimed.early:
            self._wait_for_the_database(claimed.early, claimed.now)
        early = set(claimed.early)
        settled = tuple(due for due in batch if due not in early)
        if settled:
            for seconds in self._options.sweeps:
                self._later(seconds, "sweep", settled)

    def _wait_for_the_database(self, early: Sequence[Due], now: datetime) -> None:
        """Try again when the database's clock has come to it: ours is fast."""
        self._metrics.clock_ahead.inc()
        ahead = max((due.due_at - now).total_seconds() for due in early)
        log.warning("clock-ahead", seconds=round(ahead, 3), expressions=len(early))
        for due in early:
            self._later((due.due_at - now).total_seconds(), "due", (due,))

    def _sweep(self, due: Sequence[Due]) -> None:
        try:
            runs = self._ledger.sweep(due)
        except DatabaseUnavailable as error:
            log.warning("sweep-failed", reason=error.reason)
            self._later(_LONGEST_PAUSE, "sweep", tuple(due))
            return
        if runs:
            self._metrics.runs.inc(runs)
            log.info("late-definitions-fired", runs=runs)


def _latest(due: Sequence[Due]) -> Due:
    """Return the latest of one expression; it looks back as far as any of them would."""
    latest = max(due, key=lambda d: d.due_at)
    instants = [d.since for d in due]
    since = None if None in instants else min(i for i in instants if i is not None)
    return replace(latest, since=since)
