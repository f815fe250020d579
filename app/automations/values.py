"""What an automation is, as values that can't exist invalid.

Each rule is a function from a value to the sentence that says what is wrong with it, or None; the API,
the import, the store and the worker all judge by these, so that they agree.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from app import cron
from app.errors import InvalidExpression, InvalidInput, Violation

API_TRIGGER_ID = "manual"
"""The id under which an enabled API trigger always reads back."""

NAME_LIMIT = 1_000
DESCRIPTION_LIMIT = 100_000
EXPRESSION_LIMIT = 255

_AUTOMATION_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_TRIGGER_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_REVISION = re.compile(r"[0-9a-f]{64}")
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?")
_REPOSITORY_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PATH = re.compile(r"[A-Za-z0-9/._-]{1,255}")
# Unicode's control characters (category Cc) and surrogates (Cs).
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_DESCRIPTIONS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


# --- rules -----------------------------------------------------------------------------------------


def automation_id_fault(value: str) -> str | None:
    """Return what is wrong with an automation's id."""
    if _AUTOMATION_ID.fullmatch(value):
        return None
    return (
        "An automation's id has 1 to 63 characters of a-z, 0-9 and '-', and starts with a letter "
        "or a digit."
    )


def trigger_id_fault(value: str) -> str | None:
    """Return what is wrong with a trigger's id."""
    if _TRIGGER_ID.fullmatch(value):
        return None
    return (
        "A trigger's id has 1 to 63 characters of a-z, 0-9, '_' and '-', and starts with a letter "
        "or a digit."
    )


def revision_fault(value: str) -> str | None:
    """Return what is wrong with a revision."""
    return None if _REVISION.fullmatch(value) else "A revision is 64 hexadecimal digits, a-f small."


def name_fault(value: str) -> str | None:
    """Return what is wrong with a name."""
    if not value.strip():
        return "A name is not blank."
    if len(value) > NAME_LIMIT:
        return f"A name has at most {NAME_LIMIT:,} characters; this one has {len(value):,}."
    return _text_fault(value, "A name", _NOT_IN_NAMES)


def description_fault(value: str) -> str | None:
    """Return what is wrong with a description."""
    if len(value) > DESCRIPTION_LIMIT:
        return (
            f"A description has at most {DESCRIPTION_LIMIT:,} characters; "
            f"this one has {len(value):,}."
        )
    return _text_fault(value, "A description", _NOT_IN_DESCRIPTIONS)


def repository_fault(value: str) -> str | None:
    """Return what is wrong with a repository's name."""
    owner, slash, name = value.partition("/")
    if not slash or "/" in name:
        return "A repository is written owner/repo, with exactly one slash."
    if not _OWNER.fullmatch(owner):
        return (
            "A repository's owner has 1 to 39 characters of A-Z, a-z, 0-9 and '-', and starts and "
            "ends with a letter or a digit."
        )
    if not _REPOSITORY_NAME.fullmatch(name) or name in (".", ".."):
        return (
            "A repository's name has 1 to 100 characters of A-Z, a-z, 0-9, '.', '_' and '-', and "
            "is not '.' or '..'."
        )
    return None


def ref_fault(value: str) -> str | None:
    """Return what is wrong with a Git ref: a branch, a tag or a commit."""
    if not _PATH.fullmatch(value):
        return "A ref has 1 to 255 characters of A-Z, a-z, 0-9, '/', '.', '_' and '-'."
    if value[0] in "/-." or value[-1] in "/.":
        return "A ref does not start with '/', '-' or '.', nor end with '/' or '.'."
    if ".." in value or "//" in value:
        return "A ref holds no '..' and no '//'."
    if "/." in value or ".lock/" in value or value.endswith(".lock"):
        return "No part of a ref starts with '.' or ends in '.lock'."
    return None


def workflow_fault(value: str) -> str | None:
    """Return what is wrong with a workflow's path."""
    if not _PATH.fullmatch(value):
        return "A workflow has 1 to 255 characters of A-Z, a-z, 0-9, '/', '.', '_' and '-'."
    if value[0] == "/" or value[-1] == "/" or "//" in value:
        return "A workflow is a relative path: no '/' at its start or end, and no '//'."
    if any(part in (".", "..") for part in value.split("/")):
        return "No part of a workflow's path is '.' or '..'."
    return None


