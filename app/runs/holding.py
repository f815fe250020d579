"""What workers do to runs: claim, renew, finish, give back, and take from those that fell silent.

Every transition is one UPDATE that is conditional on state, worker and attempt; zero rows mean that
somebody else was first. Instants come from the database's clock, by which all workers are judged.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, select, tuple_, update

from app.runs import reading
from app.runs.models import run_events, runs
from app.runs.values import Reason, Run, storable


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """One attempt at one run, which is what a worker holds."""

    run_id: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run that a worker has just taken, with the document of its events as it is stored."""

    run: Run
    events_json: str | None

    @property
    def held(self) -> Held:
        """The attempt that the worker holds from now on."""
        return Held(self.run.id, self.run.attempt)

    def payloads(self) -> list[Any]:
        """Return the payloads of the events; ValueError if the stored document is broken."""
        if self.events_json is None:
            return []
        payloads = json.loads(self.events_json)
        if not isinstance(payloads, list):
            raise ValueError("the stored events are no list")
        return payloads


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a worker learns as it renews: what it holds no more, and what it is asked to cancel."""

    lost: frozenset[Held]
    cancel_requested: frozenset[Held]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt ended: a terminal state, and the reason unless it succeeded."""

    state: str
    reason: Reason | None = None
    exit_code: int | None = None
    commit_hash: str | None = None


class Claim(NamedTuple):
    """Who holds what."""

    held: Held
    worker: str


@dataclass(frozen=True, slots=True)
class Reaped:
    """A run that was taken from a silent worker, and the state that it is in since."""

    held: Held
    worker: str
    state: str


_NOBODY = {"worker": None, "lease_until": None}
_QUEUED_AGAIN = {"state": "queued", "started_at": None, "commit_hash": None, **_NOBODY}


