"""The database: how it is reached, what its columns and CHECKs are made of, how one writes to it."""

from app.db.connecting import DatabaseLimits
from app.db.database import Database, open_database

__all__ = ["Database", "DatabaseLimits", "open_database"]
