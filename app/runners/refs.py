"""Which repositories and refs may be asked for, and in which order a ref's meanings are tried."""

import re
from collections.abc import Sequence

from app.errors import RunFailure

_REPOSITORY = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?/(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}"
)
_REF = re.compile(
    r"(?![-./])(?!@\Z)(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|\Z)|[/.]\Z))[A-Za-z0-9/._-]{1,255}"
)
_HASH = re.compile(r"[0-9A-Fa-f]{40}")


def check(repository: str, ref: str) -> None:
    """Raise :exc:`RunFailure` (``target-invalid``) unless both follow the rules of definitions.

    They were checked when they were written; this is the last line before they reach Git.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise RunFailure("target-invalid", f"The repository {repository!r} is not owner/name.")
    if not _REF.fullmatch(ref):
        raise RunFailure("target-invalid", f"The ref {ref!r} is not a branch, tag or commit.")


def is_hash(ref: str) -> bool:
    """Return whether ``ref`` is the full hash of a commit."""
    return _HASH.fullmatch(ref) is not None


def meanings(ref: str) -> Sequence[str]:
    """Return the full names that ``ref`` may stand for, the first that exists being meant."""
    if ref == "HEAD" or ref.startswith("refs/"):
        return (ref,)
    return (f"refs/heads/{ref}", f"refs/tags/{ref}")
