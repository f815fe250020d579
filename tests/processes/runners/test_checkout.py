"""Refs and trees, ordinary and hostile, with real Git."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.errors import RunFailure
from app.runners.checkout import RepositoryCache
from app.runners.git import GitAccess
from app.runners.stopping import Stop
from tests.support.repositories import SourceRepository

REPOSITORY = "acme/shop"


def export(
    cache: RepositoryCache, into: Path, ref: str = "main", repository: str = REPOSITORY
) -> str:
    return cache.export(repository, ref, into, Stop())


def refused(
    cache: RepositoryCache, into: Path, ref: str = "main", repository: str = REPOSITORY
) -> RunFailure:
    with pytest.raises(RunFailure) as caught:
        export(cache, into, ref, repository)
    return caught.value


def content(tree: Path) -> dict[str, bytes]:
    return {str(p.relative_to(tree)): p.read_bytes() for p in tree.rglob("*") if p.is_file()}


# --- refs -------------------------------------------------------------------------------------------


def test_each_kind_of_ref_is_resolved(
    source: SourceRepository, cache: RepositoryCache, place: Path
) -> None:
    first = source.commit({"n": "1"})
    source.git("tag", "light")
    source.git("tag", "-a", "annotated", "-m", "x")
    source.git("tag", "-a", "twice", "-m", "x", "annotated")
    second = source.commit({"n": "2"})
    source.git("branch", "feature/a-1")
    source.git("update-ref", "refs/pull/7/merge", first)
    expected = {
        "main": second,
        "HEAD": second,
        "feature/a-1": second,
        "refs/heads/main": second,
        "light": first,
        "annotated": first,
        "twice": first,
        "refs/tags/annotated": first,
        "refs/pull/7/merge": first,
        first: first,
        first.upper(): first,
        second: second,
    }
    for number, (ref, commit) in enumerate(expected.items()):
        into = place / f"tree-{number}"
        into.mkdir()
        assert export(cache, into, ref) == commit, ref
        assert (into / "n").read_text() == ("1" if commit == first else "2"), ref


def test_a_branch_wins_over_a_tag_of_its_name(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    source.commit({"n": "tag"})
    source.git("tag", "same")
    branch = source.commit({"n": "branch"})
    source.git("branch", "same")
    assert export(cache, into, "same") == branch


def test_a_branch_that_moved_is_seen(
    source: SourceRepository, cache: RepositoryCache, place: Path
) -> None:
    for number in range(3):
        commit = source.commit({"n": str(number)})
        into = place / f"tree-{number}"
        into.mkdir()
        assert export(cache, into) == commit
        assert content(into) == {"n": str(number).encode()}


def test_the_tail_of_another_refs_name_is_not_meant(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    source.commit({"n": "1"})
    source.git("update-ref", "refs/heads/refs/heads/secret", "HEAD")
    source.git("branch", "-m", "main", "release/main")
    assert refused(cache, into, "main").code == "ref-not-found"
    assert refused(cache, into, "secret").code == "ref-not-found"


@pytest.mark.parametrize("ref", ["gone", "0" * 40, "abcdef0", "refs/heads/gone", "main/x"])
def test_a_ref_that_is_not_there_is_named(
    source: SourceRepository, cache: RepositoryCache, into: Path, ref: str
) -> None:
    source.commit({"n": "1"})
    failure = refused(cache, into, ref)
    assert failure.code == "ref-not-found"
    assert REPOSITORY in failure.detail and ref in failure.detail


def test_a_repository_without_a_commit_has_no_head(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    assert refused(cache, into, "HEAD").code == "ref-not-found"


def test_the_hash_of_a_file_is_no_commit(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    source.commit({"n": "1"})
    failure = refused(cache, into, source.blob(b"1"))
    assert failure.code == "ref-not-found"


@pytest.mark.parametrize(
    "ref",
    [
        "--upload-pack=touch x",
        "-h",
        "",
        "a b",
        "a..b",
        "a:b",
        "main:../x",
        "+main",
        "a\n",
        "@",
        "a^",
        "*",
        "a@{1}",
        "x.lock",
    ],
)
def test_a_hostile_ref_does_not_reach_git(cache: RepositoryCache, into: Path, ref: str) -> None:
    assert refused(cache, into, ref).code == "target-invalid"


@pytest.mark.parametrize(
    "repository",
    [
        "",
        "acme",
        "../../etc/x",
        "acme/..",
        "acme/.",
        "a/b/c",
        "-a/b",
        "a;b/c",
        "a/b\n",
        "https://x/y",
        "a/b?c",
        "a/b c",
    ],
)
def test_a_hostile_repository_does_not_reach_git(
    cache: RepositoryCache, into: Path, repository: str
) -> None:
    assert refused(cache, into, "main", repository).code == "target-invalid"


# --- trees ------------------------------------------------------------------------------------------


def test_the_tree_is_what_was_committed_and_knows_nothing_of_git(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    files = {
        ".gitattributes": "* export-ignore export-subst ident\n"
        "*.txt eol=crlf text\n*.u working-tree-encoding=UTF-16\n",
        "a.txt": b"one\ntwo\n",
        "b.txt": b"one\r\ntwo\r\n",
        "c.c": b"$Id$ $Format:%H$\n",
        "d/e.bin": bytes(range(256)),
        "f.u": "ü\n",
        ".hidden/x": "x",
    }
    for name, data in files.items():
        blob = source.blob(data.encode() if isinstance(data, str) else data)
        source.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    source.git("commit", "--quiet", "-m", "x")
    export(cache, into)
    assert content(into) == {
        name: data.encode() if isinstance(data, str) else data for name, data in files.items()
    }
    assert not (into / ".git").exists()


def test_modes_and_links_are_kept(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    source.commit({"run": "#!/bin/sh\n"}, executable=True)
    (source.path / "link").symlink_to("/etc/passwd")
    source.commit_all()
    export(cache, into)
    assert os.access(into / "run", os.X_OK)
    assert (into / "link").readlink() == Path("/etc/passwd")


def test_filters_of_the_repository_do_not_run(
    source: SourceRepository, cache: RepositoryCache, into: Path, place: Path
) -> None:
    command = f"touch {place}/ran; cat"
    source.commit({".gitattributes": "* filter=evil diff=evil\n", "a": "text"})
    for key in ("filter.evil.smudge", "filter.evil.clean", "filter.evil.process"):
        source.git("config", key, command)
    (source.path / ".gitconfig").write_text(f'[filter "evil"]\n\tsmudge = {command}\n')
    (source.path / ".lfsconfig").write_text("[lfs]\n\turl = file:///\n")
    source.git("-c", "filter.evil.process=", "-c", "filter.evil.clean=cat", "add", "--all")
    source.git("-c", "filter.evil.process=", "-c", "filter.evil.clean=cat", "commit", "-m", "x")
    (place / "ran").unlink(missing_ok=True)
    export(cache, into)
    assert (into / "a").read_text() == "text"
    assert not (place / "ran").exists()


def test_hooks_of_the_source_do_not_run(
    source: SourceRepository, cache: RepositoryCache, into: Path, place: Path
) -> None:
    source.commit({"a": "1"})
    for hook in (
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-auto-gc",
        "post-merge",
    ):
        path = source.path / ".git/hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {place}/ran\n")
        path.chmod(0o755)
    source.git("config", "core.fsmonitor", f"touch {place}/ran")
    export(cache, into)
    assert not (place / "ran").exists()


@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".Git", "git~1", ".g\u200cit", ".git ", ".git.", "..", "."]
)
def test_a_tree_that_would_plant_a_repository_is_refused(
    source: SourceRepository, cache: RepositoryCache, into: Path, name: str
) -> None:
    blob = source.blob(b"#!/bin/sh\n")
    hooks = source.git(
        "hash-object",
        "-t",
        "tree",
        "-w",
        "--literally",
        "--stdin",
        data=b"100755 post-checkout\0" + bytes.fromhex(blob),
    )
    source.commit_tree({name: ("040000", hooks)})
    assert refused(cache, into).code == "clone-failed"
    assert [path.name for path in into.rglob("*")] == []


def test_a_link_in_place_of_a_folder_lets_nothing_out(
    source: SourceRepository, cache: RepositoryCache, into: Path, place: Path
) -> None:
    outside = place / "outside"
    outside.mkdir()
    link = source.blob(os.fsencode(outside))
    inner = source.git(
        "hash-object",
        "-t",
        "tree",
        "-w",
        "--literally",
        "--stdin",
        data=b"100644 planted\0" + bytes.fromhex(source.blob(b"x")),
    )
    raw = b"120000 a\0" + bytes.fromhex(link) + b"40000 a\0" + bytes.fromhex(inner)
    tree = source.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", data=raw)
    source.git("update-ref", "refs/heads/main", source.git("commit-tree", tree, "-m", "x"))
    try:
        export(cache, into)
    except RunFailure as failure:
        assert failure.code == "clone-failed"
    assert list(outside.iterdir()) == []


def test_modes_that_git_does_not_know_make_no_device(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    blob = source.blob(b"x")
    source.commit_tree(
        {"fifo": ("010644", blob), "device": ("060644", blob), "setuid": ("104755", blob)}
    )
    try:
        export(cache, into)
    except RunFailure as failure:
        assert failure.code == "clone-failed"
    for path in into.rglob("*"):
        assert path.is_file() or path.is_dir()
        assert path.stat().st_mode & 0o7000 == 0


def test_a_submodule_is_an_empty_folder(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    commit = source.commit(
        {"a": "1", ".gitmodules": '[submodule "x"]\n\tpath = sub\n\turl = ext::sh -c x\n'}
    )
    source.git("update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    source.git("commit", "--quiet", "-m", "x")
    export(cache, into)
    assert (into / "sub").is_dir() and list((into / "sub").iterdir()) == []


def test_a_tree_that_is_too_large_is_refused_before_it_is_written(
    source: SourceRepository, place: Path, access: GitAccess, into: Path
) -> None:
    source.commit({"a": b"x" * 60_000, "b": b"y" * 60_000})
    cache = RepositoryCache(place / "cache", access, clock=SystemClock(), max_tree_bytes=100_000)
    failure = refused(cache, into)
    assert failure.code == "clone-failed" and "more than 100,000 bytes" in failure.detail
    assert list(into.iterdir()) == []


def test_a_tree_that_explodes_is_refused(
    source: SourceRepository, cache: RepositoryCache, into: Path
) -> None:
    entry = ("100644", source.blob(b"x"))
    for _ in range(9):
        raw = b"".join(
            f"{entry[0]} {name:x}".encode() + b"\0" + bytes.fromhex(entry[1]) for name in range(10)
        )
        entry = ("40000", source.git("hash-object", "-t", "tree", "-w", "--stdin", data=raw))
    source.git("update-ref", "refs/heads/main", source.git("commit-tree", entry[1], "-m", "x"))
    failure = refused(cache, into)
    assert failure.code == "clone-failed" and "500,000 files" in failure.detail


def test_a_repository_that_is_larger_than_the_cache_is_refused(
    source: SourceRepository, place: Path, access: GitAccess, into: Path
) -> None:
    source.commit({"a": os.urandom(300_000)})
    cache = RepositoryCache(place / "cache", access, clock=SystemClock(), max_bytes=100_000)
    failure = refused(cache, into)
    assert failure.code == "clone-failed" and "larger than the cache may be" in failure.detail


# --- the cache --------------------------------------------------------------------------------------


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
