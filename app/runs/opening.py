"""Writes new runs down: those that the API asks for, with their one event, and those run again."""

import hashlib
import json
from datetime import datetime
from typing import Any

import rfc8785
from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import DBAPIError

from app.automations.models import automations
from app.automations.values import API_TRIGGER_ID
from app.db.failures import Failure, classify
from app.errors import (
    ApiTriggerDisabled,
    IdempotencyKeyReused,
    InvalidInput,
    NotFound,
    RunNotFinished,
    Violation,
)
from app.runs import reading
from app.runs.models import run_events, run_idempotency_keys, runs
from app.runs.values import INPUT_LIMIT, NO_INPUT, Opened, Run, idempotency_key_fault

_keys = run_idempotency_keys


class KeyTaken(Exception):
    """Another transaction came first with the same idempotency key."""


class Request:
    """One call of the API trigger, judged and ready to be written as often as the database needs."""

    def __init__(self, automation_id: str, given: Any, key: str | None) -> None:
        """Raise InvalidInput for an input that is no JSON or too large, and for a malformed key."""
        if key is not None and (fault := idempotency_key_fault(key)):
            raise InvalidInput([Violation("", "idempotency-key", fault)])
        self.automation_id = automation_id
        self.key = key
        self.events = None if given is NO_INPUT else f"[{_json_of(given)}]"
        self.body_hash = _hash_of({} if given is NO_INPUT else {"input": given})


def open_run(connection: Connection, request: Request, max_attempts: int, now: datetime) -> Opened:
    """Write the run that ``request`` asks for, unless its key has led to one already.

    The key decides before anything else does: a client that repeats a call wants the answer that it
    missed, whatever became of the automation. Raises NotFound, ApiTriggerDisabled,
    IdempotencyKeyReused, and KeyTaken, after which the transaction is to be tried again.
    """
    if request.key is not None and (earlier := _earlier(connection, request)) is not None:
        return Opened(earlier, created=False)
    # Only what a run copies is consulted: a stored automation that is broken elsewhere still starts,
    # and a broken target is the worker's to report, in the ledger.
    automation = connection.execute(
        select(automations).where(automations.c.id == request.automation_id)
    ).one_or_none()
    if automation is None:
        raise NotFound("automation", request.automation_id)
    if not automation.api_enabled:
        raise ApiTriggerDisabled(request.automation_id)
    run_id = _insert(
        connection,
        request.events,
        automation_id=automation.id,
        automation_name=automation.name,
        automation_revision=automation.revision,
        trigger_type="api",
        trigger_id=API_TRIGGER_ID,
        target_repository=automation.target_repository,
        target_ref=automation.target_ref,
        target_workflow=automation.target_workflow,
        queued_at=now,
        max_attempts=max_attempts,
        events=0 if request.events is None else 1,
    )
    if request.key is not None:
        _remember(connection, request, run_id, now)
    return Opened(_present(connection, run_id), created=True)


def run_again(connection: Connection, run_id: int, max_attempts: int, now: datetime) -> Run:
    """Write a new run of what ``run_id`` was: target, trigger and events.

    Raises NotFound, and RunNotFinished while it is queued or running.
    """
    earlier = reading.one(connection, run_id)
    if earlier is None:
        raise NotFound("run", run_id)
    if not earlier.finished:
        raise RunNotFinished(run_id, earlier.state)
    events = connection.scalar(select(run_events.c.document).where(run_events.c.run_id == run_id))
    copied = (
        *("automation_id", "automation_name", "automation_revision", "trigger_type", "trigger_id"),
        *("target_repository", "target_ref", "target_workflow", "events"),
    )
    new_id = _insert(
        connection,
        events,
        **{name: getattr(earlier, name) for name in copied},
        queued_at=now,
        max_attempts=max_attempts,
        rerun_of=run_id,
    )
    return _present(connection, new_id)


def forget_keys(connection: Connection, used_before: datetime, limit: int) -> int:
    """Delete at most ``limit`` idempotency keys that were used before an instant; return how many."""
    old = connection.execute(
        select(_keys.c.automation_id, _keys.c.key)
        .where(_keys.c.used_at < used_before)
        .order_by(_keys.c.used_at)
        .limit(limit)
    ).all()
    for automation_id, key in sorted(old):
        connection.execute(
            delete(_keys).where(
                _keys.c.automation_id == automation_id,
                _keys.c.key == key,
                _keys.c.used_at < used_before,
            )
        )
    return len(old)


def _insert(connection: Connection, document: str | None, **values: Any) -> int:
    result = connection.execute(insert(runs).values(state="queued", attempt=0, **values))
    run_id: int = result.inserted_primary_key[0]  # type: ignore[index]
    if document is not None:
        connection.execute(insert(run_events).values(run_id=run_id, document=document))
    return run_id


def _present(connection: Connection, run_id: int) -> Run:
    run = reading.one(connection, run_id)
    assert run is not None
    return run


def _earlier(connection: Connection, request: Request) -> Run | None:
    of_this = (_keys.c.automation_id == request.automation_id, _keys.c.key == request.key)
    row = connection.execute(
        select(_keys.c.run_id, _keys.c.body_hash).where(*of_this)
    ).one_or_none()
    if row is None:
        return None
    run = reading.one(connection, row.run_id)
    if run is None:
        # Whoever deletes runs from a shell of SQLite leaves their keys, as foreign keys are off there.
        connection.execute(delete(_keys).where(*of_this, _keys.c.run_id == row.run_id))
        return None
    if row.body_hash != request.body_hash:
        assert request.key is not None
        raise IdempotencyKeyReused(request.key, row.run_id)
    return run


def _remember(connection: Connection, request: Request, run_id: int, now: datetime) -> None:
    try:
        connection.execute(
            insert(_keys).values(
                automation_id=request.automation_id,
                key=request.key,
                run_id=run_id,
                body_hash=request.body_hash,
                used_at=now,
            )
        )
    except DBAPIError as error:
        if classify(error) is Failure.UNIQUE:
            raise KeyTaken from error
        raise


def _json_of(given: Any) -> str:
    """Return the input as JSON in ASCII, so that any database keeps it to the letter."""
    try:
        # Counted in UTF-8, as the client sent it.
        size = len(
            json.dumps(given, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
                "utf-8", "surrogatepass"
            )
        )
        text = json.dumps(given, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput([Violation("/input", "type", "The input is any JSON value.")]) from error
    except RecursionError as error:
        fault = "The input is nested too deeply."
        raise InvalidInput([Violation("/input", "too-deep", fault)]) from error
    if size > INPUT_LIMIT:
        fault = f"An input has at most {INPUT_LIMIT:,} bytes of JSON; this one has {size:,}."
        raise InvalidInput([Violation("/input", "too-large", fault)])
    return text


def _hash_of(body: dict[str, Any]) -> str:
    """Return the SHA-256 of the body in RFC 8785 form, as 64 hexadecimal digits."""
    try:
        canonical = rfc8785.dumps(body)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError):
        # RFC 8785 has no form for integers beyond 2**53 and lone surrogates, which JSON allows.
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(canonical).hexdigest()
