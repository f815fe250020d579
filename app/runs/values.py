"""What a run is, as plain values."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final

from app.errors import InvalidInput, Violation

STATES = ("queued", "running", "succeeded", "failed", "canceled", "missed")
TERMINAL_STATES = frozenset({"succeeded", "failed", "canceled", "missed"})
TRIGGER_TYPES = ("api", "schedule", "plugin")
STREAMS = ("stdout", "stderr", "system")

REASON_CODES = (
    "exit-code",
    "timeout",
    "canceled",
    "worker-lost",
    "target-invalid",
    "clone-failed",
    "ref-not-found",
    "workflow-not-found",
    "missed",
    "runner-error",
)

INPUT_LIMIT = 64 * 1024
"""Bytes of JSON that an API call may hand to a run."""

_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")


class NoInput(Enum):
    """Stands for an input that was not given, since null is one that can be."""

    NO_INPUT = "no input"


NO_INPUT: Final = NoInput.NO_INPUT


def idempotency_key_fault(value: str) -> str | None:
    """Return what is wrong with an idempotency key."""
    if _IDEMPOTENCY_KEY.fullmatch(value):
        return None
    return "An idempotency key has 1 to 255 visible ASCII characters."


def storable(text: str, limit: int = 10_000) -> str:
    """Return ``text`` as every database can keep it: no NUL, no lone surrogate, ``limit`` characters."""
    cleaned = text.replace("\0", "").encode("utf-8", "replace").decode()
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a run ended as it did: a stable code and a sentence."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Run:
    """One firing as the ledger has it. Instants are aware and in UTC."""

    id: int
    state: str
    automation_id: str
    automation_name: str
    automation_revision: str
    trigger_type: str
    trigger_id: str
    target_repository: str
    target_ref: str
    target_workflow: str
    due_at: datetime | None
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt: int
    max_attempts: int
    commit_hash: str | None
    exit_code: int | None
    reason: Reason | None
    events: int
    worker: str | None
    rerun_of: int | None
    cancel_requested_at: datetime | None = None

    @property
    def finished(self) -> bool:
        """True once the run is in a state that nothing leaves."""
        return self.state in TERMINAL_STATES


@dataclass(frozen=True, slots=True)
class Opened:
    """The run that a call is answered with; ``created`` is False if an earlier call had made it."""

    run: Run
    created: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Some runs, newest first; ``total`` is exact up to 10,000 and None beyond."""

    runs: list[Run]
    total: int | None
    next_before: int | None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list; ``since`` and ``until`` bound ``queued_at``, the first included.

    ``trigger`` is the type or the id of the trigger that started them.
    """

    automation: str | None = None
    states: frozenset[str] = field(default_factory=frozenset)
    trigger: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        """Raise InvalidInput if a state is unknown."""
        if unknown := self.states - set(STATES):
            raise InvalidInput(
                [
                    Violation(
                        "/state",
                        "unknown-state",
                        f"There is no state {sorted(unknown)[0]!r}; known: {', '.join(STATES)}.",
                    )
                ]
            )


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a run's log; ``number`` counts from 1 over all attempts of the run."""

    number: int
    attempt: int
    stream: str
    logged_at: datetime
    text: str


def events_document(payloads: list[Any], *, attempt: int = 1) -> dict[str, Any]:
    """Return the document that a workflow reads: one entry per event, and ``input`` for short.

    ``input`` is the event's payload if there is exactly one, else the list of payloads.
    """
    return {
        "data": [{"data": payload, "meta": {}} for payload in payloads],
        "meta": {"size": len(payloads), "attempt": attempt},
        "input": payloads[0] if len(payloads) == 1 else payloads,
    }
