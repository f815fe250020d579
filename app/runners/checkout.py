"""Bringing repositories: a bounded cache of bare ones, and trees exported from it.

A fetch takes one commit without its history, which is all that a run needs. What is exported is
every file exactly as committed: attributes can't leave files out, change them or run filters, and
nothing links the tree to the cache. Submodules come as empty directories, LFS files as pointers.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.clock import Clock
from app.errors import RunFailure
from app.runners.entry import CacheEntry, clear_directory
from app.runners.git import GIT, Git, GitAccess, GitFailed
from app.runners.locks import Busy, held
from app.runners.refs import check, is_hash, meanings
from app.runners.stopping import Stop

GIB = 1024**3
MOST_PACKS = 50
MOST_FILES = 500_000

_UNKNOWN_OBJECT = ("not our ref", "unadvertised object")
_ATTRIBUTES = "* -text -ident -filter !eol !working-tree-encoding !crlf\n"


class RepositoryCache:
    """Bare repositories below ``directory``, shared by all threads and processes that use it.

    One fetch at a time per repository; whoever waits for it finds what it brought. The least
    recently used go when all together exceed ``max_bytes`` or one was not used for ``max_age``
    seconds, but never one in use. ``git_timeout`` limits every single call of Git and every wait
    for a lock, in seconds; ``max_tree_bytes`` limits what one export may write.
    """

    def __init__(
        self,
        directory: Path,
        access: GitAccess,
        *,
        clock: Clock,
        git_timeout: float = 300.0,
        max_bytes: int = 10 * GIB,
        max_age: float = 30 * 86400.0,
        max_tree_bytes: int = 4 * GIB,
        git: str = GIT,
        lease: float = 30.0,
    ) -> None:
        self._directory = directory.absolute()
        self._access = access
        self._clock = clock
        self._git_timeout = git_timeout
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._max_tree_bytes = max_tree_bytes
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._git = Git(
            access,
            self._directory / "git",
            clock=clock,
            binary=git,
            timeout=git_timeout,
            lease=lease,
            max_file_bytes=max_bytes,
        )

    def export(self, repository: str, ref: str, into: Path, stop: Stop) -> str:
        """Write the tree of ``ref`` into the empty directory ``into``; return the commit's hash.

        ``ref`` is a branch, else a tag (a branch wins where both have the name, as it does for
        users of GitHub Actions), a full name that begins with ``refs/``, ``HEAD`` (the default
        branch) or the 40 digits of a commit; one that is in the cache needs no network.

        Raises :exc:`RunFailure` (``target-invalid``, ``ref-not-found``, ``clone-failed``) and
        :exc:`Stopped`.
        """
        check(repository, ref)
        try:
            with self._using(repository, stop) as entry:
                return self._export(entry, repository, ref, into, stop)
        except GitFailed as failure:
            detail = f"{repository} can't be brought: {failure}{self._access.nor_local(repository)}"
            raise RunFailure("clone-failed", detail) from None
        except Busy:
            raise RunFailure(
                "clone-failed",
                f"{repository} can't be brought: another fetch of it has gone on for more "
                f"than {self._git_timeout:g} seconds.",
            ) from None

    def trim(self) -> None:
        """Remove repositories that were not used for too long or exceed the size together."""
        now = self._clock.now().timestamp()
        entries = [CacheEntry(path.parent) for path in self._directory.glob("*/use.lock")]
        total = sum(entry.size() for entry in entries)
        for entry in sorted(entries, key=CacheEntry.last_used):
            if total > self._max_bytes or now - entry.last_used() > self._max_age:
                total -= self._evict(entry)

    # --- one export -------------------------------------------------------------------------------

    def _export(self, entry: CacheEntry, repository: str, ref: str, into: Path, stop: Stop) -> str:
        url = self._access.url(repository)
        wanted = ref.lower() if is_hash(ref) else self._look_up(url, repository, ref, stop)
        suspect = None
        # Once more with a new copy if the first try fails, in case the cache is broken.
        for last_try in (False, True):
            commit = None if suspect is not None else self._find(entry, wanted, stop)
            if commit is None:
                self._fetch(entry, url, repository, wanted, suspect, stop)
                commit = self._find(entry, wanted, stop)
            suspect = entry.generation()
            try:
                if commit is not None:
                    self._write_tree(entry, repository, commit, into, stop)
                    return commit
            except GitFailed:
                if last_try:
                    raise
                clear_directory(into)
        raise RunFailure("ref-not-found", f"{wanted} in {repository} is not a commit.")

    def _look_up(self, url: str, repository: str, ref: str, stop: Stop) -> str:
        """Ask the remote which object ``ref`` names now."""
        names = meanings(ref)
        listed = self._git.run(
            "ls-remote", "--quiet", "--end-of-options", url, *names, stop=stop, remote=True
        )
        pairs = (line.split("\t", 1) for line in listed.decode().splitlines())
        known = {name: value for value, name in pairs}
        for name in names:
            if name in known:
                return known[name]
        raise RunFailure("ref-not-found", f"{repository} has no branch or tag {ref!r}.")

    def _find(self, entry: CacheEntry, wanted: str, stop: Stop) -> str | None:
        """Return the commit that ``wanted`` is or that its tag points to, if the cache has it."""
        if not entry.exists():
            return None
        commit = f"{_kept_ref(wanted)}^{{commit}}"
        try:
            return self._local(entry, "rev-parse", "--verify", commit, stop=stop).decode().strip()
        except GitFailed:
            return None

    def _fetch(
        self,
        entry: CacheEntry,
        url: str,
        repository: str,
        wanted: str,
        suspect: int | None,
        stop: Stop,
    ) -> None:
        """Bring ``wanted`` unless somebody else has meanwhile; replace a suspect copy."""
        with held(entry.fetch_lock, clock=self._clock, limit=self._git_timeout, stop=stop) as lock:
            sound = entry.exists() and entry.generation() != suspect
            if sound and self._find(entry, wanted, stop) is not None:
                return
            entry.clear_drafts()
            try:
                if sound and entry.packs() < MOST_PACKS:
                    try:
                        self._fetch_into(entry.repository, url, wanted, lock, stop)
                        return
                    except GitFailed as failure:
                        if _is_unknown_object(failure):
                            raise
                self._git.run("init", "--bare", "--quiet", "--template=", str(entry.new), stop=stop)
                (entry.new / "info").mkdir(exist_ok=True)
                (entry.new / "info/attributes").write_text(_ATTRIBUTES)
                self._fetch_into(entry.new, url, wanted, lock, stop)
                entry.swap()
            except GitFailed as failure:
                if _is_unknown_object(failure):
                    raise RunFailure(
                        "ref-not-found",
                        f"{repository} has no commit {wanted}, or does not hand it out.",
                    ) from None
                raise
            finally:
                entry.clear_drafts()
        self.trim()

    def _fetch_into(self, bare: Path, url: str, wanted: str, lock: int, stop: Stop) -> None:
        self._git.run(
            f"--git-dir={bare}",
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
            "--end-of-options",
            url,
            f"+{wanted}:{_kept_ref(wanted)}",
            stop=stop,
            remote=True,
            kept=(lock,),
        )

    def _write_tree(
        self, entry: CacheEntry, repository: str, commit: str, into: Path, stop: Stop
    ) -> None:
        measure = _Measure(repository, self._max_tree_bytes)
        self._local(entry, "ls-tree", "-r", "-l", "-z", commit, stop=stop, on_stdout=measure.feed)
        index = into.with_name(f"{into.name}.{secrets.token_hex(8)}.index")
        try:
            for arguments in (
                ("read-tree", commit),
                ("checkout-index", "--all", "--force", "--quiet"),
            ):
                self._git.run(
                    f"--git-dir={entry.repository}",
                    f"--work-tree={into}",
                    *arguments,
                    stop=stop,
                    directory=into,
                    environment={"GIT_INDEX_FILE": str(index)},
                )
        finally:
            index.unlink(missing_ok=True)

    def _local(
        self,
        entry: CacheEntry,
        *arguments: str,
        stop: Stop,
        on_stdout: Callable[[bytes], None] | None = None,
    ) -> bytes:
        git_dir = f"--git-dir={entry.repository}"
        return self._git.run(git_dir, *arguments, stop=stop, on_stdout=on_stdout)

    # --- the cache as a whole ---------------------------------------------------------------------

    @contextmanager
    def _using(self, repository: str, stop: Stop) -> Iterator[CacheEntry]:
        """Keep the repository's entry from being evicted, and note that it was used."""
        digest = hashlib.sha256(self._access.url(repository).encode()).hexdigest()[:16]
        entry = CacheEntry(self._directory / f"{repository.replace('/', '+')}-{digest}")
        entry.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with held(
            entry.use_lock, clock=self._clock, limit=self._git_timeout, shared=True, stop=stop
        ):
            entry.touch(self._clock.now().timestamp())
            yield entry

    def _evict(self, entry: CacheEntry) -> int:
        """Remove what ``entry`` holds and return its size, or 0 if it is in use."""
        try:
            with held(entry.use_lock, clock=self._clock):
                size = entry.size()
                entry.clear()
                return size
        except Busy:
            return 0


class _Measure:
    """Reads ``ls-tree -r -l -z`` as it comes and stops it at a tree that is too large."""

    def __init__(self, repository: str, max_bytes: int) -> None:
        self._repository = repository
        self._max_bytes = max_bytes
        self._partial = b""
        self._files = 0
        self._bytes = 0

    def feed(self, data: bytes) -> None:
        *records, self._partial = (self._partial + data).split(b"\0")
        self._files += len(records)
        for record in records:
            size = record.partition(b"\t")[0].split()[-1]
            self._bytes += int(size) if size.isdigit() else 0
        if self._files > MOST_FILES:
            raise self._too_large(f"more than {MOST_FILES:,} files")
        if self._bytes > self._max_bytes:
            raise self._too_large(f"more than {self._max_bytes:,} bytes")

    def _too_large(self, what: str) -> RunFailure:
        return RunFailure("clone-failed", f"The tree of {self._repository} has {what}.")


def _kept_ref(wanted: str) -> str:
    return f"refs/kept/{wanted}"


def _is_unknown_object(failure: GitFailed) -> bool:
    return any(sign in str(failure) for sign in _UNKNOWN_OBJECT)
