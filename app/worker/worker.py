"""The worker: claims what is queued, as much as it has places for, and holds on to it until it ends.

Its duties have a thread each, and each run has one, so that nothing that hangs keeps a lease from being
renewed. What it holds is in one table here; who may write about it is the ledger's to say.
"""

import queue
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from app.clock import Clock
from app.errors import DatabaseUnavailable
from app.runners.stopping import Stop, StopReason
from app.runs.ledger import ClaimedRun, Held, RunLedger, Verdict
from app.runs.logs import RunLogs
from app.runs.values import Reason
from app.worker.carrying import Runner, carry_out
from app.worker.duty import Duty
from app.worker.metrics import WorkerMetrics
from app.worker.presence import Presence
from app.worker.record import RunRecord
from app.worker.sight import Sight

log = structlog.get_logger()

FLUSH_EVERY = 0.25
SETTLE_EVERY = 0.5
LAST_WORDS = 30.0
"""Seconds that runs get, once told to stop, to end and to be written down before the worker goes."""
KEYS_EVERY = 60.0
"""Seconds from one purge of idempotency keys to the next, once no old ones are left."""
KEYS_AT_A_TIME = 500
TRIES = 5
_UNWRITABLE = Reason("runner-error", "How this run ended could not be written down.")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works; lengths of time in seconds.

    ``poll`` is how often an idle worker looks for work, ``watch`` how soon it notices that a run is to
    be canceled, ``drain`` how long runs may go on once the worker is told to stop.
    """

    places: int
    lease: float = 30.0
    drain: float = 60.0
    timeout: float = 3600.0
    poll: float = 0.4
    watch: float = 1.0

    @property
    def renew(self) -> float:
        """How often leases are renewed."""
        return self.lease / 3


@dataclass(slots=True, eq=False)
class _Carried:
    """A run that this worker holds."""

    claimed: ClaimedRun
    record: RunRecord
    since: float
    stop: Stop = field(default_factory=Stop)

    def lose(self) -> None:
        self.stop.request("lost")
        self.record.lose()


class Worker:
    """Carries runs out until told to stop.

    ``leases`` is the same ledger over connections of its own, so that no crowd of runs that are being
    written down keeps a renewal waiting.
    """

    def __init__(
        self,
        name: str,
        ledger: RunLedger,
        leases: RunLedger,
        logs: RunLogs,
        runner: Runner,
        presence: Presence,
        clock: Clock,
        options: WorkerOptions,
        metrics: WorkerMetrics,
    ) -> None:
        self._name = name
        self._ledger = ledger
        self._leases = leases
        self._logs = logs
        self._runner = runner
        self._presence = presence
        self._clock = clock
        self._options = options
        self._metrics = metrics
        self._sight = Sight(clock, options.lease)
        self._lock = threading.Lock()
        self._carried: dict[Held, _Carried] = {}
        self._unsure = False
        self._stopping = threading.Event()
        self._giving_up = threading.Event()
        self._next_purge = 0.0
        watch = min(options.watch, options.lease / 6)
        self._poller = Duty("claim", self._claim, options.poll, self._on_failure)
        self._duties = (
            Duty("renew", self._renew, options.renew, self._on_failure),
            Duty("present", self._be_present, options.renew, self._on_failure),
            Duty("watch", self._watch, watch, self._on_failure),
            Duty("reap", self._reap, options.renew, self._on_failure),
            Duty("write", self._write, FLUSH_EVERY, self._on_failure),
        )
        metrics.places.set(options.places)
        metrics.running.set_function(lambda: len(self._carried))

    def run(self, orders: "queue.SimpleQueue[object]") -> bool:
        """Work until something comes in ``orders``; return whether everything was written down then.

        The first order lets runs end by themselves, as long as ``drain`` says; a second one cancels
        them at once.
        """
        for duty in (self._poller, *self._duties):
            duty.start()
        log.info("worker-started", worker=self._name, places=self._options.places)
        orders.get()
        self._take_no_more()
        if not self._all_ended_within(self._options.drain, orders):
            self._stop_all()
            self._all_ended_within(LAST_WORDS, None)
        return self._leave()

    def fault(self) -> str | None:
        """Return what is wrong with this process, or None: a duty whose thread has ended."""
        for duty in (self._poller, *self._duties):
            ended = duty.ident is not None and not duty.is_alive()
            if ended and not self._stopping.is_set():
                return f"the duty {duty.name!r} has ended"
        return None

    # --- stopping -----------------------------------------------------------------------------------

    def _take_no_more(self) -> None:
        log.info("worker-stopping", worker=self._name, running=len(self._carried))
        self._stopping.set()
        self._poller.end()

    def _all_ended_within(self, seconds: float, orders: "queue.SimpleQueue[object] | None") -> bool:
        deadline = self._clock.monotonic() + seconds
        while self._carried or self._poller.is_alive():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            if orders is None:
                self._giving_up.wait(min(left, 0.1))
                continue
            with suppress(queue.Empty):
                orders.get(timeout=min(left, 0.1))
                return False
        return True

    def _stop_all(self) -> None:
        for carried in self._held():
            log.info("run-stopped", run=carried.claimed.run.id, reason="shutdown")
            carried.stop.request("shutdown")

    def _leave(self) -> bool:
        self._giving_up.set()
        for duty in self._duties:
            duty.end()
        left = [carried.claimed.run.id for carried in self._held()]
        if left:
            log.error("runs-left-behind", runs=left, hint="They will be reaped as worker-lost.")
        with suppress(DatabaseUnavailable):
            if self._unsure:
                self._ledger.give_back(self._name, [c.claimed.held for c in self._held()])
            self._presence.leave()
        log.info("worker-stopped", worker=self._name)
        return not left

    # --- duties -------------------------------------------------------------------------------------

    def _on_failure(self, reason: str) -> None:
        self._sight.lost()
        self._presence.hindered(reason)

    def _claim(self) -> None:
        if self._unsure:
            # A claim may have been committed though its answer never came.
            given_back = self._ledger.give_back(self._name, [c.claimed.held for c in self._held()])
            self._unsure = False
            if given_back:
                log.info("claims-given-back", runs=given_back)
        free = self._options.places - len(self._carried)
        if free < 1 or self._stopping.is_set() or not self._ledger.anything_queued():
            return
        self._unsure = True
        claimed = self._ledger.claim(self._name, free, self._options.lease)
        if self._stopping.is_set():
            return
        self._unsure = False
        for run in claimed:
            self._start(run)

    def _renew(self) -> None:
        held = {carried.claimed.held: carried for carried in self._held()}
        if not held:
            return
        renewal = self._leases.renew(self._name, held, self._options.lease)
        for lost in renewal.lost:
            held[lost].lose()
        self._request("canceled", (held[wanted] for wanted in renewal.cancel_requested))

    def _watch(self) -> None:
        observed = self._ledger.observe(self._name)
        self._sight.seen(observed.now)
        held = {carried.claimed.held: carried for carried in self._held()}
        if observed.held - held.keys():
            # Perhaps just claimed or just ended; perhaps a claim that was committed late.
            self._unsure = True
        self._request("canceled", (held[h] for h in observed.cancel_requested if h in held))

    def _reap(self) -> None:
        if not self._sight.steady():
            return
        for reaped in self._ledger.reap(self._name):
            self._metrics.ended.labels(reaped.state).inc()
            log.warning(
                "run-reaped",
                run=reaped.held.run_id,
                attempt=reaped.held.attempt,
                lost_worker=reaped.worker,
                state=reaped.state,
            )
        now = self._clock.monotonic()
        if now < self._next_purge:
            return
        # A full batch means that there may be more: with a pause in between, keys that come in faster
        # than a batch a minute would pile up without end.
        if self._ledger.purge_idempotency_keys(KEYS_AT_A_TIME) < KEYS_AT_A_TIME:
            self._next_purge = now + KEYS_EVERY

    def _be_present(self) -> None:
        self._presence.beat()

    def _write(self) -> None:
        away: DatabaseUnavailable | None = None
        for carried in self._held():
            try:
                carried.record.flush()
            except DatabaseUnavailable as error:
                away = error
            if carried.record.lost:
                carried.lose()
        if away is not None:
            raise away

    # --- runs ---------------------------------------------------------------------------------------

    def _held(self) -> list[_Carried]:
        with self._lock:
            return list(self._carried.values())

    def _request(self, reason: StopReason, wanted: Iterable[_Carried]) -> None:
        for carried in wanted:
            if carried.stop.reason is None:
                log.info("run-stopped", run=carried.claimed.run.id, reason=reason)
                carried.stop.request(reason)

    def _start(self, claimed: ClaimedRun) -> None:
        record = RunRecord(
            self._name,
            claimed.held,
            self._ledger,
            self._logs,
            self._clock,
            on_drop=self._metrics.lines_dropped.inc,
        )
        carried = _Carried(claimed, record, self._clock.monotonic())
        with self._lock:
            self._carried[claimed.held] = carried
        thread = threading.Thread(
            target=self._carry, args=(carried,), name=f"run-{claimed.run.id}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            # The machine gives no more threads: this run is given back by the next claim.
            self._unsure = True
            with self._lock:
                del self._carried[claimed.held]
            raise

    def _carry(self, carried: _Carried) -> None:
        run = carried.claimed.run
        log.info("run-started", run=run.id, automation=run.automation_id, attempt=run.attempt)
        try:
            verdict = carry_out(
                carried.claimed, self._runner, carried.record, carried.stop, self._options.timeout
            )
            if verdict is not None and self._settled(carried, verdict):
                self._metrics.ended.labels(verdict.state).inc()
                self._metrics.duration.observe(self._clock.monotonic() - carried.since)
                code = verdict.reason.code if verdict.reason else None
                why = {} if code is None else {"reason": code}
                log.info(
                    "run-ended",
                    run=run.id,
                    automation=run.automation_id,
                    state=verdict.state,
                    **why,
                )
            elif not self._giving_up.is_set():
                self._metrics.lost.inc()
                log.warning("run-lost", run=run.id, attempt=run.attempt)
        except Exception:
            log.exception("run-not-settled", run=run.id, attempt=run.attempt)
        finally:
            with self._lock:
                del self._carried[carried.claimed.held]
            self._poller.wake()

    def _settled(self, carried: _Carried, verdict: Verdict) -> bool:
        """Write the verdict down, however long the database is away; False if the run was lost."""
        refusals = 0
        while not carried.record.lost:
            try:
                return carried.record.finish(verdict)
            except DatabaseUnavailable as error:
                self._on_failure(error.reason)
            except Exception as error:
                self._on_failure(f"a run's end was refused ({type(error).__name__})")
                refusals += 1
                if refusals == TRIES:
                    log.exception("verdict-refused", run=carried.claimed.run.id)
                    verdict = Verdict("failed", _UNWRITABLE)
            if self._giving_up.wait(SETTLE_EVERY):
                break
        return False
