"""Runs the migrations, online and offline, on SQLite, PostgreSQL and MariaDB.

The connection comes from whoever called (``bellringer migrate``, the tests), or else from the same
settings that the service reads.
"""

import os

from alembic import context
from alembic.util import CommandError
from sqlalchemy import Connection

from app.db.connecting import DatabaseLimits, build_engine, normalize_url
from app.db.migrating import exclusively, sqlite_foreign_keys_off
from app.errors import SettingsInvalid
from app.models import metadata
from app.settings import load

OPTIONS = {
    "target_metadata": metadata,
    "compare_type": True,
    "transaction_per_migration": True,
    # Without these two, CHECK constraints are not compared at all.
    "autogenerate_plugins": ["alembic.autogenerate.*", "alembic.ext.checkconstraint_byname"],
}


def url() -> str:
    """Return the database's URL: the caller's, or that of the settings."""
    given = context.config.get_main_option("sqlalchemy.url")
    try:
        return given or normalize_url(load(os.environ).database_url)
    except SettingsInvalid as error:
        raise CommandError(str(error)) from None


def run_offline() -> None:
    """Write the SQL out, for a DBA to read and to pipe into the database's own shell."""
    context.configure(url=url(), literal_binds=True, **OPTIONS)
    sqlite = context.get_context().dialect.name == "sqlite"
    if sqlite:
        context.execute("PRAGMA foreign_keys=OFF")
    with context.begin_transaction():
        context.run_migrations()


def run_on(connection: Connection) -> None:
    """Migrate through ``connection``; on SQLite foreign keys are off meanwhile and checked after."""
    with sqlite_foreign_keys_off(connection):
        context.configure(
            connection=connection,
            render_as_batch=connection.dialect.name == "sqlite",
            **OPTIONS,
        )
        with context.begin_transaction():
            context.run_migrations()


def run_online() -> None:
    """Migrate over the caller's connection, or over one of our own."""
    connection = context.config.attributes.get("connection")
    if connection is not None:
        run_on(connection)
        return
    engine = build_engine(url(), DatabaseLimits(statement=3600), autocommit=False)
    with exclusively(engine) as connection:
        run_on(connection)
    engine.dispose()


if context.is_offline_mode():
    run_offline()
else:
    run_online()
