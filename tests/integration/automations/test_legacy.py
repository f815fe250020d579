"""The import of a legacy directory, on each database: every sentence of its contract."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from app.automations.legacy import ImportReport, import_directory
from app.automations.legacy_files import FILE_LIMIT
from app.automations.models import automation_trigger_arms
from app.automations.revision import revision_of
from app.automations.store import ANY, AutomationStore
from app.db import Database, DatabaseLimits
from app.errors import DatabaseUnavailable, ImportRefused
from tests.support.drafts import SteppedClock, draft

GOOD = """\
name = "Nightly"
description = "Cut a build"  # a comment is part of the bytes

[target]
repository = "acme/shop"
ref = "main"
workflow = "release"

[[triggers]]
type = "schedule"
id = "nightly"
enabled = true
expression = "0  3 * * *"

[[triggers]]
type = "api"
id = "press-me"
enabled = true
"""
MINIMAL = 'name = "n"\ntarget = { repository = "acme/shop", ref = "main", workflow = "w" }\n'
STAMP = "automations.imported-20260101T120000Z"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "automations"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def store(database: Database) -> AutomationStore:
    return AutomationStore(database)


def run(database: Database, directory: Path, **options) -> ImportReport:
    return import_directory(database, directory, SteppedClock(), **options)


def listing(directory: Path) -> Mapping[str, bytes | None]:
    return {
        str(p.relative_to(directory)): p.read_bytes()
        if p.is_file() and not p.is_symlink()
        else None
        for p in sorted(directory.rglob("*"))
    }


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


# --- nothing to do ----------------------------------------------------------------------------------


def test_no_directory_is_nothing_to_do(sqlite_database: Database, tmp_path: Path) -> None:
    absent = tmp_path / "automations"
    assert run(sqlite_database, absent) == ImportReport(absent)
    absent.write_text("a file of that name is no directory")
    assert run(sqlite_database, absent) == ImportReport(absent)
    assert absent.is_file()


def test_a_directory_without_a_toml_file_stays(sqlite_database: Database, directory: Path) -> None:
    assert run(sqlite_database, directory) == ImportReport(directory)
    (directory / "README.md").write_text("# hello")
    (directory / "below").mkdir()
    (directory / "below" / "x.toml").write_text("nonsense")
    assert run(sqlite_database, directory) == ImportReport(directory)
    assert directory.is_dir()


# --- success ----------------------------------------------------------------------------------------


def test_a_directory_is_imported_and_renamed(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    (directory / "nightly.toml").write_text(GOOD)
    (directory / "b.toml").write_text(MINIMAL)
    before = listing(directory)
    report = run(database, directory)
    assert report == ImportReport(
        directory,
        imported=("b", "nightly"),
        backup=directory.with_name(f"{STAMP}.bak"),
    )
    assert not directory.exists()
    assert listing(report.backup) == before
    read = store.get("nightly")
    assert read.draft == draft(
        "Nightly", {"nightly": "0 3 * * *"}, api=True, description="Cut a build"
    )
    assert read.revision == hashlib.sha256(GOOD.encode()).hexdigest()
    assert [a.id for a in store.list()] == ["b", "nightly"]
    (entry,) = store.history("nightly")
    assert (entry.action, entry.actor, entry.revision) == ("import", "import", read.revision)
    arms = database.read(lambda c: c.execute(automation_trigger_arms.select()).all())
    assert [(a.automation_id, a.trigger_id) for a in arms] == [("nightly", "nightly")]
    assert run(database, directory) == ImportReport(directory)


def test_the_revision_is_that_of_the_bytes_until_the_next_replace(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    content = GOOD.replace("\n", "\r\n").encode() + "# é\n".encode()
    (directory / "a.toml").write_bytes(content)
    run(database, directory)
    imported = store.get("a")
    assert imported.revision == hashlib.sha256(content).hexdigest()
    replaced = store.replace("a", frozenset({imported.revision}), imported.draft, "x")
    assert replaced.changed
    assert store.revision("a") == revision_of(imported.draft) != imported.revision
    assert [e.action for e in store.history("a")] == ["replace", "import"]


def test_what_sql_has_wins_as_a_whole(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    theirs = store.create("nightly", draft("in SQL", {"other": "0 9 * * *"}), "x")
    (directory / "nightly.toml").write_text(GOOD)
    (directory / "new.toml").write_text(GOOD)
    report = run(database, directory)
    assert (report.imported, report.skipped) == (("new",), ("nightly",))
    assert store.get("nightly") == theirs
    assert len(store.history("nightly")) == 1


def test_what_was_deleted_since_stays_deleted(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    (directory / "nightly.toml").write_text(GOOD)
    report = run(database, directory)
    store.delete("nightly", ANY, "x")
    report.backup.rename(directory)
    again = run(database, directory)
    assert (again.imported, again.skipped) == ((), ("nightly",))
    assert again.backup is not None
    assert store.list() == []


def test_other_names_and_what_is_below_are_ignored(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    (directory / "a.toml").write_text(MINIMAL)
    for name in ("b.TOML", "c.toml~", "d.toml.bak", "e", ".#f", "toml", "g.json"):
        (directory / name).write_bytes(b"\xff nonsense")
    (directory / "below").mkdir()
    (directory / "below" / "h.toml").write_text("nonsense")
    (directory / "directory.toml").mkdir()
    os.mkfifo(directory / "pipe.toml")
    (directory / "dangling.toml").symlink_to("nowhere")
    (directory / "loop.toml").symlink_to("loop.toml")
    assert run(database, directory).imported == ("a",)
    assert [a.id for a in store.list()] == ["a"]


def test_a_file_is_read_through_a_symlink(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    (directory.parent / "elsewhere").write_text(GOOD)
    (directory / "linked.toml").symlink_to("../elsewhere")
    report = run(database, directory)
    assert report.imported == ("linked",)
    assert store.get("linked").revision == hashlib.sha256(GOOD.encode()).hexdigest()


def test_a_linked_directory_is_imported_too(
    store: AutomationStore, database: Database, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.toml").write_text(MINIMAL)
    (tmp_path / "automations").symlink_to("real")
    report = run(database, tmp_path / "automations")
    assert report.imported == ("a",)
    assert not (tmp_path / "automations").exists()
    assert (tmp_path / "real" / "a.toml").exists()


def test_a_trigger_that_never_fires_is_imported_with_a_warning(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    (directory / "never.toml").write_text(GOOD.replace("0  3 * * *", "0 0 30 2 *"))
    (warning,) = run(database, directory).warnings
    assert "never.toml" in warning
    assert "'nightly'" in warning
    assert "never fires" in warning
    assert store.get("never") is not None


def test_progress_is_told_file_by_file(sqlite_database: Database, directory: Path) -> None:
    for name in "abc":
        (directory / f"{name}.toml").write_text(MINIMAL)
    told: list[tuple[int, int]] = []
    run(sqlite_database, directory, progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_dry_run_says_what_would_be_and_writes_nothing(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    store.create("known", draft(), "x")
    store.create("gone", draft(), "x")
    store.delete("gone", ANY, "x")
    for name in ("known", "gone", "new"):
        (directory / f"{name}.toml").write_text(GOOD)
    before = listing(directory.parent)
    report = run(database, directory, dry_run=True)
    assert (report.imported, report.skipped, report.backup) == (("new",), ("gone", "known"), None)
    assert listing(directory.parent) == before
    assert [a.id for a in store.list()] == ["known"]
    (directory / "bad.toml").write_text("nonsense")
    with pytest.raises(ImportRefused):
        run(database, directory, dry_run=True)


# --- refused ----------------------------------------------------------------------------------------


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


# --- the rename -------------------------------------------------------------------------------------


def test_a_backup_of_the_same_second_gets_a_suffix(
    sqlite_database: Database, directory: Path
) -> None:
    names = []
    for n in range(3):
        directory.mkdir(exist_ok=True)
        (directory / f"a{n}.toml").write_text(MINIMAL)
        names.append(run(sqlite_database, directory).backup.name)
    assert names == [f"{STAMP}.bak", f"{STAMP}-2.bak", f"{STAMP}-3.bak"]


def test_a_rename_that_fails_is_reported_and_the_next_run_renames(
    store: AutomationStore, database: Database, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that is somebody's mount point can't be renamed; nor, to its owner, this one."""
    (directory / "a.toml").write_text(MINIMAL)

    def busy(self: Path, target: Path) -> Path:
        raise OSError(16, "Device or resource busy")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", busy)
        report = run(database, directory)
    assert report.imported == ("a",)
    assert report.backup is None
    assert "Device or resource busy" in report.rename_problem
    assert (directory / "a.toml").exists()
    store.replace("a", ANY, draft("changed since"), "x")
    again = run(database, directory)
    assert (again.imported, again.skipped) == ((), ("a",))
    assert again.backup.is_dir()
    assert store.get("a").draft == draft("changed since")


