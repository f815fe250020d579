"""A directory of its own for each attempt, and its removal whatever the run did to it."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.clock import Clock
from app.runners.locks import Busy, held
from app.runners.values import RunUser

LOCK_SUFFIX = ".lock"


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Where one attempt lives: its exported ``tree``, its ``home`` and its ``events`` file.

    ``lock`` is the descriptor of a lock that says that somebody is alive in there.
    """

    tree: Path
    home: Path
    events: Path
    lock: int


@contextmanager
def run_directory(
    trees: Path, name: str, user: RunUser | None, clock: Clock
) -> Iterator[RunDirectory]:
    """Make a directory below ``trees`` for one attempt and remove it in the end.

    Its name begins with ``name`` and is never used twice. With ``user`` it may be entered by
    others, but its parts belong to that user alone.
    """
    trees.mkdir(parents=True, exist_ok=True)
    trees.chmod(0o711)
    path = trees / f"{name}-{secrets.token_hex(8)}"
    lock_path = path.with_name(path.name + LOCK_SUFFIX)
    with held(lock_path, clock=clock) as lock:
        try:
            path.mkdir(mode=0o700)
            path.chmod(0o700 if user is None else 0o711)
            directory = RunDirectory(path / "tree", path / "home", path / "events.json", lock)
            for part in (directory.tree, directory.home):
                part.mkdir(mode=0o700)
            yield directory
        finally:
            remove_tree(path)
            lock_path.unlink(missing_ok=True)


def give(path: Path, user: RunUser) -> None:
    """Make ``user`` the owner of ``path`` and all below it; symbolic links are not followed."""
    os.chown(path, user.uid, user.gid, follow_symlinks=False)
    if not path.is_symlink() and path.is_dir():
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                os.chown(Path(folder, name), user.uid, user.gid, follow_symlinks=False)


def sweep(trees: Path, clock: Clock) -> int:
    """Remove the directories of workers that are gone; return how many there were.

    One whose lock is held is alive: a worker, or the shim of a dead one that is still ending what
    it started, has it.
    """
    if not trees.is_dir():
        return 0
    removed = 0
    names = {path.name.removesuffix(LOCK_SUFFIX) for path in trees.iterdir()}
    for name in sorted(names):
        lock_path = trees / (name + LOCK_SUFFIX)
        with contextlib.suppress(Busy), held(lock_path, clock=clock):
            remove_tree(trees / name)
            lock_path.unlink(missing_ok=True)
            removed += 1
    return removed


def remove_tree(top: Path) -> None:
    """Remove ``top`` and all below it, however deep, and whatever modes it has.

    Directories are moved up before they are emptied, so that neither the depth of the tree nor the
    length of its paths matters. What can't be removed stays, for the next :func:`sweep`.
    """
    try:
        root = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except PermissionError:
        top.chmod(0o700)
        root = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        top.unlink()
        return
    try:
        with contextlib.suppress(OSError):
            os.fchmod(root, 0o700)
            _empty(root)
    finally:
        os.close(root)
    shutil.rmtree(top, ignore_errors=True)


def _empty(root: int) -> None:
    moved = 0
    prefix = secrets.token_hex(8)
    while folders := _clear_files(root):
        for folder in folders:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
            try:
                for inner in _clear_files(descriptor):
                    moved += 1
                    os.rename(inner, f"{prefix}-{moved}", src_dir_fd=descriptor, dst_dir_fd=root)
            finally:
                os.close(descriptor)
            os.rmdir(folder, dir_fd=root)


def _clear_files(directory: int) -> list[str]:
    """Unlink all that is no directory; return the names of the directories, opened up."""
    folders = []
    with os.scandir(directory) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        if is_folder:
            os.chmod(name, 0o700, dir_fd=directory)
            folders.append(name)
        else:
            os.unlink(name, dir_fd=directory)
    return folders
