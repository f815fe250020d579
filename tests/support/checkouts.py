"""Exporting from a cache, or being refused."""

from pathlib import Path

import pytest

from app.errors import RunFailure
from app.runners.checkout import RepositoryCache
from app.runners.stopping import Stop

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
