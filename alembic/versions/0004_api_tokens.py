"""API tokens: who may do what, as the hash of what only the holder knows."""

import sqlalchemy as sa
from alembic import op

from app.db import checks
from app.db.types import Instant, key_text, long_text

revision = "0004_api_tokens"
down_revision = "0003_runs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "api_tokens",
        sa.Column("id", key_text(100), nullable=False),
        sa.Column("name", long_text(), nullable=False),
        sa.Column("role", key_text(20), nullable=False),
        sa.Column("token_hash", key_text(100), nullable=False),
        sa.Column("created_at", Instant, nullable=False),
        sa.Column("created_by", key_text(300), nullable=False),
        sa.Column("expires_at", Instant),
        sa.Column("last_used_at", Instant),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_tokens_token_hash")),
        *(
            sa.CheckConstraint(condition, name=op.f(f"ck_api_tokens_{name}"))
            for name, condition in (
                ("id_length", checks.length("id", 1, 63)),
                ("name_not_blank", checks.not_blank("name")),
                ("name_length", checks.at_most("name", 200)),
                ("role_known", checks.one_of("role", ("viewer", "operator", "editor", "admin"))),
                ("token_hash_length", checks.length_is("token_hash", 64)),
                ("token_hash_charset", checks.only("token_hash", "0-9a-f")),
            )
        ),
        if_not_exists=True,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("api_tokens", if_exists=True)
