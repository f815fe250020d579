"""Column types that store and compare the same on SQLite, PostgreSQL and MariaDB.

Text compares by byte everywhere: PostgreSQL sorts by locale and MariaDB folds case and ignores
trailing spaces unless told otherwise. The widths given to MariaDB lie above what the CHECKs allow, so
that a value that is too long meets the CHECK, by its name, and is never cut.
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Integer, SmallInteger, Text
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

_MARIADB = ("mariadb", "mysql")
_BY_BYTE: dict[str, Any] = {"charset": "utf8mb4", "collation": "utf8mb4_nopad_bin"}


def key_text(width: int) -> TypeEngine[str]:
    """Return a type for text that is part of a key; ``width`` bounds it on MariaDB alone."""
    return (
        Text()
        .with_variant(postgresql.TEXT(collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(width, **_BY_BYTE), *_MARIADB)
    )


def long_text() -> TypeEngine[str]:
    """Return a type for text that no index needs, up to 16 MiB."""
    return (
        Text()
        .with_variant(postgresql.TEXT(collation="C"), "postgresql")
        .with_variant(mysql.MEDIUMTEXT(**_BY_BYTE), *_MARIADB)
    )


def big_id() -> TypeEngine[int]:
    """Return a type for running numbers; SQLite counts up only in a plain INTEGER."""
    return BigInteger().with_variant(Integer(), "sqlite")


class Flag(TypeDecorator[bool]):
    """A boolean kept as 0 or 1, so that one CHECK holds it on all three."""

    impl = SmallInteger
    cache_ok = True

    def process_bind_param(self, value: bool | None, dialect: Dialect) -> int | None:
        """Turn a truth value into 0 or 1."""
        return None if value is None else int(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> bool | None:
        """Turn 0 or 1 into a truth value."""
        return None if value is None else value == 1


class Instant(TypeDecorator[datetime]):
    """An instant in UTC with microseconds; aware on the Python side, without exception."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type: MariaDB would drop the microseconds unless told how many."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        if dialect.name in _MARIADB:
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive datetime; bring an aware one to UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("an instant needs a time zone")
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the instant as an aware datetime in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


__all__ = ["Flag", "Instant", "big_id", "key_text", "long_text"]
