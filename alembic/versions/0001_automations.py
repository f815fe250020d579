"""The definitions: automations and their schedule triggers."""

import sqlalchemy as sa
from alembic import op

from app.db import checks
from app.db.types import Flag, key_text, long_text

revision = "0001_automations"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "automations",
        sa.Column("id", key_text(100), nullable=False),
        sa.Column("revision", key_text(100), nullable=False),
        sa.Column("name", long_text(), nullable=False),
        sa.Column("description", long_text()),
        sa.Column("api_enabled", Flag, nullable=False),
        sa.Column("target_repository", key_text(300), nullable=False),
        sa.Column("target_ref", key_text(300), nullable=False),
        sa.Column("target_workflow", key_text(300), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automations")),
        *(
            sa.CheckConstraint(condition, name=op.f(f"ck_automations_{name}"))
            for name, condition in (
                ("id_length", checks.length("id", 1, 63)),
                ("id_start", checks.starts("id", "a-z0-9")),
                ("id_charset", checks.only("id", "a-z0-9-")),
                ("revision_length", checks.length_is("revision", 64)),
                ("revision_charset", checks.only("revision", "0-9a-f")),
                ("name_not_blank", checks.not_blank("name")),
                ("name_length", checks.at_most("name", 1_000)),
                ("description_length", checks.at_most("description", 100_000)),
                ("api_enabled_boolean", checks.flag("api_enabled")),
                ("target_repository_length", checks.length("target_repository", 3, 140)),
                ("target_ref_length", checks.length("target_ref", 1, 255)),
                ("target_workflow_length", checks.length("target_workflow", 1, 255)),
            )
        ),
        if_not_exists=True,
    )
    op.create_table(
        "automation_triggers",
        sa.Column("automation_id", key_text(100), nullable=False),
        sa.Column("id", key_text(100), nullable=False),
        sa.Column("enabled", Flag, nullable=False),
        sa.Column("expression", key_text(300), nullable=False),
        sa.PrimaryKeyConstraint("automation_id", "id", name=op.f("pk_automation_triggers")),
        sa.ForeignKeyConstraint(
            ["automation_id"],
            ["automations.id"],
            ondelete="CASCADE",
            name=op.f("fk_automation_triggers_automations"),
        ),
        *(
            sa.CheckConstraint(condition, name=op.f(f"ck_automation_triggers_{name}"))
            for name, condition in (
                ("id_length", checks.length("id", 1, 63)),
                ("id_start", checks.starts("id", "a-z0-9")),
                ("id_charset", checks.only("id", "a-z0-9_-")),
                ("enabled_boolean", checks.flag("enabled")),
                ("expression_not_blank", checks.not_blank("expression")),
                ("expression_length", checks.at_most("expression", 255)),
            )
        ),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop both tables, children first."""
    op.drop_table("automation_triggers", if_exists=True)
    op.drop_table("automations", if_exists=True)