def claim(
    connection: Connection, worker: str, limit: int, lease: timedelta, now: datetime
) -> list[ClaimedRun]:
    """Take the oldest queued runs, at most ``limit``, oldest first."""
    oldest = (
        select(runs.c.id)
        .where(runs.c.state == "queued")
        .order_by(runs.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    taken = {
        "state": "running",
        "worker": worker,
        "lease_until": now + lease,
        "started_at": now,
        "attempt": runs.c.attempt + 1,
    }
    if connection.dialect.name == "mariadb":
        # No UPDATE … RETURNING, and none that reads the table it changes.
        ids = list(connection.scalars(oldest))
        if not ids:
            return []
        connection.execute(
            update(runs).where(runs.c.id.in_(ids), runs.c.state == "queued").values(**taken)
        )
        rows = connection.execute(select(*reading.COLUMNS).where(runs.c.id.in_(ids))).all()
    else:
        # As a CTE, PostgreSQL evaluates it once; a plain subquery it may evaluate again.
        picked = oldest.cte("picked")
        if connection.dialect.name == "postgresql":
            picked = picked.prefix_with("MATERIALIZED", dialect="postgresql")
        statement = (
            update(runs)
            .where(runs.c.id.in_(select(picked.c.id)), runs.c.state == "queued")
            .values(**taken)
            .returning(*reading.COLUMNS)
        )
        rows = connection.execute(statement).all()
    claimed = sorted((reading.run_of(row) for row in rows), key=lambda run: run.id)
    return [ClaimedRun(run, events) for run, events in _with_events(connection, claimed)]


def renew(
    connection: Connection, worker: str, held: Iterable[Held], lease: timedelta, now: datetime
) -> Renewal:
    """Hold on to ``held`` for one more lease, where it is still the worker's."""
    wanted = sorted(held)
    if not wanted:
        return Renewal(frozenset(), frozenset())
    connection.execute(update(runs).where(*_still(worker, wanted)).values(lease_until=now + lease))
    still = connection.execute(
        select(runs.c.id, runs.c.attempt, runs.c.cancel_requested_at).where(*_still(worker, wanted))
    ).all()
    kept, to_cancel = _all_and_wanted(still)
    return Renewal(lost=frozenset(wanted) - kept, cancel_requested=to_cancel)


def held_by(connection: Connection, worker: str) -> tuple[frozenset[Held], frozenset[Held]]:
    """Return what ``worker`` holds, and which of that somebody wants canceled."""
    rows = connection.execute(
        select(runs.c.id, runs.c.attempt, runs.c.cancel_requested_at).where(
            runs.c.state == "running", runs.c.worker == worker
        )
    ).all()
    return _all_and_wanted(rows)


def record_commit(connection: Connection, worker: str, held: Held, commit_hash: str) -> bool:
    """Write down which commit the run is of; False if the worker holds it no more."""
    statement = update(runs).where(*_still(worker, [held])).values(commit_hash=commit_hash)
    return connection.execute(statement).rowcount == 1


def finish(
    connection: Connection, worker: str, held: Held, verdict: Verdict, now: datetime
) -> bool:
    """Write down how the attempt ended; False if the worker holds it no more."""
    statement = (
        update(runs)
        .where(*_still(worker, [held]))
        .values(
            state=verdict.state,
            finished_at=now,
            exit_code=verdict.exit_code,
            **_reason(verdict.reason),
        )
    )
    if verdict.commit_hash is not None:
        statement = statement.values(commit_hash=verdict.commit_hash)
    return connection.execute(statement).rowcount == 1


def lose(
    connection: Connection, worker: str, held: Held, detail: str, now: datetime, *conditions: Any
) -> str | None:
    """End an attempt whose worker was lost, and return the run's state since.

    It is queued again while attempts are left, unless somebody wanted it canceled. None if the worker
    did not hold it any more, or one of ``conditions`` does not hold.
    """
    ours = (*_still(worker, [held]), *conditions)
    again = update(runs).where(
        *ours, runs.c.attempt < runs.c.max_attempts, runs.c.cancel_requested_at.is_(None)
    )
    if connection.execute(again.values(**_QUEUED_AGAIN)).rowcount == 1:
        return "queued"
    canceled = "Canceled, but its worker was lost before it could say how the run ended."
    for state, reason, wanted in (
        ("canceled", Reason("canceled", canceled), runs.c.cancel_requested_at.is_not(None)),
        ("failed", Reason("worker-lost", detail), runs.c.cancel_requested_at.is_(None)),
    ):
        statement = update(runs).where(*ours, wanted)
        values = {"state": state, "finished_at": now, **_reason(reason)}
        if connection.execute(statement.values(**values)).rowcount == 1:
            return state
    return None


def expired(connection: Connection, reaper: str, limit: int, now: datetime) -> list[Claim]:
    """Return runs of others than ``reaper`` whose lease has ended, at most ``limit``."""
    rows = connection.execute(
        select(runs.c.id, runs.c.attempt, runs.c.worker)
        .where(runs.c.state == "running", runs.c.lease_until < now, runs.c.worker != reaper)
        .order_by(runs.c.id)
        .limit(limit)
    )
    return [Claim(Held(row.id, row.attempt), row.worker) for row in rows]


def reap(connection: Connection, claims: Iterable[Claim], now: datetime) -> list[Reaped]:
    """Take runs from their workers where the lease has ended still."""
    reaped = []
    for held, worker in claims:
        detail = f"The worker {worker} was not heard of for longer than its lease."
        state = lose(connection, worker, held, detail, now, runs.c.lease_until < now)
        if state is not None:
            reaped.append(Reaped(held, worker, state))
    return reaped


def give_back(connection: Connection, worker: str, kept: Iterable[Held]) -> int:
    """Queue again what the ledger says is the worker's and the worker never started.

    That is so when the answer to a claim was lost on its way. No attempt is counted.
    """
    mine = [runs.c.state == "running", runs.c.worker == worker]
    if kept := sorted(kept):
        mine.append(tuple_(runs.c.id, runs.c.attempt).not_in([(h.run_id, h.attempt) for h in kept]))
    statement = update(runs).where(*mine).values(attempt=runs.c.attempt - 1, **_QUEUED_AGAIN)
    return connection.execute(statement).rowcount


def request_cancel(connection: Connection, run_id: int, now: datetime) -> bool:
    """End the run if it is queued, else ask its worker to; False if it is neither."""
    queued = runs.c.state == "queued"
    statement = (
        update(runs)
        .where(runs.c.id == run_id, runs.c.state.in_(["queued", "running"]))
        # In this order: MariaDB assigns from left to right, and a later column sees the new state.
        .ordered_values(
            (runs.c.cancel_requested_at, case((queued, now), else_=_first_request(now))),
            (runs.c.finished_at, case((queued, now), else_=runs.c.finished_at)),
            (runs.c.reason_code, case((queued, "canceled"), else_=runs.c.reason_code)),
            (
                runs.c.reason_detail,
                case((queued, "Canceled before it started."), else_=runs.c.reason_detail),
            ),
            (runs.c.state, case((queued, "canceled"), else_=runs.c.state)),
        )
    )
    return connection.execute(statement).rowcount == 1


def _all_and_wanted(rows: Sequence[Any]) -> tuple[frozenset[Held], frozenset[Held]]:
    return (
        frozenset(Held(row.id, row.attempt) for row in rows),
        frozenset(Held(row.id, row.attempt) for row in rows if row.cancel_requested_at is not None),
    )


def _first_request(now: datetime) -> ColumnElement[Any]:
    asked = runs.c.cancel_requested_at
    return case((asked.is_(None), now), else_=asked)


def _still(worker: str, held: Sequence[Held]) -> tuple[ColumnElement[bool], ...]:
    return (
        runs.c.id.in_([h.run_id for h in held]),
        tuple_(runs.c.id, runs.c.attempt).in_([(h.run_id, h.attempt) for h in held]),
        runs.c.state == "running",
        runs.c.worker == worker,
    )


def _reason(reason: Reason | None) -> dict[str, str | None]:
    if reason is None:
        return {"reason_code": None, "reason_detail": None}
    return {"reason_code": reason.code, "reason_detail": storable(reason.detail)}


def _with_events(connection: Connection, claimed: Sequence[Run]) -> list[tuple[Run, str | None]]:
    with_events = [run.id for run in claimed if run.events]
    documents: dict[int, str] = {}
    if with_events:
        query = select(run_events.c.run_id, run_events.c.document)
        rows = connection.execute(query.where(run_events.c.run_id.in_(with_events)))
        documents = {row.run_id: row.document for row in rows}
    return [(run, documents.get(run.id)) for run in claimed]
