"""What a database's schema is, as plain values to compare, and the databases' own shells."""

import subprocess
from typing import Any

from sqlalchemy import Engine, create_engine, inspect, make_url

from app.db.connecting import normalize_url

Schema = dict[str, Any]


def schema_of(url: str) -> Schema:
    """Return every table of the database with its columns, keys, indexes and CHECKs."""
    engine = create_engine(normalize_url(url))
    try:
        names = inspect(engine).get_table_names()
        return {name: _table(engine, name) for name in names if name != "alembic_version"}
    finally:
        engine.dispose()


def _table(engine: Engine, name: str) -> dict[str, Any]:
    look = inspect(engine)
    return {
        "columns": {
            c["name"]: (
                repr(c["type"]),
                getattr(c["type"], "collation", None),
                c["nullable"],
                c.get("default"),
            )
            for c in look.get_columns(name)
        },
        "primary key": (
            look.get_pk_constraint(name)["constrained_columns"],
            # MariaDB calls every primary key PRIMARY.
            look.get_pk_constraint(name)["name"],
        ),
        "foreign keys": sorted(
            (
                str(f["name"]),
                f["constrained_columns"],
                f["referred_table"],
                f["referred_columns"],
                str(f["options"].get("ondelete")),
            )
            for f in look.get_foreign_keys(name)
        ),
        "indexes": sorted(
            (str(i["name"]), i["column_names"], bool(i["unique"])) for i in look.get_indexes(name)
        ),
        "unique": sorted(
            (str(u["name"]), u["column_names"]) for u in look.get_unique_constraints(name)
        ),
        "checks": sorted((str(c["name"]), c["sqltext"]) for c in look.get_check_constraints(name)),
    }


def through_shell(url: str, sql: str) -> None:
    """Pipe ``sql`` into the database's own command-line client, which must take all of it."""
    parsed = make_url(url)
    command = {
        "sqlite": ["sqlite3", "-bail", str(parsed.database)],
        "postgresql": [
            *("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(parsed.host)),
            *("-U", str(parsed.username), str(parsed.database)),
        ],
        "mariadb": [
            *("mariadb", "--default-character-set=utf8mb4", f"-h{parsed.host}"),
            *(f"-u{parsed.username}", str(parsed.database)),
        ],
    }[parsed.get_backend_name()]
    done = subprocess.run(
        command, input=sql, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
