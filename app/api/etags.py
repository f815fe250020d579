"""Reads If-Match and If-None-Match, strictly by RFC 9110, sections 8.8.3 and 13.1.

A lenient parser turns a malformed header into "no condition", and a write that should have been refused
goes through. So whatever is not understood here is an error.

Two leniences, since clients and proxies do these: a bare revision stands for the same in quotes, and a
suffix that a proxy adds to a tag when it compresses is taken off.
"""

import re
from dataclasses import dataclass

_TAG = r'(?P<weak>W/)?"(?P<opaque>[\x21\x23-\x7e\x80-\xff]*)"|(?P<bare>[0-9a-f]{64})'
_ELEMENT = re.compile(rf"[ \t,]*(?:{_TAG})[ \t]*(?=,|\Z)")
_NOTHING = re.compile(r"[ \t,]*\Z")
_REVISION = re.compile(r"[0-9a-f]{64}")
_COMPRESSED = re.compile(r"(?P<revision>[0-9a-f]{64})(?:--?gzip|;gzip|-br)")


class MalformedTags(Exception):
    """The header is no list of entity tags; the message says what is expected."""

    def __init__(self, header: str) -> None:
        self.header = header
        super().__init__(
            f"{header} takes '*' or entity tags in double quotes with commas between them, as in "
            f'{header}: "…revision…".'
        )


@dataclass(frozen=True, slots=True)
class EntityTag:
    """One tag as a client sent it."""

    opaque: str
    weak: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """What a header asks for: any current revision (``*``), or one of ``tags``."""

    tags: tuple[EntityTag, ...]
    any: bool = False

    @property
    def revisions(self) -> frozenset[str]:
        """The revisions that strong tags name, which alone If-Match can match.

        What is none matches nothing, and so many tags fit into headers that no statement takes them.
        """
        strong = (tag.opaque for tag in self.tags if not tag.weak)
        return frozenset(opaque for opaque in strong if _REVISION.fullmatch(opaque))

    def matches_strongly(self, revision: str) -> bool:
        """Compare as If-Match does: a weak tag matches nothing."""
        return self.any or revision in self.revisions

    def matches_weakly(self, revision: str) -> bool:
        """Compare as If-None-Match does: weakness makes no difference."""
        return self.any or any(tag.opaque == revision for tag in self.tags)


def parse(header: str, value: str) -> Condition:
    """Return the condition in ``value``, all lines of the header joined by commas.

    ``header`` is its name, for the message. Raises MalformedTags.
    """
    if value.strip(" \t") == "*":
        return Condition((), any=True)
    tags = []
    position = 0
    while match := _ELEMENT.match(value, position):
        opaque = match["bare"] or match["opaque"]
        tags.append(EntityTag(_uncompressed(opaque), match["weak"] is not None))
        position = match.end()
    if not tags or not _NOTHING.match(value, position):
        raise MalformedTags(header)
    return Condition(tuple(tags))


def quoted(revision: str) -> str:
    """Return the strong entity tag of a revision."""
    return f'"{revision}"'


def _uncompressed(opaque: str) -> str:
    match = _COMPRESSED.fullmatch(opaque)
    return match["revision"] if match else opaque