def test_a_file_that_comes_while_others_are_imported_is_imported_too(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    (directory / "a.toml").write_text(MINIMAL)

    def progress(_done: int, of: int) -> None:
        if of == 1:
            (directory / "late.toml").write_text(GOOD)

    report = run(database, directory, progress=progress)
    assert report.imported == ("a", "late")
    assert report.skipped == ()
    assert report.backup.is_dir()
    assert [a.id for a in store.list()] == ["a", "late"]


def test_a_directory_that_goes_while_it_is_read_is_taken_as_done(
    store: AutomationStore, database: Database, directory: Path
) -> None:
    for name in "ab":
        (directory / f"{name}.toml").write_text(MINIMAL)
    away = directory.with_name("away")

    def progress(done: int, _of: int) -> None:
        if done == 1:
            directory.rename(away)

    report = run(database, directory, progress=progress)
    assert report == ImportReport(directory)
    assert store.list() == []
    shutil.rmtree(away)


def test_a_directory_that_never_stands_still_is_reported(
    sqlite_database: Database, directory: Path
) -> None:
    (directory / "a.toml").write_text(MINIMAL)
    count = iter(range(1_000))
    report = run(
        sqlite_database,
        directory,
        progress=lambda done, of: (
            done == of and (directory / f"n{next(count)}.toml").write_text(MINIMAL)
        ),
    )
    assert report.backup is None
    assert "kept changing" in report.rename_problem
    assert directory.is_dir()


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
