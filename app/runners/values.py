"""What goes into a run and what comes out of it."""

import grp
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

Stream = Literal["stdout", "stderr", "system"]
State = Literal["succeeded", "failed", "canceled", "lost"]


@dataclass(frozen=True, slots=True)
class RunTask:
    """One attempt at one run, as it was claimed.

    ``events`` is the JSON document that the workflow reads from the file in ``BELLRINGER_EVENTS``
    (hence ``Any``), ``timeout`` the seconds that the workflow itself may take.
    """

    run_id: int
    automation_id: str
    trigger_type: str
    trigger_id: str
    due_at: datetime | None
    attempt: int
    repository: str
    ref: str
    workflow: str
    events: Mapping[str, Any]
    timeout: float


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a run's log; ``system`` lines are the runner's own."""

    stream: Stream
    text: str
    time: datetime


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run went.

    ``lost`` means that the run belongs to somebody else by now: nothing is to be written about it.
    ``reason`` and ``detail`` are None exactly if it succeeded. ``exit_code`` is the workflow's own,
    or 128 + n when signal n ended it; None if it never started or its ending was not seen.
    """

    state: State
    reason: str | None = None
    detail: str | None = None
    exit_code: int | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class RunUser:
    """The system user that workflows run as; changing to it takes a worker that is root."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    @classmethod
    def named(cls, name: str) -> "RunUser":
        """Look ``name`` up in the system's user database; :exc:`ValueError` if it is not there."""
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise ValueError(f"There is no system user {name!r} to run workflows as.") from None
        groups = tuple(sorted(os.getgrouplist(name, entry.pw_gid)))
        return cls(name, entry.pw_uid, entry.pw_gid, groups)

    def describe(self) -> str:
        """Return the user and group for messages."""
        try:
            group = grp.getgrgid(self.gid).gr_name
        except KeyError:
            group = str(self.gid)
        return f"{self.name}:{group}"
