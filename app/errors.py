"""The tree of errors that the domain raises.

Each one carries data and a message that names the thing, the rule and, where it can, the way out.
Nothing here knows HTTP: ``app/api/problems.py`` turns them into answers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule of some input.

    ``pointer`` is an RFC 6901 JSON pointer to the offending value (``""`` is the whole document),
    ``code`` a stable word that programs may compare, ``detail`` a sentence for people.
    """

    pointer: str
    code: str
    detail: str

    def below(self, prefix: str) -> "Violation":
        """Return the same violation seen from a document in which this one sits at ``prefix``."""
        return Violation(prefix + self.pointer, self.code, self.detail)


class BellringerError(Exception):
    """The root of everything that Bellringer raises on purpose."""


# --- input -----------------------------------------------------------------------------------------


class InvalidInput(BellringerError):
    """The input breaks one or more rules; all of them are in ``violations``."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__("; ".join(f"{v.pointer or '/'}: {v.detail}" for v in self.violations))


class InvalidExpression(BellringerError):
    """A cron expression does not follow the grammar.

    ``field`` is the field's name (``minute`` … ``day of week``, or ``expression`` for the whole),
    ``text`` the piece that is wrong, ``detail`` the whole sentence.
    """

    def __init__(self, expression: str, field: str, text: str, detail: str) -> None:
        self.expression = expression
        self.field = field
        self.text = text
        self.detail = detail
        super().__init__(detail)


class SettingsInvalid(BellringerError):
    """Settings are unknown or malformed; ``problems`` has a sentence for each, values left out."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class ImportRefused(BellringerError):
    """A legacy directory holds files that break rules; nothing was written."""

    def __init__(self, directory: str, problems: Sequence[str]) -> None:
        self.directory = directory
        self.problems = tuple(problems)
        super().__init__(f"{directory} was not imported: " + "; ".join(self.problems))


# --- definitions -----------------------------------------------------------------------------------


class NotFound(BellringerError):
    """There is no such thing."""

    def __init__(self, noun: str, key: str | int) -> None:
        self.noun = noun
        self.key = key
        super().__init__(f"There is no {noun} {key!r}.")


class AlreadyExists(BellringerError):
    """Something with that key is there already."""

    def __init__(self, noun: str, key: str) -> None:
        self.noun = noun
        self.key = key
        super().__init__(f"The {noun} {key!r} exists already.")


class StaleRevision(BellringerError):
    """The automation has moved on from the revision that the writer read."""

    def __init__(self, automation_id: str, expected: frozenset[str], actual: str) -> None:
        self.automation_id = automation_id
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"The automation {automation_id!r} is at revision {actual}, "
            "not at the one this change was made from. Read it again and repeat the change."
        )


class StoredAutomationInvalid(BellringerError):
    """A row in the database breaks a rule, so somebody wrote it past the domain."""

    def __init__(self, automation_id: str, violations: Iterable[Violation]) -> None:
        self.automation_id = automation_id
        self.violations = tuple(violations)
        rules = "; ".join(f"{v.pointer or '/'}: {v.detail}" for v in self.violations)
        super().__init__(f"The stored automation {automation_id!r} is invalid: {rules}")


# --- runs ------------------------------------------------------------------------------------------


class ApiTriggerDisabled(BellringerError):
    """The automation has no enabled API trigger."""

    def __init__(self, automation_id: str) -> None:
        self.automation_id = automation_id
        super().__init__(
            f"The automation {automation_id!r} has no enabled API trigger. "
            'Add {"type": "api", "id": "manual", "enabled": true} to its triggers.'
        )


class IdempotencyKeyReused(BellringerError):
    """The idempotency key came before with another body."""

    def __init__(self, key: str, run_id: int) -> None:
        self.key = key
        self.run_id = run_id
        super().__init__(
            f"The Idempotency-Key {key!r} was used for run {run_id} with another body. "
            "Use a new key for a new request."
        )


class RunFinished(BellringerError):
    """The run is in a terminal state, which nothing leaves."""

    def __init__(self, run_id: int, state: str) -> None:
        self.run_id = run_id
        self.state = state
        super().__init__(f"Run {run_id} has ended already ({state}).")


class RunNotFinished(BellringerError):
    """The run is still queued or running, and only what has ended is run again."""

    def __init__(self, run_id: int, state: str) -> None:
        self.run_id = run_id
        self.state = state
        super().__init__(
            f"Run {run_id} has not ended ({state}). Wait for it, or cancel it, and run it again then."
        )


class RunFailure(BellringerError):
    """A run cannot go on; ``code`` and ``detail`` become its reason in the ledger."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail
        super().__init__(detail)


# --- plugins ---------------------------------------------------------------------------------------


class PluginInvalid(BellringerError):
    """A plugin, or its manifest, breaks rules; ``problems`` has a sentence for each."""

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        super().__init__(f"{subject} breaks the rules: " + "; ".join(self.problems))


class WouldOverwrite(BellringerError):
    """Files that were to be made are there already; nothing was written."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        super().__init__(
            f"Nothing was written, since this would overwrite {', '.join(self.paths)}. "
            "Choose another name, or move what is there."
        )


# --- database --------------------------------------------------------------------------------------


class DatabaseUnavailable(BellringerError):
    """The database did not answer, refused, or stayed locked past the limit.

    ``reason`` is one line for the operator's log. It never holds SQL, values or a password.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The database is not available: {reason}")


class DatabaseTooSlow(DatabaseUnavailable):
    """The database gave a statement up at its time limit; a smaller one may go through."""


class SchemaOutOfDate(BellringerError):
    """The database is not at the schema revision that this release needs."""

    def __init__(self, current: str | None, head: str) -> None:
        self.current = current
        self.head = head
        super().__init__(
            f"The database is at schema revision {current or 'none'}, this release needs {head}. "
            "Run 'bellringer migrate'."
        )
