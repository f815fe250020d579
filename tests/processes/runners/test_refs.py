"""Which commit a ref means, and that no hostile one reaches Git."""

from pathlib import Path

import pytest

from app.runners.checkout import RepositoryCache
from tests.support.checkouts import REPOSITORY, content, export, refused
from tests.support.repositories import SourceRepository


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
