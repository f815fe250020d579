"""The cache is shared, mended and kept in bounds."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.runners.checkout import RepositoryCache
from app.runners.git import GitAccess
from app.runners.stopping import Stop
from app.runners.trees import remove_tree
from tests.support.checkouts import REPOSITORY, content, export, refused
from tests.support.repositories import SourceRepository


def test_a_commit_in_the_cache_needs_no_remote(
    source: SourceRepository, cache: RepositoryCache, into: Path, place: Path
) -> None:
    commit = source.commit({"a": "1"})
    export(cache, into)
    shutil.rmtree(source.path)
    again = place / "again"
    again.mkdir()
    assert export(cache, again, commit) == commit
    assert refused(cache, again, "main").code == "clone-failed"


def test_a_repository_that_is_not_there_says_what_git_said(
    cache: RepositoryCache, into: Path
) -> None:
    failure = refused(cache, into, "main", "acme/gone")
    assert failure.code == "clone-failed"
    assert "acme/gone" in failure.detail and "not appear to be a git repository" in failure.detail


def damage_objects(bare: Path) -> None:
    for path in bare.glob("objects/pack/*"):
        path.chmod(0o644)
        path.write_bytes(b"damaged")


def damage_head(bare: Path) -> None:
    (bare / "HEAD").write_text("damaged")


def damage_refs(bare: Path) -> None:
    for path in bare.glob("refs/kept/*"):
        path.write_text("damaged")


def damage_config(bare: Path) -> None:
    (bare / "config").write_text("[[[")


def lose_objects(bare: Path) -> None:
    shutil.rmtree(bare / "objects")


def leave_locks(bare: Path) -> None:
    (bare / "shallow.lock").touch()
    (bare / "new.lock").touch()
    (bare.parent / "new").mkdir()
    (bare.parent / "new/half").touch()
    (bare.parent / "old").mkdir()
    (bare / "objects/pack/tmp_pack_half").touch()


@pytest.mark.parametrize(
    "damage", [damage_objects, damage_head, damage_refs, damage_config, lose_objects, leave_locks]
)
def test_a_broken_cache_is_made_anew(
    source: SourceRepository,
    cache: RepositoryCache,
    place: Path,
    into: Path,
    damage: Callable[[Path], None],
) -> None:
    old = source.commit({"a": "1"})
    export(cache, into)
    (bare,) = (place / "cache").glob("*/repository")
    damage(bare)
    again, newer = place / "again", place / "newer"
    again.mkdir()
    newer.mkdir()
    assert export(cache, again, old) == old
    assert content(again) == {"a": b"1"}
    commit = source.commit({"a": "2"})
    assert export(cache, newer) == commit
    assert content(newer) == {"a": b"2"}
    assert not (bare.parent / "new").exists()
    assert not (bare.parent / "old").exists()
    assert not list(bare.rglob("*.lock")) and not list(bare.rglob("tmp_*"))


@pytest.mark.parametrize("removed", ["cache", "cache/git", "cache/git/gitconfig-*"])
def test_a_cache_that_somebody_cleared_away_is_made_anew(
    source: SourceRepository, cache: RepositoryCache, place: Path, into: Path, removed: str
) -> None:
    """Whoever needs room may well remove it, under a worker that is at work."""
    for path in list(place.glob(removed)):
        remove_tree(path)
    commit = source.commit({"a": "1"})
    assert export(cache, into) == commit


def test_many_at_once_share_one_fetch(
    source: SourceRepository, place: Path, access: GitAccess
) -> None:
    commit = source.commit({"a": "1"})
    packs: list[str] = []

    def one(number: int) -> None:
        # A cache object each, as processes would have: only the files are shared.
        cache = RepositoryCache(place / "cache", access, clock=SystemClock(), git_timeout=30)
        into = place / f"tree-{number}"
        into.mkdir()
        packs.append(export(cache, into))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert packs == [commit] * 6
    assert len(list((place / "cache").glob("*/repository/objects/pack/*.pack"))) == 1


def test_the_least_recently_used_goes_first(place: Path, access: GitAccess) -> None:
    cache = RepositoryCache(place / "cache", access, clock=SystemClock(), max_bytes=600_000)
    for number, name in enumerate(("one", "two", "three")):
        source = SourceRepository(place / "source/acme" / name)
        source.commit({"a": os.urandom(250_000)})
        into = place / f"tree-{name}"
        into.mkdir()
        export(cache, into, "main", f"acme/{name}")
        for lock in (place / "cache").glob(f"acme+{name}-*/use.lock"):
            os.utime(lock, (1_000_000_000 + number, 1_800_000_000 + number))
    left = sorted(
        path.parent.name.partition("-")[0] for path in (place / "cache").glob("*/repository")
    )
    assert left == ["acme+three", "acme+two"]


def test_one_that_was_not_used_for_long_goes_but_not_while_in_use(
    source: SourceRepository, cache: RepositoryCache, place: Path, into: Path
) -> None:
    source.commit({"a": "1"})
    export(cache, into)
    (lock,) = (place / "cache").glob("*/use.lock")
    with cache._using(REPOSITORY, Stop()):
        os.utime(lock, (0, 0))
        cache.trim()
        assert (lock.parent / "repository").exists()
    cache.trim()
    assert not (lock.parent / "repository").exists()
    again = place / "again"
    again.mkdir()
    export(cache, again)


def test_many_fetches_are_made_into_a_new_copy(
    source: SourceRepository, cache: RepositoryCache, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.runners.checkout.MOST_PACKS", 3)
    for number in range(5):
        commit = source.commit({"a": str(number)})
        into = place / f"tree-{number}"
        into.mkdir()
        assert export(cache, into) == commit
    assert len(list((place / "cache").glob("*/repository/objects/pack/*.pack"))) <= 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_source_of_another_owner_is_served(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    commit = source.commit({"a": "1"})
    for folder, folders, files in os.walk(source.path):
        for name in (".", *folders, *files):
            os.chown(Path(folder, name), 65534, 65534)
    assert export(cache, into) == commit
