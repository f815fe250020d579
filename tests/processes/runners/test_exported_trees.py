"""Trees, ordinary and hostile, come as committed and lead nowhere."""

import os
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.errors import RunFailure
from app.runners.checkout import RepositoryCache
from app.runners.git import GitAccess
from tests.support.checkouts import content, export, refused
from tests.support.repositories import SourceRepository


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
