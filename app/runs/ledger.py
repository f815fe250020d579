"""The one way to the runs: every method is a transaction of its own, from any thread."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, literal, select

from app.db import Database
from app.errors import DatabaseUnavailable, NotFound, RunFinished
from app.runs import holding, opening, reading
from app.runs.holding import Claim, ClaimedRun, Held, Reaped, Renewal, Verdict
from app.runs.models import runs
from app.runs.values import NO_INPUT, Opened, Page, Run, RunFilter

KEYS_KEPT = timedelta(hours=24)
"""How long an idempotency key is remembered at least."""

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Observation:
    """The database's time, what a worker holds, and what of that somebody wants canceled."""

    now: datetime
    held: frozenset[Held]
    cancel_requested: frozenset[Held]


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits to be run: how many, counted up to 10,000, and for how many seconds the first has."""

    depth: int
    age: float


class RunLedger:
    """Keeps runs in SQL. Every method may raise DatabaseUnavailable.

    ``max_attempts`` is how often a run that is opened here is tried when its worker is lost.
    """

    def __init__(self, database: Database, *, max_attempts: int = 1) -> None:
        self._database = database
        self._max_attempts = max_attempts

    # --- for everyone -------------------------------------------------------------------------------

    def open_api_run(
        self,
        automation_id: str,
        *,
        input: Any = NO_INPUT,  # noqa: A002
        idempotency_key: str | None = None,
    ) -> Opened:
        """Queue a run by the automation's API trigger.

        ``input`` (any JSON value, null included; hence ``Any``) becomes the run's one event, and
        without it the run has none. A key that came before with the same body is answered with the
        run that it led to, as long as both are remembered, even if the automation has changed or is
        gone since. Raises NotFound, ApiTriggerDisabled, IdempotencyKeyReused and InvalidInput.
        """
        request = opening.Request(automation_id, input, idempotency_key)

        def work(connection: Connection) -> Opened:
            now = self._database.now(connection)
            return opening.open_run(connection, request, self._max_attempts, now)

        for _ in range(_TRIES):
            try:
                return self._database.write(work)
            except opening.KeyTaken:
                continue
        raise DatabaseUnavailable("an idempotency key stayed contended; try again")

    def get(self, run_id: int) -> Run | None:
        """Return the run, or None."""
        return self._database.read(lambda c: reading.one(c, run_id))

    def page(self, where: RunFilter, before: int | None, limit: int) -> Page:
        """Return at most ``limit`` runs with ids below ``before``, newest first."""
        return self._database.read(lambda c: reading.page(c, where, before, limit))

    def known_automation(self, automation_id: str) -> bool:
        """Tell whether the ledger has runs of that automation, which may be gone itself."""
        return self._database.read(lambda c: reading.automation_has_runs(c, automation_id))

    def request_cancel(self, run_id: int) -> Run:
        """End the run if it is queued, or ask its worker to end it; return it as it is then.

        Asking again is no error. Raises NotFound and RunFinished.
        """

        def work(connection: Connection) -> Run:
            done = holding.request_cancel(connection, run_id, self._database.now(connection))
            run = reading.one(connection, run_id)
            if run is None:
                raise NotFound("run", run_id)
            if not done:
                raise RunFinished(run_id, run.state)
            return run

        return self._database.write(work)

    def rerun(self, run_id: int) -> Run:
        """Queue a new run of the same target and events, whatever became of the automation.

        Only of what has ended, missed occurrences included: a second run beside one that is still at
        work is nearly always a slip. Raises NotFound and RunNotFinished.
        """
        return self._database.write(
            lambda c: opening.run_again(c, run_id, self._max_attempts, self._database.now(c))
        )

    # --- for workers --------------------------------------------------------------------------------

    def anything_queued(self) -> bool:
        """Tell cheaply, and without a lock, whether there is something to claim."""
        query = select(runs.c.id).where(runs.c.state == "queued").limit(1)
        return self._database.read(lambda c: c.scalar(query)) is not None

    def claim(self, worker: str, limit: int, lease: float) -> list[ClaimedRun]:
        """Take the oldest queued runs, at most ``limit``, for ``lease`` seconds.

        When this raises, the runs may have been taken all the same: :meth:`give_back` settles it.
        """
        return self._database.write(
            lambda c: holding.claim(c, worker, limit, _seconds(lease), self._database.now(c))
        )

    def give_back(self, worker: str, kept: Iterable[Held]) -> int:
        """Queue again what the ledger has as this worker's, except what it ``kept``."""
        held = frozenset(kept)
        return self._database.write(lambda c: holding.give_back(c, worker, held))

    def renew(self, worker: str, held: Iterable[Held], lease: float) -> Renewal:
        """Hold on to ``held`` for another ``lease`` seconds, and learn what became of it."""
        wanted = frozenset(held)
        return self._database.write(
            lambda c: holding.renew(c, worker, wanted, _seconds(lease), self._database.now(c))
        )

    def observe(self, worker: str) -> Observation:
        """Look, without a lock, at what time it is there and at what the worker holds."""

        def work(connection: Connection) -> Observation:
            held, wanted = holding.held_by(connection, worker)
            return Observation(self._database.now(connection), held, wanted)

        return self._database.read(work)

    def record_commit(self, worker: str, held: Held, commit_hash: str) -> bool:
        """Write down which commit is being run; False if the worker holds the run no more."""
        return self._database.write(lambda c: holding.record_commit(c, worker, held, commit_hash))

    def finish(self, worker: str, held: Held, verdict: Verdict) -> bool:
        """Write down how an attempt ended; False if the worker holds the run no more.

        One that ended since its worker was lost is queued again while attempts are left.
        """

        def work(connection: Connection) -> bool:
            now = self._database.now(connection)
            reason = verdict.reason
            if reason is not None and reason.code == "worker-lost":
                return holding.lose(connection, worker, held, reason.detail, now) is not None
            return holding.finish(connection, worker, held, verdict, now)

        return self._database.write(work)

    def reap(self, reaper: str, limit: int = 100) -> list[Reaped]:
        """Take runs whose lease has ended from other workers than ``reaper``: failed, or queued again.

        Only for a worker that has itself seen the database without a break for one whole lease. What
        it holds itself it renews, however late, or gives back.
        """

        def expired(connection: Connection) -> list[Claim]:
            return holding.expired(connection, reaper, limit, self._database.now(connection))

        # Looking takes no lock, and mostly there is nothing.
        claims = self._database.read(expired)
        if not claims:
            return []
        return self._database.write(lambda c: holding.reap(c, claims, self._database.now(c)))

    def purge_idempotency_keys(self, limit: int) -> int:
        """Forget at most ``limit`` idempotency keys that are old enough; return how many it were."""
        return self._database.write(
            lambda c: opening.forget_keys(c, self._database.now(c) - KEYS_KEPT, limit)
        )

    def queue(self) -> Queue:
        """Return how long the queue is."""
        queued = runs.c.state == "queued"
        counted = select(literal(1)).select_from(runs).where(queued).limit(reading.COUNT_LIMIT)
        first = select(runs.c.queued_at).where(queued).order_by(runs.c.id).limit(1)

        def work(connection: Connection) -> Queue:
            depth = connection.scalar(select(func.count()).select_from(counted.subquery())) or 0
            oldest = connection.scalar(first)
            now = self._database.now(connection)
            return Queue(depth, 0.0 if oldest is None else (now - oldest).total_seconds())

        return self._database.read(work)


def _seconds(duration: float) -> timedelta:
    return timedelta(seconds=duration)


__all__ = [
    "ClaimedRun",
    "Held",
    "Observation",
    "Queue",
    "Reaped",
    "Renewal",
    "RunLedger",
    "Verdict",
]
