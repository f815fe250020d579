"""The migrations on each database: up, down, offline, interrupted, and two at once."""

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from app.db import Database
from app.db.connecting import DatabaseLimits, build_engine
from app.db.migrating import alembic_config, current, exclusively, head, known, migrate
from app.errors import DatabaseUnavailable
from app.models import metadata
from tests.support.alembic_cli import CHECKOUT, alembic, alembic_output
from tests.support.databases import DIALECTS, fresh_database
from tests.support.rows import GOOD, insert_all, insert_row
from tests.support.schema import schema_of, through_shell

VERSIONS = CHECKOUT / "alembic" / "versions"


def revisions() -> list[str]:
    """Every revision, first to last."""
    scripts = ScriptDirectory.from_config(alembic_config()).walk_revisions()
    return [script.revision for script in scripts][::-1]


@pytest.fixture(params=DIALECTS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without a table, on each kind of database in turn."""
    with fresh_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", "mariadb"])
def undoable_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database whose DDL may be left half done: by commit, or by a DBA's own hand."""
    with fresh_database(request.param, tmp_path) as url:
        yield url


def downgrade(url: str, revision: str) -> None:
    engine = build_engine(url, DatabaseLimits(), autocommit=False)
    with exclusively(engine) as connection:
        config = alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    engine.dispose()


def offline(url: str, step: str, *, down: bool = False) -> str:
    written = io.StringIO()
    config = alembic_config(url)
    config.output_buffer = written
    (command.downgrade if down else command.upgrade)(config, step, sql=True)
    return written.getvalue()


def test_a_revision_is_named_like_its_file() -> None:
    for script in ScriptDirectory.from_config(alembic_config()).walk_revisions():
        assert Path(script.path).stem == script.revision
    assert len(list(VERSIONS.glob("*.py"))) == len(revisions())


def test_migrations_import_no_model() -> None:
    for file in VERSIONS.glob("*.py"):
        imported = [line for line in file.read_text().splitlines() if "import" in line.split(" ")]
        ours = [line for line in imported if " app" in line]
        assert all(
            line.startswith(("from app.db import checks", "from app.db.types import"))
            for line in ours
        ), (file, ours)


def test_only_revisions_of_this_release_are_known() -> None:
    assert known(head())
    assert not known("9999_of_a_later_release")


def test_the_first_revision_makes_the_two_tables_and_nothing_else(empty_url: str) -> None:
    database = Database(empty_url)
    migrate(database, "0001_automations")
    database.close()
    schema = schema_of(empty_url)
    assert set(schema) == {"automations", "automation_triggers"}
    assert all(table["indexes"] == [] for table in schema.values())


def test_each_step_goes_up_and_down_with_rows_in_the_tables(empty_url: str) -> None:
    database = Database(empty_url)
    schemas = [schema_of(empty_url)] if database.dialect != "sqlite" else [{}]
    for revision in revisions():
        migrate(database, revision)
        assert current(database) == revision
        schemas.append(schema_of(empty_url))
        database.write(_insert_what_is_missing)
    rows = _counted(database)
    for before, revision in zip(schemas[-2::-1], [*revisions()[-2::-1], "base"], strict=True):
        downgrade(empty_url, revision)
        assert schema_of(empty_url) == before
        assert _counted(database) == {t: n for t, n in rows.items() if t in before}
    for revision in revisions():
        migrate(database, revision)
    assert schema_of(empty_url) == schemas[-1]
    database.close()


def _insert_what_is_missing(connection: sa.Connection) -> None:
    for table in GOOD:
        exists = connection.dialect.has_table(connection, table)
        if exists and not connection.scalar(text(f"SELECT count(*) FROM {table}")):
            insert_row(connection, table)


def _counted(database: Database) -> dict[str, int]:
    def work(connection: sa.Connection) -> dict[str, int]:
        tables = [t for t in GOOD if connection.dialect.has_table(connection, t)]
        return {t: connection.scalar(text(f"SELECT count(*) FROM {t}")) for t in tables}

    return database.read(work)


def test_the_models_make_the_same_schema(empty_url: str, database_templates) -> None:
    database = Database(empty_url)
    metadata.create_all(database.writer)
    database.close()
    migrated = schema_of(database_templates[database.dialect])
    made = schema_of(empty_url)
    for table in migrated:
        assert made[table] == migrated[table], table
    assert set(made) == set(migrated)


def test_the_offline_sql_makes_and_unmakes_the_same_schema(
    empty_url: str, database_templates
) -> None:
    up = alembic_output(empty_url, "upgrade", "head", "--sql")
    through_shell(empty_url, up)
    dialect = sa.make_url(empty_url).get_backend_name()
    assert schema_of(empty_url) == schema_of(database_templates[dialect])
    database = Database(empty_url)
    assert current(database) == head()
    database.write(insert_all)
    database.close()
    through_shell(empty_url, alembic_output(empty_url, "downgrade", "head:base", "--sql"))
    assert schema_of(empty_url) == {}


def test_offline_and_online_steps_mix(empty_url: str, database_templates) -> None:
    database = Database(empty_url)
    for index, revision in enumerate(revisions()):
        if index % 2:
            migrate(database, revision)
        else:
            start = revisions()[index - 1] if index else "base"
            through_shell(empty_url, offline(empty_url, f"{start}:{revision}"))
        assert current(database) == revision
    assert schema_of(empty_url) == schema_of(database_templates[database.dialect])
    database.close()


def test_offline_sql_turns_foreign_keys_off_on_sqlite_before_anything_else(tmp_path: Path) -> None:
    sql = alembic_output(f"sqlite:///{tmp_path}/x.db", "upgrade", "head", "--sql")
    statements = [s.strip() for s in sql.split(";") if s.strip()]
    assert statements[0] == "PRAGMA foreign_keys=OFF"


def test_alembic_check_finds_nothing(database_url: str) -> None:
    done = alembic(database_url, "check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("dialect", ["postgresql", "mariadb"])
def test_alembic_check_notices_a_missing_check(dialect: str, tmp_path: Path) -> None:
    with fresh_database(dialect, tmp_path) as url:
        database = Database(url)
        migrate(database)
        drop = "ALTER TABLE automations DROP CONSTRAINT ck_automations_name_length"
        database.write(lambda c: c.execute(text(drop)))
        database.close()
        done = alembic(url, "check")
    assert done.returncode != 0
    assert "name_length" in done.stdout + done.stderr


def test_alembic_check_notices_a_missing_check_on_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    sql = alembic_output(url, "upgrade", "head", "--sql")
    line = "CONSTRAINT ck_automations_name_length CHECK (length(name) <= 1000)"
    assert line in sql
    through_shell(url, sql.replace(line, "CONSTRAINT ck_automations_other CHECK (1)"))
    done = alembic(url, "check")
    assert done.returncode != 0
    assert "name_length" in done.stdout + done.stderr


@pytest.mark.parametrize("step", range(len(revisions())))
def test_an_upgrade_that_stopped_anywhere_can_be_resumed(undoable_url: str, step: int) -> None:
    revision = revisions()[step]
    before = revisions()[step - 1] if step else "base"
    database = Database(undoable_url)
    if step:
        migrate(database, before)
    statements = _statements(offline(undoable_url, f"{before}:{revision}"))
    for done in range(len(statements)):
        _execute(undoable_url, statements[:done])
        migrate(database, revision)
        assert current(database) == revision
        if done == 0:
            whole = schema_of(undoable_url)
        assert schema_of(undoable_url) == whole, statements[:done]
        downgrade(undoable_url, before)
    database.close()


@pytest.mark.parametrize("step", range(len(revisions())))
def test_a_downgrade_that_stopped_anywhere_can_be_resumed(undoable_url: str, step: int) -> None:
    revision = revisions()[step]
    before = revisions()[step - 1] if step else "base"
    database = Database(undoable_url)
    statements = _statements(offline(undoable_url, f"{revision}:{before}", down=True))
    for done in range(len(statements)):
        migrate(database, revision)
        _execute(undoable_url, statements[:done])
        downgrade(undoable_url, before)
        assert current(database) == (before if step else None)
    database.close()


def _statements(sql: str) -> list[str]:
    lines = [line for line in sql.splitlines() if line and not line.startswith(("--", "PRAGMA"))]
    parts = [part.strip() for part in "\n".join(lines).split(";")]
    bookkeeping = ("CREATE TABLE alembic_version", "BEGIN", "COMMIT")
    return [p for p in parts if p and not p.startswith(bookkeeping) and "alembic_version" not in p]


def _execute(url: str, statements: list[str]) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement.replace("%", "%%"))
    engine.dispose()


def test_processes_that_migrate_at_once_do_it_once(empty_url: str, database_templates) -> None:
    program = (
        "import sys; from app.db import Database; from app.db.migrating import migrate;"
        "migrate(Database(sys.argv[1]))"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, empty_url],
            cwd=CHECKOUT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    database = Database(empty_url)
    assert current(database) == head()
    assert schema_of(empty_url) == schema_of(database_templates[database.dialect])
    database.close()


def test_migrating_what_is_at_head_changes_nothing(database: Database) -> None:
    database.write(insert_all)
    migrate(database)
    assert set(_counted(database).values()) == {1}


def test_a_parent_can_be_rebuilt_on_sqlite_without_losing_its_children(
    sqlite_database: Database, tmp_path: Path
) -> None:
    """The trap: with foreign keys on, a batch that rebuilds ``automations`` empties its triggers."""
    sqlite_database.write(insert_all)
    _migrate_with(
        sqlite_database,
        tmp_path,
        'with op.batch_alter_table("automations", recreate="always") as batch:\n'
        '        batch.add_column(sa.Column("colour", sa.Text()))',
    )
    assert set(_counted(sqlite_database).values()) == {1}
    with pytest.raises(Exception, match="FOREIGN KEY"):
        sqlite_database.write(lambda c: insert_row(c, "automation_triggers", automation_id="gone"))


def test_a_migration_that_orphans_rows_on_sqlite_is_refused_whole(
    sqlite_database: Database, tmp_path: Path
) -> None:
    sqlite_database.write(insert_all)
    with pytest.raises(DatabaseUnavailable, match="automation_triggers"):
        _migrate_with(sqlite_database, tmp_path, 'op.execute("DELETE FROM automations")')
    assert set(_counted(sqlite_database).values()) == {1}
    assert current(sqlite_database) == head()


def _migrate_with(database: Database, directory: Path, body: str) -> None:
    """Run one more migration after head, through the project's own env.py."""
    versions = directory / "versions"
    versions.mkdir()
    (versions / "9999_next.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f'revision = "9999_next"\ndown_revision = "{head()}"\n'
        f"def upgrade():\n    {body}\n"
    )
    engine = build_engine(database.url, DatabaseLimits(), autocommit=False)
    try:
        with exclusively(engine) as connection:
            config = alembic_config()
            config.set_main_option("version_locations", f"{VERSIONS}\n{versions}")
            config.set_main_option("path_separator", "newline")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def test_an_unreachable_database_is_unavailable_to_migrations() -> None:
    database = Database("postgresql://root@127.0.0.1:1/x", limits=DatabaseLimits(connect=1))
    with pytest.raises(DatabaseUnavailable):
        migrate(database)


def test_the_command_takes_a_password_with_percent_signs(tmp_path: Path) -> None:
    with fresh_database("mariadb", tmp_path) as url:
        parsed = sa.make_url(url)
        user, password = f"u_{parsed.database[-8:]}", "p%w%40d@/:"
        admin = Database(url)
        name = f"'{user}'@'127.0.0.1'"
        admin.write(
            lambda c: [
                c.exec_driver_sql(f"CREATE USER {name} IDENTIFIED BY %s", (password,)),
                c.exec_driver_sql(f"GRANT ALL ON {parsed.database}.* TO {name}"),
            ]
        )
        try:
            theirs = parsed.set(username=user, password=password)
            their_url = theirs.render_as_string(hide_password=False)
            assert "%25" in their_url
            alembic_output(their_url, "upgrade", "head")
            assert head() in alembic_output(their_url, "current")
            alembic_output(their_url, "upgrade", "head", "--sql")
        finally:
            admin.write(lambda c: c.exec_driver_sql(f"DROP USER {name}"))
            admin.close()


def test_a_database_of_a_later_release_is_left_as_it_is(empty_url: str) -> None:
    database = Database(empty_url)
    migrate(database)
    later = text("UPDATE alembic_version SET version_num = '9999_of_a_later_release'")
    database.write(lambda c: c.execute(later))
    migrate(database)
    assert current(database) == "9999_of_a_later_release"
    database.close()


def test_a_url_that_is_none_is_told_in_a_sentence() -> None:
    done = alembic("foo://user:s3cret@host/x", "current")
    assert done.returncode != 0
    told = done.stdout + done.stderr
    assert "BELLRINGER_DATABASE_URL" in told
    assert "Traceback" not in told and "s3cret" not in told
