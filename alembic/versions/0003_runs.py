"""The ledger: occurrences of schedules, arms, runs with their events and logs, and live nodes."""

import sqlalchemy as sa
from alembic import op

from app.db import checks
from app.db.types import Instant, big_id, key_text, long_text

revision = "0003_runs"
down_revision = "0002_automation_history"
branch_labels = None
depends_on = None

_INDEXES = (
    ("automation_trigger_arms", ("armed_at",)),
    ("nodes", ("heartbeat_at",)),
    ("runs", ("state", "id")),
    ("runs", ("automation_id", "id")),
    ("run_idempotency_keys", ("used_at",)),
    ("run_idempotency_keys", ("run_id",)),
    ("automation_triggers", ("enabled", "expression")),
)
"""The last one stands on a table of an earlier revision."""


def _name_of(table: str, columns: tuple[str, ...]) -> str:
    return f"ix_{table}_{'_'.join(columns)}"


def _checks(table: str, **conditions: sa.ColumnElement[bool]) -> list[sa.CheckConstraint]:
    return [
        sa.CheckConstraint(condition, name=op.f(f"ck_{table}_{name}"))
        for name, condition in conditions.items()
    ]


def _belongs_to_run(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["run_id"], ["runs.id"], ondelete="CASCADE", name=op.f(f"fk_{table}_runs")
    )


def upgrade() -> None:
    """Create the tables, and the index by which the scheduler finds what is enabled."""
    op.create_table(
        "nodes",
        sa.Column("id", key_text(100), nullable=False),
        sa.Column("role", key_text(20), nullable=False),
        sa.Column("host", key_text(300), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", key_text(100), nullable=False),
        sa.Column("worker_group", key_text(100)),
        sa.Column("started_at", Instant, nullable=False),
        sa.Column("heartbeat_at", Instant, nullable=False),
        sa.Column("problem", long_text()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
        *_checks(
            "nodes",
            role_known=checks.one_of("role", ("scheduler", "worker")),
            id_length=checks.length("id", 1, 63),
        ),
        if_not_exists=True,
    )
    op.create_table(
        "schedule_occurrences",
        sa.Column("expression", key_text(300), nullable=False),
        sa.Column("due_at", Instant, nullable=False),
        sa.Column("state", key_text(20), nullable=False),
        sa.Column("claimed_at", Instant, nullable=False),
        sa.Column("node", key_text(100), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("expression", "due_at", name=op.f("pk_schedule_occurrences")),
        *_checks(
            "schedule_occurrences",
            state_known=checks.one_of("state", ("fired", "missed")),
            runs_not_negative=checks.at_least("runs", 0),
        ),
        if_not_exists=True,
    )
    op.create_table(
        "automation_trigger_arms",
        sa.Column("automation_id", key_text(100), nullable=False),
        sa.Column("trigger_id", key_text(100), nullable=False),
        sa.Column("armed_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint(
            "automation_id", "trigger_id", name=op.f("pk_automation_trigger_arms")
        ),
        sa.ForeignKeyConstraint(
            ["automation_id"],
            ["automations.id"],
            ondelete="CASCADE",
            name=op.f("fk_automation_trigger_arms_automations"),
        ),
        if_not_exists=True,
    )
    op.create_table(
        "runs",
        sa.Column("id", big_id(), nullable=False, autoincrement=True),
        sa.Column("state", key_text(20), nullable=False),
        sa.Column("automation_id", key_text(100), nullable=False),
        sa.Column("automation_name", long_text(), nullable=False),
        sa.Column("automation_revision", key_text(100), nullable=False),
        sa.Column("trigger_type", key_text(20), nullable=False),
        sa.Column("trigger_id", key_text(100), nullable=False),
        sa.Column("target_repository", key_text(300), nullable=False),
        sa.Column("target_ref", key_text(300), nullable=False),
        sa.Column("target_workflow", key_text(300), nullable=False),
        sa.Column("due_at", Instant),
        sa.Column("queued_at", Instant, nullable=False),
        sa.Column("started_at", Instant),
        sa.Column("finished_at", Instant),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("commit_hash", key_text(100)),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("reason_code", key_text(100)),
        sa.Column("reason_detail", long_text()),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("worker", key_text(100)),
        sa.Column("lease_until", Instant),
        sa.Column("cancel_requested_at", Instant),
        sa.Column("rerun_of", big_id()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint(
            "automation_id", "trigger_id", "due_at", name=op.f("uq_runs_occurrence")
        ),
        *_checks(
            "runs",
            state_known=checks.one_of(
                "state", ("queued", "running", "succeeded", "failed", "canceled", "missed")
            ),
            trigger_type_known=checks.one_of("trigger_type", ("api", "schedule", "plugin")),
            attempt_not_negative=checks.at_least("attempt", 0),
            max_attempts_range=checks.between("max_attempts", 1, 100),
            events_not_negative=checks.at_least("events", 0),
            worker_and_lease_together=checks.together("worker", "lease_until"),
        ),
        sqlite_autoincrement=True,
        if_not_exists=True,
    )
    op.create_table(
        "run_events",
        sa.Column("run_id", big_id(), nullable=False, autoincrement=False),
        sa.Column("document", long_text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_events")),
        _belongs_to_run("run_events"),
        if_not_exists=True,
    )
    op.create_table(
        "run_idempotency_keys",
        sa.Column("automation_id", key_text(100), nullable=False),
        sa.Column("key", key_text(300), nullable=False),
        sa.Column("run_id", big_id(), nullable=False),
        sa.Column("body_hash", key_text(100), nullable=False),
        sa.Column("used_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("automation_id", "key", name=op.f("pk_run_idempotency_keys")),
        _belongs_to_run("run_idempotency_keys"),
        *_checks(
            "run_idempotency_keys",
            key_length=checks.length("key", 1, 255),
            body_hash_length=checks.length_is("body_hash", 64),
        ),
        if_not_exists=True,
    )
    op.create_table(
        "run_log_lines",
        sa.Column("run_id", big_id(), nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("stream", key_text(20), nullable=False),
        sa.Column("logged_at", Instant, nullable=False),
        sa.Column("text", long_text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_run_log_lines")),
        _belongs_to_run("run_log_lines"),
        *_checks(
            "run_log_lines",
            number_positive=checks.at_least("number", 1),
            stream_known=checks.one_of("stream", ("stdout", "stderr", "system")),
        ),
        if_not_exists=True,
    )
    for table, columns in _INDEXES:
        op.create_index(_name_of(table, columns), table, list(columns), if_not_exists=True)


def downgrade() -> None:
    """Drop all of it, children first."""
    table, columns = _INDEXES[-1]
    op.drop_index(_name_of(table, columns), table, if_exists=True)
    for table in (
        "run_log_lines",
        "run_idempotency_keys",
        "run_events",
        "runs",
        "automation_trigger_arms",
        "schedule_occurrences",
        "nodes",
    ):
        op.drop_table(table, if_exists=True)
