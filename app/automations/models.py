"""The tables of the definitions, their history, and the instants from which triggers count.

``automations`` and ``automation_triggers`` hold configuration only: no timestamp, cursor, lease or
failure count ever stands in them. What has state has a table of its own.
"""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Table

from app.db import checks
from app.db.naming import metadata
from app.db.types import Flag, Instant, big_id, key_text, long_text

HISTORY_ACTIONS = ("create", "replace", "delete", "import")

automations = Table(
    "automations",
    metadata,
    Column("id", key_text(100), primary_key=True),
    Column("revision", key_text(100), nullable=False),
    Column("name", long_text(), nullable=False),
    Column("description", long_text()),
    Column("api_enabled", Flag, nullable=False),
    Column("target_repository", key_text(300), nullable=False),
    Column("target_ref", key_text(300), nullable=False),
    Column("target_workflow", key_text(300), nullable=False),
    CheckConstraint(checks.length("id", 1, 63), name="id_length"),
    CheckConstraint(checks.starts("id", "a-z0-9"), name="id_start"),
    CheckConstraint(checks.only("id", "a-z0-9-"), name="id_charset"),
    CheckConstraint(checks.length_is("revision", 64), name="revision_length"),
    CheckConstraint(checks.only("revision", "0-9a-f"), name="revision_charset"),
    CheckConstraint(checks.not_blank("name"), name="name_not_blank"),
    CheckConstraint(checks.at_most("name", 1_000), name="name_length"),
    CheckConstraint(checks.at_most("description", 100_000), name="description_length"),
    CheckConstraint(checks.flag("api_enabled"), name="api_enabled_boolean"),
    CheckConstraint(checks.length("target_repository", 3, 140), name="target_repository_length"),
    CheckConstraint(checks.length("target_ref", 1, 255), name="target_ref_length"),
    CheckConstraint(checks.length("target_workflow", 1, 255), name="target_workflow_length"),
)

automation_triggers = Table(
    "automation_triggers",
    metadata,
    Column(
        "automation_id",
        key_text(100),
        ForeignKey("automations.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("id", key_text(100), primary_key=True),
    Column("enabled", Flag, nullable=False),
    Column("expression", key_text(300), nullable=False),
    CheckConstraint(checks.length("id", 1, 63), name="id_length"),
    CheckConstraint(checks.starts("id", "a-z0-9"), name="id_start"),
    CheckConstraint(checks.only("id", "a-z0-9_-"), name="id_charset"),
    CheckConstraint(checks.flag("enabled"), name="enabled_boolean"),
    CheckConstraint(checks.not_blank("expression"), name="expression_not_blank"),
    CheckConstraint(checks.at_most("expression", 255), name="expression_length"),
    Index("ix_automation_triggers_enabled_expression", "enabled", "expression"),
)

automation_history = Table(
    "automation_history",
    metadata,
    Column("id", big_id(), primary_key=True, autoincrement=True),
    Column("automation_id", key_text(100), nullable=False),
    Column("action", key_text(20), nullable=False),
    Column("revision", key_text(100), nullable=False),
    Column("document", long_text(), nullable=False),
    Column("actor", key_text(300), nullable=False),
    Column("recorded_at", Instant, nullable=False),
    CheckConstraint(checks.length("automation_id", 1, 63), name="automation_id_length"),
    CheckConstraint(checks.one_of("action", HISTORY_ACTIONS), name="action_known"),
    CheckConstraint(checks.length_is("revision", 64), name="revision_length"),
    CheckConstraint(checks.only("revision", "0-9a-f"), name="revision_charset"),
    CheckConstraint(checks.length("actor", 1, 255), name="actor_length"),
    Index("ix_automation_history_automation_id_id", "automation_id", "id"),
    sqlite_autoincrement=True,
)

automation_trigger_arms = Table(
    "automation_trigger_arms",
    metadata,
    Column(
        "automation_id",
        key_text(100),
        ForeignKey("automations.id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("trigger_id", key_text(100), primary_key=True),
    Column("armed_at", Instant, nullable=False),
    Index("ix_automation_trigger_arms_armed_at", "armed_at"),
)
