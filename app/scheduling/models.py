"""The table of occurrences: one row per instant at which one expression was due."""

from sqlalchemy import CheckConstraint, Column, Integer, Table

from app.db import checks
from app.db.naming import metadata
from app.db.types import Instant, key_text

OCCURRENCE_STATES = ("fired", "missed")

schedule_occurrences = Table(
    "schedule_occurrences",
    metadata,
    Column("expression", key_text(300), primary_key=True),
    Column("due_at", Instant, primary_key=True),
    Column("state", key_text(20), nullable=False),
    Column("claimed_at", Instant, nullable=False),
    Column("node", key_text(100), nullable=False),
    Column("runs", Integer, nullable=False),
    CheckConstraint(checks.one_of("state", OCCURRENCE_STATES), name="state_known"),
    CheckConstraint(checks.at_least("runs", 0), name="runs_not_negative"),
)
