"""The table of live processes."""

from sqlalchemy import CheckConstraint, Column, Index, Integer, Table

from app.db import checks
from app.db.naming import metadata
from app.db.types import Instant, key_text, long_text

ROLES = ("scheduler", "worker")

nodes = Table(
    "nodes",
    metadata,
    Column("id", key_text(100), primary_key=True),
    Column("role", key_text(20), nullable=False),
    Column("host", key_text(300), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", key_text(100), nullable=False),
    Column("worker_group", key_text(100)),
    Column("started_at", Instant, nullable=False),
    Column("heartbeat_at", Instant, nullable=False),
    Column("problem", long_text()),
    CheckConstraint(checks.one_of("role", ROLES), name="role_known"),
    CheckConstraint(checks.length("id", 1, 63), name="id_length"),
    Index("ix_nodes_heartbeat_at", "heartbeat_at"),
)
