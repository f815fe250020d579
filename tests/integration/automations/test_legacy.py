"""The import of a legacy directory, on each database: what it takes in, skips and renames."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from app.automations.legacy import ImportReport
from app.automations.models import automation_trigger_arms
from app.automations.revision import revision_of
from app.automations.store import ANY, AutomationStore
from app.db import Database
from app.errors import ImportRefused
from tests.support.drafts import draft
from tests.support.legacy import GOOD, MINIMAL, STAMP, listing, run


@pytest.fixture
def store(database: Database) -> AutomationStore:
    return AutomationStore(database)


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


@pytest.mark.parametrize("shown", [".", "below/.."])
def test_a_directory_that_is_called_by_dots_is_renamed_under_its_own_name(
    sqlite_database: Database, directory: Path, monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    (directory / "b.toml").write_text(MINIMAL)
    (directory / "below").mkdir()
    monkeypatch.chdir(directory)
    report = run(sqlite_database, Path(shown))
    assert report.imported == ("b",)
    assert report.backup == directory.with_name(f"{STAMP}.bak")
    assert report.backup.is_dir() and not directory.exists()