def expression_fault(value: str) -> str | None:
    """Return what is wrong with a cron expression."""
    if len(value) > EXPRESSION_LIMIT:
        return (
            f"An expression has at most {EXPRESSION_LIMIT} characters; this one has {len(value):,}."
        )
    try:
        cron.parse(value)
    except InvalidExpression as error:
        return error.detail
    return None


def _text_fault(value: str, noun: str, forbidden: re.Pattern[str]) -> str | None:
    found = forbidden.search(value)
    if found is None:
        return None
    number = ord(found.group())
    kind = "lone surrogates" if number >= 0xD800 else "control characters"
    return f"{noun} holds no {kind}; this one holds U+{number:04X}."


Rule = Callable[[str], str | None]


def judge(pointer: str, value: object, rule: Rule) -> Iterator[Violation]:
    """Yield the violation of ``rule`` by ``value``, which stands at ``pointer``, if there is one."""
    if not isinstance(value, str):
        yield Violation(pointer, "type", "This is a string.")
    elif fault := rule(value):
        yield Violation(pointer, "invalid", fault)


# --- values ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """What an automation runs: a workflow, at a ref, in a repository."""

    repository: str
    ref: str
    workflow: str

    def __post_init__(self) -> None:
        """Raise InvalidInput with every rule that is broken."""
        if (
            repository_fault(self.repository)
            or ref_fault(self.ref)
            or workflow_fault(self.workflow)
        ):
            raise InvalidInput(
                [
                    *judge("/repository", self.repository, repository_fault),
                    *judge("/ref", self.ref, ref_fault),
                    *judge("/workflow", self.workflow, workflow_fault),
                ]
            )


@dataclass(frozen=True, slots=True)
class ScheduleTrigger:
    """Starts an automation whenever a cron expression is due; the expression is kept canonical."""

    id: str
    enabled: bool
    expression: str

    def __post_init__(self) -> None:
        """Raise InvalidInput with every rule that is broken."""
        if trigger_id_fault(self.id) or expression_fault(self.expression):
            raise InvalidInput(
                [
                    *judge("/id", self.id, trigger_id_fault),
                    *judge("/expression", self.expression, expression_fault),
                ]
            )
        canonical = cron.parse(self.expression).source
        if canonical != self.expression:
            object.__setattr__(self, "expression", canonical)


@dataclass(frozen=True, slots=True)
class Draft:
    """All of an automation that a client may set; its schedules are kept sorted by id."""

    name: str
    description: str | None
    target: Target
    api_enabled: bool
    schedules: tuple[ScheduleTrigger, ...] = ()

    def __post_init__(self) -> None:
        """Raise InvalidInput with every rule that is broken."""
        violations = [*judge("/name", self.name, name_fault)]
        if self.description is not None:
            violations += judge("/description", self.description, description_fault)
        if len(self.schedules) > 1:
            object.__setattr__(self, "schedules", tuple(sorted(self.schedules, key=lambda t: t.id)))
        violations += duplicate_ids(
            [(t.id, f"/triggers/{t.id}/id") for t in self.schedules],
            {API_TRIGGER_ID} if self.api_enabled else set(),
        )
        if violations:
            raise InvalidInput(violations)


@dataclass(frozen=True, slots=True)
class Automation:
    """An automation as it is stored: its id, its revision, and what its client set."""

    id: str
    revision: str
    draft: Draft

    def __post_init__(self) -> None:
        """Raise InvalidInput with every rule that is broken."""
        if automation_id_fault(self.id) or revision_fault(self.revision):
            raise InvalidInput(
                [
                    *judge("/id", self.id, automation_id_fault),
                    *judge("/revision", self.revision, revision_fault),
                ]
            )


def duplicate_ids(
    schedules: Iterable[tuple[str, str]], taken_by_api: Collection[object]
) -> Iterator[Violation]:
    """Yield a violation for each schedule, given as id and pointer, whose id is taken already.

    An enabled API trigger takes ``manual``, since it reads back under that id.
    """
    taken = set(taken_by_api)
    for trigger_id, pointer in schedules:
        if trigger_id in taken:
            owner = " (the API trigger has it)" if trigger_id in taken_by_api else ""
            yield Violation(
                pointer,
                "duplicate-id",
                f"The trigger id {trigger_id!r} is used twice in this automation{owner}.",
            )
        taken.add(trigger_id)
