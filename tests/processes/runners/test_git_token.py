"""The token opens the door and is seen nowhere else."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.errors import RunFailure
from app.runners.checkout import RepositoryCache
from app.runners.git import GitAccess
from app.runners.stopping import Stop
from tests.support.githost import GitHost, git_host
from tests.support.repositories import SourceRepository

TOKEN = "t0k3n-Xy+/=&%$~'\"`\\"


def has_backend() -> bool:
    path = subprocess.run(
        ["git", "--exec-path"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return Path(path, "git-http-backend").exists()


pytestmark = pytest.mark.skipif(not has_backend(), reason="this Git has no http-backend")


@pytest.fixture
def host(place: Path) -> Iterator[GitHost]:
    with git_host(place / "source", TOKEN) as host:
        yield host


def export(place: Path, access: GitAccess) -> str:
    into = place / "tree"
    into.mkdir()
    cache = RepositoryCache(place / "cache", access, clock=SystemClock(), git_timeout=20)
    return cache.export("acme/shop", "main", into, Stop())


def test_a_private_repository_is_brought_and_the_token_stays_unseen(
    source: SourceRepository, place: Path, host: GitHost
) -> None:
    commit = source.commit({"a": "1"})
    assert export(place, GitAccess(f"{host.url}/{{repository}}/.git", token=TOKEN)) == commit
    assert any(host.accepts(authorization) for authorization in host.authorizations)
    assert host.command_lines_with_token == []
    for path in (place / "cache").rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("token", [None, "another-t0k3n"])
def test_a_door_that_stays_closed_is_explained_without_the_token(
    source: SourceRepository, place: Path, host: GitHost, token: str | None
) -> None:
    source.commit({"a": "1"})
    with pytest.raises(RunFailure) as caught:
        export(place, GitAccess(f"{host.url}/{{repository}}/.git", token=token))
    assert caught.value.code == "clone-failed"
    assert "BELLRINGER_GIT_TOKEN" in caught.value.detail
    assert token is None or token not in caught.value.detail


def test_another_host_that_asks_after_a_redirect_does_not_get_the_token(
    source: SourceRepository, place: Path, host: GitHost
) -> None:
    source.commit({"a": "1"})
    with git_host(place, TOKEN, redirect_to=host.url) as first:
        with pytest.raises(RunFailure) as caught:
            export(place, GitAccess(f"{first.url}/{{repository}}/.git", token=TOKEN))
        assert caught.value.code == "clone-failed"
    assert host.authorizations and set(host.authorizations) == {None}


def test_the_access_does_not_show_its_token() -> None:
    assert TOKEN not in repr(GitAccess("https://git.example.org/{repository}.git", token=TOKEN))


@pytest.mark.parametrize(
    "template",
    [
        "https://git.example.org/shop.git",
        "https://git.example.org/{repository}/{repository}",
        "http://git.example.org/{repository}.git",
        "https://me:secret@git.example.org/{repository}.git",
        "ext::sh -c {repository}",
        "/srv/git/{repository}.git",
        "git://git.example.org/{repository}.git",
    ],
)
def test_an_address_that_can_not_be_trusted_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="Git URL must") as caught:
        GitAccess(template)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("template", "scheme"),
    [
        ("https://github.com/{repository}.git", "https"),
        ("git@git.example.org:{repository}.git", "ssh"),
        ("ssh://git@git.example.org:2222/{repository}", "ssh"),
        ("file:///srv/git/{repository}.git", "file"),
        ("http://localhost:3000/{repository}", "http"),
    ],
)
def test_the_usual_addresses_are_accepted(template: str, scheme: str) -> None:
    assert GitAccess(template).scheme == scheme


def test_a_token_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="visible ASCII"):
        GitAccess("https://git.example.org/{repository}.git", token="a\nhost=evil")


def test_the_path_of_the_ssh_key_is_in_no_argument(source: SourceRepository, place: Path) -> None:
    seen = place / "seen"
    (place / "bin").mkdir()
    ssh = place / "bin/ssh"
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >> {seen}\necho "Host key verification failed." >&2\nexit 255\n'
    )
    ssh.chmod(0o755)
    (place / "bin/git").symlink_to("/usr/bin/git")
    key = place / "key %h"
    cache = RepositoryCache(
        place / "cache",
        GitAccess("git@git.example.org:{repository}.git", ssh_key_file=key),
        clock=SystemClock(),
        git=str(place / "bin/git"),
    )
    into = place / "tree"
    into.mkdir()
    with pytest.raises(RunFailure) as caught:
        cache.export("acme/shop", "main", into, Stop())
    assert "known_hosts" in caught.value.detail
    arguments = seen.read_text()
    assert "git@git.example.org" in arguments and str(key) not in arguments
    (configuration,) = (place / "cache/git").glob("ssh_config-*")
    assert f'IdentityFile "{place}/key %%h"' in configuration.read_text()
