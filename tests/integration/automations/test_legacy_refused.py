"""A legacy directory with anything wrong in it is refused whole, and every error of it is told."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from app.automations.legacy_files import FILE_LIMIT
from app.automations.store import AutomationStore
from app.db import Database, DatabaseLimits
from app.errors import DatabaseUnavailable, ImportRefused
from tests.support.legacy import GOOD, MINIMAL, listing, run


@pytest.fixture
def store(database: Database) -> AutomationStore:
    return AutomationStore(database)


def refused(database: Database, directory: Path) -> tuple[str, ...]:
    """Import what must be refused, and check that it left everything as it was."""
    before = listing(directory.parent)
    with pytest.raises(ImportRefused) as caught:
        run(database, directory)
    assert listing(directory.parent) == before
    assert AutomationStore(database).count() == 0
    count = text("SELECT count(*) FROM automation_history")
    assert database.read(lambda c: c.scalar(count)) == 0
    assert str(directory) in str(caught.value)
    return caught.value.problems


def test_every_error_of_every_file_is_listed_and_nothing_is_written(
    database: Database, directory: Path
) -> None:
    (directory / "a-good.toml").write_text(GOOD)
    (directory / "b-syntax.toml").write_text('name = "x"\n\nx = @\n')
    (directory / "c-bytes.toml").write_bytes(b'name = "x"\n# \xff\n')
    (directory / "D.toml").write_text(MINIMAL)
    (directory / "e-rules.toml").write_text(
        GOOD.replace("acme/shop", "acme").replace("0  3", "61 3").replace("Nightly", " ")
    )
    (directory / "f-huge.toml").write_bytes(MINIMAL.encode() + b"#" * FILE_LIMIT)
    (directory / ".toml").write_text(MINIMAL)
    problems = refused(database, directory)
    by_file: dict[str, list[str]] = {}
    for problem in problems:
        name, _, sentence = problem.partition(": ")
        by_file.setdefault(name, []).append(sentence)
    assert set(by_file) == {
        *("b-syntax.toml", "c-bytes.toml", "D.toml", "e-rules.toml", "f-huge.toml", ".toml"),
    }
    assert "line 3" in by_file["b-syntax.toml"][0]
    assert "not UTF-8 (at line 2)" in by_file["c-bytes.toml"][0]
    assert "id" in by_file["D.toml"][0]
    assert len(by_file["e-rules.toml"]) == 3
    assert by_file["e-rules.toml"][0].startswith("/name: ")
    assert "1,048,576" in by_file["f-huge.toml"][0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id = 'a'\n" + MINIMAL, "/id: There is no such field"),
        ("revision = 'a'\n" + MINIMAL, "/revision: There is no such field"),
        (MINIMAL + "colour = 'red'\n", "/colour: There is no such field"),
        (GOOD.replace('type = "api"', 'type = "api"\ncolour = 1'), "/triggers/1/colour"),
        (GOOD.replace("enabled = true\nexp", "exp"), "/triggers/0/enabled: The field 'enabled'"),
        (GOOD[: GOOD.rindex("enabled")], "/triggers/1/enabled: The field 'enabled' is required"),
        (GOOD.replace("press-me", "nightly"), "/triggers/0/id"),
        (GOOD.replace('"api"', '"event"'), "/triggers/1/type"),
        (GOOD.replace("[target]", "[targets]"), "/target: The field 'target' is required"),
        (MINIMAL + "triggers = {}\n", "/triggers: Triggers are a list"),
        (MINIMAL + "description = 2026-01-01\n", "/description: This is a string"),
        (MINIMAL.replace('"n"', '"\\u0007"'), "/name: A name holds no control characters"),
        (MINIMAL + "x = " + "[" * 5_000, "too deep"),
        (MINIMAL + "x = " + "9" * 5_000, "too long"),
        ("", "/name: The field 'name' is required"),
        ("\ufeff" + MINIMAL, "is not TOML"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_by_its_name(
    sqlite_database: Database, directory: Path, content: str, said: str
) -> None:
    (directory / "a.toml").write_text(content)
    problems = refused(sqlite_database, directory)
    assert all(problem.startswith("a.toml: ") for problem in problems)
    assert any(said in problem for problem in problems), problems


def test_a_description_may_not_be_null_but_absent(
    sqlite_database: Database, directory: Path
) -> None:
    (directory / "a.toml").write_text(MINIMAL)
    run(sqlite_database, directory)
    assert AutomationStore(sqlite_database).get("a").draft.description is None


@pytest.mark.parametrize("name", [b"\xff.toml", b"a b.toml", "é.toml".encode(), b"a\nb.toml"])
def test_a_file_name_that_is_no_id_is_refused_in_one_printable_line(
    sqlite_database: Database, directory: Path, name: bytes
) -> None:
    Path(os.fsdecode(os.fsencode(directory) + b"/" + name)).write_text(MINIMAL)
    (problem,) = refused(sqlite_database, directory)
    assert problem.isascii()
    assert problem.isprintable()


def test_a_file_that_cannot_be_read_is_refused(sqlite_database: Database, directory: Path) -> None:
    """Reading a process's own memory at zero fails, for root too."""
    (directory / "a.toml").symlink_to("/proc/self/mem")
    (problem,) = refused(sqlite_database, directory)
    assert problem.startswith("a.toml: cannot be read: ")


def test_a_refused_directory_is_imported_once_it_is_mended(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    (directory / "a.toml").write_text(GOOD)
    (directory / "b.toml").write_text("nonsense")
    refused(database, directory)
    (directory / "b.toml").write_text(MINIMAL)
    assert run(database, directory).imported == ("a", "b")


def test_a_database_that_is_away_leaves_the_directory(directory: Path) -> None:
    (directory / "a.toml").write_text(GOOD)
    database = Database("postgresql://root@127.0.0.1:1/x", limits=DatabaseLimits(connect=1))
    for dry in (True, False):
        with pytest.raises(DatabaseUnavailable):
            run(database, directory, dry_run=dry)
    assert (directory / "a.toml").exists()


# --- fuzz -------------------------------------------------------------------------------------------

_pieces = st.sampled_from(
    [
        *GOOD.splitlines(keepends=True),
        "\n",
        '"',
        "[",
        "]",
        "=",
        "{",
        "}",
        "'''",
        "\\u00e9",
        "\\uD800",
    ]
)
_content = (
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass"))
    | st.lists(_pieces, max_size=30).map(lambda parts: "".join(parts).encode())
    | st.tuples(st.integers(0, len(GOOD)), st.binary(max_size=4)).map(
        lambda cut: GOOD.encode()[: cut[0]] + cut[1] + GOOD.encode()[cut[0] :]
    )
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(content=_content)
def test_whatever_a_file_holds_it_is_imported_or_refused(
    sqlite_database: Database, directory: Path, content: bytes
) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    (directory / "a.toml").write_bytes(content)
    try:
        report = run(sqlite_database, directory, dry_run=True)
    except ImportRefused as error:
        assert all(p.startswith("a.toml: ") for p in error.problems)
    else:
        assert report.imported == ("a",)
