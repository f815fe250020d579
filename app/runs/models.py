"""The tables of the ledger.

No CHECK here is stricter than those on the definitions: a run copies what it needs of its automation,
and a row that a DBA could write there must be recordable here. Runs outlive their automations, so
nothing refers to ``automations``.
"""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, Table, UniqueConstraint

from app.db import checks
from app.db.naming import metadata
from app.db.types import Instant, big_id, key_text, long_text
from app.runs.values import STATES, STREAMS, TRIGGER_TYPES

runs = Table(
    "runs",
    metadata,
    Column("id", big_id(), primary_key=True, autoincrement=True),
    Column("state", key_text(20), nullable=False),
    Column("automation_id", key_text(100), nullable=False),
    Column("automation_name", long_text(), nullable=False),
    Column("automation_revision", key_text(100), nullable=False),
    Column("trigger_type", key_text(20), nullable=False),
    Column("trigger_id", key_text(100), nullable=False),
    Column("target_repository", key_text(300), nullable=False),
    Column("target_ref", key_text(300), nullable=False),
    Column("target_workflow", key_text(300), nullable=False),
    Column("due_at", Instant),
    Column("queued_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    Column("attempt", Integer, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("commit_hash", key_text(100)),
    Column("exit_code", Integer),
    Column("reason_code", key_text(100)),
    Column("reason_detail", long_text()),
    Column("events", Integer, nullable=False),
    Column("worker", key_text(100)),
    Column("lease_until", Instant),
    Column("cancel_requested_at", Instant),
    Column("rerun_of", big_id()),
    CheckConstraint(checks.one_of("state", STATES), name="state_known"),
    CheckConstraint(checks.one_of("trigger_type", TRIGGER_TYPES), name="trigger_type_known"),
    CheckConstraint(checks.at_least("attempt", 0), name="attempt_not_negative"),
    CheckConstraint(checks.between("max_attempts", 1, 100), name="max_attempts_range"),
    CheckConstraint(checks.at_least("events", 0), name="events_not_negative"),
    CheckConstraint(checks.together("worker", "lease_until"), name="worker_and_lease_together"),
    UniqueConstraint("automation_id", "trigger_id", "due_at", name="uq_runs_occurrence"),
    Index("ix_runs_state_id", "state", "id"),
    Index("ix_runs_automation_id_id", "automation_id", "id"),
    sqlite_autoincrement=True,
)

run_events = Table(
    "run_events",
    metadata,
    Column(
        "run_id",
        big_id(),
        ForeignKey("runs.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("document", long_text(), nullable=False),
)

run_idempotency_keys = Table(
    "run_idempotency_keys",
    metadata,
    Column("automation_id", key_text(100), primary_key=True),
    Column("key", key_text(300), primary_key=True),
    Column("run_id", big_id(), ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("body_hash", key_text(100), nullable=False),
    Column("used_at", Instant, nullable=False),
    CheckConstraint(checks.length("key", 1, 255), name="key_length"),
    CheckConstraint(checks.length_is("body_hash", 64), name="body_hash_length"),
    Index("ix_run_idempotency_keys_used_at", "used_at"),
    Index("ix_run_idempotency_keys_run_id", "run_id"),
)

run_log_lines = Table(
    "run_log_lines",
    metadata,
    Column(
        "run_id",
        big_id(),
        ForeignKey("runs.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("stream", key_text(20), nullable=False),
    Column("logged_at", Instant, nullable=False),
    Column("text", long_text(), nullable=False),
    CheckConstraint(checks.at_least("number", 1), name="number_positive"),
    CheckConstraint(checks.one_of("stream", STREAMS), name="stream_known"),
)
