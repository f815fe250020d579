"""Which file a workflow's name means, and how it is run."""

from pathlib import Path

import pytest

from app.errors import RunFailure
from app.runners.workflow import command, resolve


def write(tree: Path, *names: str) -> None:
    for name in names:
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")


def refused(tree: Path, workflow: str) -> RunFailure:
    with pytest.raises(RunFailure) as caught:
        resolve(tree, workflow)
    return caught.value


@pytest.mark.parametrize(
    ("files", "workflow", "expected"),
    [
        (["jobs/x.sh"], "jobs/x.sh", "jobs/x.sh"),
        ([".bellringer/workflows/release"], "release", ".bellringer/workflows/release"),
        ([".bellringer/workflows/release.py"], "release", ".bellringer/workflows/release.py"),
        ([".bellringer/workflows/release.sh"], "release", ".bellringer/workflows/release.sh"),
        ([".bellringer/workflows/release.sh"], "release.sh", ".bellringer/workflows/release.sh"),
        ([".bellringer/workflows/ops/a.sh"], "ops/a", ".bellringer/workflows/ops/a.sh"),
        (["release", ".bellringer/workflows/release.sh"], "release", "release"),
        (
            ["release/readme", ".bellringer/workflows/release.sh"],
            "release",
            ".bellringer/workflows/release.sh",
        ),
        (["-x"], "-x", "-x"),
    ],
)
def test_a_name_means_one_file(
    tmp_path: Path, files: list[str], workflow: str, expected: str
) -> None:
    write(tmp_path, *files)
    assert resolve(tmp_path, workflow) == tmp_path / expected


@pytest.mark.parametrize(
    "workflow",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../b",
        "./a",
        ".",
        "..",
        "a//b",
        "a/",
        "~root",
        "a b",
        "a\n",
        "a\0b",
        "ü",
        "a" * 256,
    ],
)
def test_a_hostile_name_is_refused(tmp_path: Path, workflow: str) -> None:
    assert refused(tmp_path, workflow).code == "target-invalid"


def test_one_that_is_missing_says_which_exist(tmp_path: Path) -> None:
    write(
        tmp_path,
        ".bellringer/workflows/b.sh",
        ".bellringer/workflows/a.py",
        ".bellringer/workflows/c/d",
    )
    failure = refused(tmp_path, "release")
    assert failure.code == "workflow-not-found"
    assert "There are: a.py, b.sh, c/d." in failure.detail


def test_one_that_is_missing_where_there_are_none_says_so(tmp_path: Path) -> None:
    assert ".bellringer/workflows/ has none." in refused(tmp_path, "release").detail


def test_the_list_of_those_that_exist_is_bounded(tmp_path: Path) -> None:
    write(tmp_path, *(f".bellringer/workflows/w{n:03}.sh" for n in range(60)))
    detail = refused(tmp_path, "release").detail
    assert "w019.sh and 40 more" in detail and "w020" not in detail


def test_an_ambiguous_name_says_between_which(tmp_path: Path) -> None:
    write(tmp_path, ".bellringer/workflows/r.sh", ".bellringer/workflows/r.py")
    failure = refused(tmp_path, "r")
    assert failure.code == "workflow-not-found"
    assert ".bellringer/workflows/r.py, .bellringer/workflows/r.sh" in failure.detail


def test_a_link_inside_the_tree_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "real.sh")
    (tmp_path / "link.sh").symlink_to("real.sh")
    assert resolve(tmp_path, "link.sh") == tmp_path / "link.sh"


@pytest.mark.parametrize("place", ["w.sh", ".bellringer/workflows/w.sh"])
def test_a_link_that_leaves_the_tree_is_an_error(tmp_path: Path, place: str) -> None:
    tree = tmp_path / "tree"
    write(tmp_path, "outside.sh", f"tree/{place}")
    (tree / place).unlink()
    (tree / place).symlink_to(tmp_path / "outside.sh")
    failure = refused(tree, "w.sh")
    assert failure.code == "workflow-not-found" and "leaves the repository" in failure.detail


def test_a_folder_that_is_a_link_out_of_the_tree_is_an_error(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tmp_path, "outside/w.sh", "tree/readme")
    (tree / "jobs").symlink_to("../outside")
    (tree / ".bellringer").mkdir()
    (tree / ".bellringer/workflows").symlink_to(tmp_path / "outside")
    assert "leaves the repository" in refused(tree, "jobs/w.sh").detail
    assert "leaves the repository" in refused(tree, "w").detail
    missing = refused(tree, "other").detail
    assert "leaves the repository" in missing and "w.sh" not in missing


def test_a_tree_whose_name_begins_the_same_is_outside(tmp_path: Path) -> None:
    write(tmp_path, "tree-2/w.sh", "tree/readme")
    (tmp_path / "tree/w.sh").symlink_to("../tree-2/w.sh")
    assert "leaves the repository" in refused(tmp_path / "tree", "w.sh").detail


def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "w.sh").symlink_to("w.sh")
    assert "to itself" in refused(tmp_path, "w.sh").detail


@pytest.mark.parametrize(
    ("name", "mode", "start", "expected"),
    [
        ("w", 0o755, "#!/bin/sh\n", []),
        ("w.py", 0o755, "#!/bin/sh\n", []),
        ("w.py", 0o644, "#!/bin/sh\n", ["/python", "-u"]),
        ("w.py", 0o755, "print()\n", ["/python", "-u"]),
        ("w.sh", 0o644, "echo\n", ["/bin/sh"]),
        ("w.sh", 0o755, "echo\n", ["/bin/sh"]),
        ("w.bin", 0o755, "\x7fELF", []),
    ],
)
def test_the_file_says_how_it_is_run(
    tmp_path: Path, name: str, mode: int, start: str, expected: list[str]
) -> None:
    path = tmp_path / name
    path.write_text(start)
    path.chmod(mode)
    assert list(command(path, "/python")) == [*expected, str(path)]


def test_a_file_that_nothing_runs_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "w.rb"
    path.write_text("puts 1\n")
    path.chmod(0o644)
    with pytest.raises(RunFailure) as caught:
        command(path, "/python")
    assert caught.value.code == "workflow-not-found"
    assert "executable" in caught.value.detail
