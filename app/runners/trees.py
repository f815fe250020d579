"""A directory of its own for each attempt, and its removal whatever the run did to it."""

import contextlib
import errno
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.clock import Clock
from app.runners.locks import Busy, held
from app.runners.values import RunUser

LOCK_SUFFIX = ".lock"
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

logger = logging.getLogger(__name__)


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

    What can't be removed stays, for the next :func:`sweep`.
    """
    try:
        if top.is_symlink() or not top.is_dir():
            top.unlink(missing_ok=True)
            return
        top.chmod(0o700)
        _empty(top)
        top.rmdir()
    except OSError as error:
        logger.warning("%s could not be removed: %s", top.name, error.strerror)


def _empty(top: Path) -> None:
    """Walk down and back up one directory at a time: no recursion, no long path, one descriptor."""
    with _Place(os.open(top, FOLDER)) as here:
        above: list[tuple[str, list[str], tuple[int, int]]] = []
        folders = _clear_files(here.descriptor)
        while folders or above:
            if folders:
                name = folders.pop()
                above.append((name, folders, here.identity()))
                here.go(name)
                folders = _clear_files(here.descriptor)
            else:
                name, folders, identity = above.pop()
                here.go("..")
                if here.identity() != identity:
                    # Somebody who is still alive moved it: what is here is not ours to remove.
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
                os.rmdir(name, dir_fd=here.descriptor)


class _Place:
    """An open directory that is left for another."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def go(self, name: str) -> None:
        there = os.open(name, FOLDER, dir_fd=self.descriptor)
        os.close(self.descriptor)
        self.descriptor = there

    def identity(self) -> tuple[int, int]:
        status = os.fstat(self.descriptor)
        return status.st_dev, status.st_ino

    def __enter__(self) -> "_Place":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


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
