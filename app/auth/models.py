"""The table of API tokens; the token itself is stored nowhere."""

from sqlalchemy import CheckConstraint, Column, Table, UniqueConstraint

from app.db import checks
from app.db.naming import metadata
from app.db.types import Instant, key_text, long_text

ROLES = ("viewer", "operator", "editor", "admin")
"""Each role holds what the ones before it may do."""

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", key_text(100), primary_key=True),
    Column("name", long_text(), nullable=False),
    Column("role", key_text(20), nullable=False),
    Column("token_hash", key_text(100), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", key_text(300), nullable=False),
    Column("expires_at", Instant),
    Column("last_used_at", Instant),
    CheckConstraint(checks.length("id", 1, 63), name="id_length"),
    CheckConstraint(checks.not_blank("name"), name="name_not_blank"),
    CheckConstraint(checks.at_most("name", 200), name="name_length"),
    CheckConstraint(checks.one_of("role", ROLES), name="role_known"),
    CheckConstraint(checks.length_is("token_hash", 64), name="token_hash_length"),
    CheckConstraint(checks.only("token_hash", "0-9a-f"), name="token_hash_charset"),
    UniqueConstraint("token_hash", name="uq_api_tokens_token_hash"),
)
