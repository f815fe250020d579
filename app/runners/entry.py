"""One repository's place in the cache, on disk."""

import os
import shutil
from pathlib import Path

from app.runners.trees import remove_tree


class CacheEntry:
    """The files of one repository: the bare copy, drafts of a new one, and two locks.

    ``fetch_lock`` is held while the copy is changed, ``use_lock`` shared while it is used and alone
    to remove it. The locks stay when the copy goes: a lock whose file is replaced would not exclude.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.repository = directory / "repository"
        self.new = directory / "new"
        self.fetch_lock = directory / "fetch.lock"
        self.use_lock = directory / "use.lock"
        self._old = directory / "old"

    def exists(self) -> bool:
        """Return whether there is a copy."""
        return self.repository.is_dir()

    def generation(self) -> int:
        """Return a number that changes when the copy is replaced by a new one; 0 without a copy."""
        try:
            return self.repository.stat().st_ino
        except FileNotFoundError:
            return 0

    def packs(self) -> int:
        """Return how many fetches the copy is made of."""
        return len(list(self.repository.glob("objects/pack/*.pack")))

    def swap(self) -> None:
        """Put the draft in the copy's place."""
        if self.exists():
            self.repository.rename(self._old)
        self.new.rename(self.repository)

    def clear_drafts(self) -> None:
        """Remove what fetches that were killed have left; only for who holds the fetch lock."""
        for path in (self.new, self._old):
            remove_tree(path)
        for pattern in ("objects/pack/tmp_*", "*.lock", "refs/kept/*.lock"):
            for path in self.repository.glob(pattern):
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all but the locks."""
        self.clear_drafts()
        remove_tree(self.repository)

    def touch(self, now: float) -> None:
        """Note a use at ``now`` (seconds since 1970)."""
        os.utime(self.use_lock, (now, now))

    def last_used(self) -> float:
        """Return when the copy was last used, in seconds since 1970."""
        return self.use_lock.stat().st_mtime

    def size(self) -> int:
        """Return the bytes that the copy takes."""
        total = 0
        for folder, _, files in os.walk(self.directory):
            for name in files:
                try:
                    total += Path(folder, name).lstat().st_size
                except FileNotFoundError:
                    continue
        return total


def clear_directory(directory: Path) -> None:
    """Remove what is in ``directory``, and keep it."""
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
