"""A source of repositories and a cache for them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.runners.checkout import RepositoryCache
from app.runners.git import GitAccess
from app.runners.trees import remove_tree
from tests.support.bench import Bench
from tests.support.repositories import SourceRepository

REPOSITORY = "acme/shop"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may enter, which pytest's own is not."""
    path = Path(tempfile.mkdtemp(prefix="bellringer-test-"))
    path.chmod(0o755)
    yield path
    remove_tree(path)


@pytest.fixture
def source(place: Path) -> SourceRepository:
    return SourceRepository(place / "source" / REPOSITORY)


@pytest.fixture
def access(place: Path) -> GitAccess:
    return GitAccess(f"file://{place}/source/{{repository}}")


@pytest.fixture
def cache(place: Path, access: GitAccess) -> RepositoryCache:
    return RepositoryCache(place / "cache", access, clock=SystemClock(), git_timeout=20)


@pytest.fixture
def into(place: Path) -> Path:
    """An empty directory to export into."""
    path = place / "tree"
    path.mkdir()
    return path


@pytest.fixture
def bench(place: Path, source: SourceRepository, access: GitAccess) -> Bench:
    return Bench(place, source, access)
