"""Directories of runs go, whatever was done to them."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.runners.locks import held
from app.runners.trees import remove_tree, run_directory, sweep

CLOCK = SystemClock()


def test_a_tree_of_any_mode_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "a/b/c").mkdir(parents=True)
    (top / "a/b/c/file").write_text("x")
    for path in (top / "a/b/c", top / "a/b", top / "a", top):
        path.chmod(0)
    remove_tree(top)
    assert not top.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_tree_of_any_mode_is_removed_by_its_owner_who_is_not_root() -> None:
    place = Path(tempfile.mkdtemp())
    place.chmod(0o777)
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresuid(65534, 65534, 65534)
        top = place / "top"
        (top / "a/b/c").mkdir(parents=True)
        (top / "a/b/c/file").write_text("x")
        for path in (top / "a/b/c", top / "a/b", top / "a", top):
            path.chmod(0)
        remove_tree(top)
        os._exit(0)
    os.waitpid(child, 0)
    left = list(place.iterdir())
    shutil.rmtree(place)
    assert left == []


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    descriptor = os.open(top, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("folder", dir_fd=descriptor)
        below = os.open("folder", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    remove_tree(top)
    assert not top.exists()


def test_links_pipes_and_odd_names_go_and_what_they_point_at_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    top = tmp_path / "top"
    top.mkdir()
    (top / "folder-link").symlink_to(outside)
    (top / "file-link").symlink_to(outside / "kept")
    os.mkfifo(top / "pipe")
    Path(os.fsdecode(os.fsencode(top) + b"/\xff\n")).mkdir()
    remove_tree(top)
    assert not top.exists()
    assert (outside / "kept").exists()


def test_a_tree_that_became_a_link_or_a_file_goes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "file").write_text("x")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "file")
    remove_tree(tmp_path / "nothing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside"]


def test_a_directory_lives_as_long_as_its_block(tmp_path: Path) -> None:
    with run_directory(tmp_path / "trees", "7-1", None, CLOCK) as directory:
        assert directory.tree.is_dir() and directory.home.is_dir()
        assert directory.tree.parent.stat().st_mode & 0o777 == 0o700
        shutil.rmtree(directory.home)
    assert list((tmp_path / "trees").iterdir()) == []


def test_the_sweep_takes_what_the_dead_left_and_nothing_of_the_living(tmp_path: Path) -> None:
    trees = tmp_path / "trees"
    with run_directory(trees, "1-1", None, CLOCK) as living:
        (trees / "2-1-dead/tree").mkdir(parents=True)
        (trees / "2-1-dead.lock").touch()
        (trees / "3-1-dead.lock").touch()
        with held(trees / "4-1-shim.lock", clock=CLOCK):
            (trees / "4-1-shim").mkdir()
            assert sweep(trees, CLOCK) == 2
            assert (trees / "4-1-shim").is_dir()
        assert living.tree.is_dir()
        assert {path.name[:3] for path in trees.iterdir()} == {"1-1", "4-1"}


def test_there_is_nothing_to_sweep_before_the_first_run(tmp_path: Path) -> None:
    assert sweep(tmp_path / "trees", CLOCK) == 0
