"""What each automation was, and who changed it when; outlives the automation."""

import sqlalchemy as sa
from alembic import op

from app.db import checks
from app.db.types import Instant, big_id, key_text, long_text

revision = "0002_automation_history"
down_revision = "0001_automations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and its index."""
    op.create_table(
        "automation_history",
        sa.Column("id", big_id(), nullable=False, autoincrement=True),
        sa.Column("automation_id", key_text(100), nullable=False),
        sa.Column("action", key_text(20), nullable=False),
        sa.Column("revision", key_text(100), nullable=False),
        sa.Column("document", long_text(), nullable=False),
        sa.Column("actor", key_text(300), nullable=False),
        sa.Column("recorded_at", Instant, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_automation_history")),
        *(
            sa.CheckConstraint(condition, name=op.f(f"ck_automation_history_{name}"))
            for name, condition in (
                ("automation_id_length", checks.length("automation_id", 1, 63)),
                (
                    "action_known",
                    checks.one_of("action", ("create", "replace", "delete", "import")),
                ),
                ("revision_length", checks.length_is("revision", 64)),
                ("revision_charset", checks.only("revision", "0-9a-f")),
                ("actor_length", checks.length("actor", 1, 255)),
            )
        ),
        sqlite_autoincrement=True,
        if_not_exists=True,
    )
    op.create_index(
        "ix_automation_history_automation_id_id",
        "automation_history",
        ["automation_id", "id"],
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("automation_history", if_exists=True)
