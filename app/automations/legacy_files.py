"""Reads a directory of TOML definitions and judges every file of it before anybody writes."""

import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app import cron
from app.automations import values
from app.automations.documents import read_draft
from app.automations.values import Automation
from app.errors import ImportRefused, InvalidInput, Violation

FILE_LIMIT = 1024 * 1024
"""Bytes that one file may have, as much as one request to the API."""

Listing = frozenset[tuple[str, int, int]]
Progress = Callable[[int, int], None]
"""Told how many of how many files have been read."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """What was read: the automations, and the listing they were read from."""

    listing: Listing
    automations: tuple[Automation, ...]
    warnings: tuple[str, ...]


class Gone(Exception):
    """A file of the directory is no longer there: somebody else imported it meanwhile."""


def listing(directory: Path) -> Listing | None:
    """Return name, size and change time of each TOML file, or None without a directory."""
    try:
        with os.scandir(directory) as entries:
            found = [e for e in entries if e.name.endswith(".toml")]
        regular = []
        for entry in found:
            try:
                if entry.is_file():
                    about = entry.stat()
                    regular.append((entry.name, about.st_size, about.st_mtime_ns))
            except OSError:
                # It went meanwhile, or is a link that leads nowhere.
                continue
        return frozenset(regular)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ImportRefused(str(directory), [f"cannot be listed: {error.strerror}"]) from error


def read(directory: Path, progress: Progress | None = None) -> Definitions | None:
    """Return what the directory defines; None without a directory, or without a TOML file in it.

    Raises ImportRefused with every error of every file, and Gone.
    """
    listed = listing(directory)
    if not listed:
        return None
    names = sorted(name for name, _, _ in listed)
    problems: list[str] = []
    warnings: list[str] = []
    found: list[Automation] = []
    for index, name in enumerate(names, start=1):
        try:
            automation = _read_file(directory / name)
            found.append(automation)
            warnings += [f"{_shown(name)}: {w}" for w in _warnings(automation)]
        except InvalidInput as error:
            problems += [f"{_shown(name)}: {_sentence(v)}" for v in error.violations]
        if progress is not None:
            progress(index, len(names))
    if problems:
        raise ImportRefused(str(directory), problems)
    return Definitions(listed, tuple(found), tuple(warnings))


def _read_file(path: Path) -> Automation:
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_LIMIT + 1)
    except FileNotFoundError:
        raise Gone from None
    except OSError as error:
        raise _fault("cannot be read: " + (error.strerror or type(error).__name__)) from error
    if len(raw) > FILE_LIMIT:
        raise _fault(f"has more than {FILE_LIMIT:,} bytes")
    try:
        document: dict[str, Any] = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _fault(f"is not UTF-8 (at line {line})") from error
    except tomllib.TOMLDecodeError as error:
        raise _fault(f"is not TOML: {error}") from error
    except (RecursionError, ValueError) as error:
        raise _fault("is not TOML that can be read: too deep, or a number too long") from error
    violations: list[Violation] = []
    stem = path.name.removesuffix(".toml")
    violations += values.judge("", stem, values.automation_id_fault)
    try:
        draft = read_draft(document, enabled_required=True)
    except InvalidInput as error:
        raise InvalidInput([*violations, *error.violations]) from error
    if violations:
        raise InvalidInput(violations)
    return Automation(stem, hashlib.sha256(raw).hexdigest(), draft)


def _fault(sentence: str) -> InvalidInput:
    return InvalidInput([Violation("", "unreadable", sentence)])


def _sentence(violation: Violation) -> str:
    return f"{violation.pointer}: {violation.detail}" if violation.pointer else violation.detail


def _shown(name: str) -> str:
    """Return a file's name as it can be printed, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "replace").encode("unicode_escape").decode()


def _warnings(automation: Automation) -> Iterator[str]:
    for trigger in automation.draft.schedules:
        if not cron.parse(trigger.expression).ever_fires:
            yield f"the trigger {trigger.id!r} never fires ({trigger.expression})"
