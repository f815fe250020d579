"""The embedded runner: a run is a child process in a tree of its own, under a shim."""

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.clock import Clock, format_instant
from app.errors import RunFailure
from app.runners import workflow
from app.runners.checkout import RepositoryCache
from app.runners.child import Ending, Program, Timing, supervise
from app.runners.git import GIT, GitAccess
from app.runners.output import Log, Output
from app.runners.redaction import Redactor
from app.runners.stopping import Stop, Stopped, StopReason
from app.runners.trees import RunDirectory, give, run_directory, sweep
from app.runners.values import Outcome, RunTask, RunUser

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What a shell answers for a command that it can't start, and for one that isn't there.
NOT_EXECUTABLE, NOT_THERE = 126, 127

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """What the runner needs to know of its surroundings.

    ``data_dir`` takes ``repositories/`` and ``trees/``. ``extra_env`` is what the operator adds to
    every run (``BELLRINGER_RUN_ENV_*`` without that prefix); it can't replace ``HOME`` or what the
    runner itself sets. ``timing`` rules the shims. Lengths of time are seconds, sizes bytes.
    """

    data_dir: Path
    access: GitAccess
    clock: Clock
    run_user: RunUser | None = None
    extra_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    python: str = sys.executable
    git: str = GIT
    timing: Timing = field(default_factory=Timing)
    git_timeout: float = 300.0
    cache_bytes: int = 10 * 1024**3
    cache_age: float = 30 * 86400.0
    tree_bytes: int = 4 * 1024**3


class ProcessRunner:
    """Carries runs out, any number at a time, each call of :meth:`run` on a thread of the caller's.

    The process that holds it must stay alive and running: what it started ends with it.
    """

    def __init__(self, options: RunnerOptions) -> None:
        self._options = options
        self._clock = options.clock
        self._redactor = options.access.redactor()
        self._trees = options.data_dir.absolute() / "trees"
        self._cache = RepositoryCache(
            options.data_dir.absolute() / "repositories",
            options.access,
            clock=options.clock,
            git_timeout=options.git_timeout,
            max_bytes=options.cache_bytes,
            max_age=options.cache_age,
            max_tree_bytes=options.tree_bytes,
            git=options.git,
            lease=options.timing.lease,
        )

    def sweep(self) -> int:
        """Remove what dead workers left, for a worker's start; return how many runs' trees."""
        self._cache.trim()
        return sweep(self._trees, self._clock)

    def run(
        self, task: RunTask, *, log: Log, stop: Stop, on_commit: Callable[[str], None]
    ) -> Outcome:
        """Carry ``task`` out and return how it went; nothing of it is left running then.

        ``log`` gets lines in batches and ``on_commit`` the commit's hash, both on this thread.
        While ``log`` blocks, so does the run's output; should either raise, the run is ended as
        ``runner-error``. Nothing but an :class:`Outcome` comes out of here.
        """
        attempt = _Attempt(self._options, self._cache, self._trees, self._redactor, task, stop)
        try:
            return attempt.carry_out(Output(log, self._clock, self._redactor), on_commit)
        except Stopped:
            return _stopped(stop.reason, attempt.commit)
        except RunFailure as failure:
            detail = self._redactor.message(failure.detail)
            return Outcome("failed", failure.code, detail, commit=attempt.commit)
        except Exception as error:
            logger.error("Run %d failed in the runner: %s", task.run_id, type(error).__name__)
            detail = self._redactor.message(f"The runner failed: {_described(error)}.")
            return Outcome("failed", "runner-error", detail, commit=attempt.commit)


class _Attempt:
    """One attempt at one run."""

    def __init__(
        self,
        options: RunnerOptions,
        cache: RepositoryCache,
        trees: Path,
        redactor: Redactor,
        task: RunTask,
        stop: Stop,
    ) -> None:
        self._options = options
        self._cache = cache
        self._trees = trees
        self._redactor = redactor
        self._task = task
        self._stop = stop
        self.commit: str | None = None

    def carry_out(self, output: Output, on_commit: Callable[[str], None]) -> Outcome:
        task, user = self._task, self._options.run_user
        if user is not None and user.uid == os.geteuid():
            user = None
        name = f"{task.run_id}-{task.attempt}"
        with run_directory(self._trees, name, user, self._options.clock) as directory:
            self.commit = self._cache.export(task.repository, task.ref, directory.tree, self._stop)
            on_commit(self.commit)
            path = workflow.resolve(directory.tree, task.workflow)
            arguments = workflow.command(path, self._options.python)
            self._write_events(directory)
            if user is not None:
                _hand_over(directory, user)
            output.say(
                f"{task.repository} at {task.ref} is {self.commit}; "
                f"running {path.relative_to(directory.tree)}."
            )
            environment = self._environment(directory, self.commit)
            ending = supervise(
                Program(
                    arguments=arguments,
                    environment=environment,
                    directory=directory.tree,
                    user=user,
                    marker=f"BELLRINGER_EVENTS={directory.events}",
                    kept=(directory.lock,),
                ),
                stop=self._stop,
                on_output=output.feed,
                clock=self._options.clock,
                timing=self._options.timing,
                timeout=task.timeout,
            )
            output.finish()
            if ending.left:
                output.say(f"{ending.left} processes of this run could not be ended.")
            return self._outcome(ending)

    def _write_events(self, directory: RunDirectory) -> None:
        descriptor = os.open(directory.events, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(self._task.events, file)

    def _environment(self, directory: RunDirectory, commit: str) -> dict[str, str]:
        task = self._task
        return {
            "PATH": PATH,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            **self._options.extra_env,
            "HOME": str(directory.home),
            "BELLRINGER_RUN_ID": str(task.run_id),
            "BELLRINGER_AUTOMATION": task.automation_id,
            "BELLRINGER_TRIGGER": task.trigger_id,
            "BELLRINGER_TRIGGER_TYPE": task.trigger_type,
            "BELLRINGER_DUE_AT": "" if task.due_at is None else format_instant(task.due_at),
            "BELLRINGER_ATTEMPT": str(task.attempt),
            "BELLRINGER_REPOSITORY": task.repository,
            "BELLRINGER_REF": task.ref,
            "BELLRINGER_COMMIT": commit,
            "BELLRINGER_EVENTS": str(directory.events),
        }

    def _outcome(self, ending: Ending) -> Outcome:
        if ending.cause == "stopped":
            return _stopped(self._stop.reason, self.commit, _exit_code(ending))
        if ending.cause == "exited" and ending.status == 0:
            return Outcome("succeeded", exit_code=0, commit=self.commit)
        code, detail, exit_code = self._failure(ending)
        return Outcome("failed", code, detail, exit_code, self.commit)

    def _failure(self, ending: Ending) -> tuple[str, str, int | None]:
        seconds = f"{self._options.timing.lease:g} seconds"
        match ending.cause:
            case "exited":
                return "exit-code", _how_it_ended(ending.status), _exit_code(ending)
            case "timeout":
                limit = f"{self._task.timeout:g} seconds"
                detail = f"The workflow did not finish within its time limit of {limit}."
                return "timeout", detail, _exit_code(ending)
            case "silence":
                detail = f"The worker stood still for more than {seconds}, so the run was ended."
                return "worker-lost", detail, _exit_code(ending)
            case "not-started":
                return _not_started(ending, self._task.workflow, self._options.run_user)
            case _:
                detail = "What watches over the run was killed, so the run was ended."
                return "runner-error", detail, None


def _hand_over(directory: RunDirectory, user: RunUser) -> None:
    try:
        for path in (directory.tree, directory.home, directory.events):
            give(path, user)
    except PermissionError:
        raise RunFailure(
            "runner-error",
            f"The worker may not hand the run's files to {user.describe()}. Start it as root, "
            "or unset BELLRINGER_RUN_USER.",
        ) from None


def _not_started(ending: Ending, name: str, user: RunUser | None) -> tuple[str, str, int | None]:
    if ending.stage == "program":
        detail = (
            f"The workflow {name!r} could not be started: {ending.error}. "
            "Check its #! line and that the interpreter is there for the user that it runs as."
        )
        there = ending.error != os.strerror(2)
        return "exit-code", detail, NOT_EXECUTABLE if there else NOT_THERE
    if ending.stage == "user" and user is not None:
        return "runner-error", f"The worker may not become {user.describe()}: {ending.error}.", None
    if ending.stage == "directory" and user is not None:
        detail = f"{user.describe()} can't enter the run's directory below the data directory"
        return "runner-error", f"{detail}: {ending.error}.", None
    return "runner-error", f"The run could not be prepared ({ending.stage}): {ending.error}.", None


def _stopped(
    reason: StopReason | None, commit: str | None, exit_code: int | None = None
) -> Outcome:
    if reason == "lost":
        return Outcome(
            "lost", "worker-lost", "The run belongs to another worker by now.", None, commit
        )
    details = {
        "canceled": "The run was canceled.",
        "shutdown": "The worker was shut down before the run had ended.",
    }
    return Outcome("canceled", "canceled", details[reason or "canceled"], exit_code, commit)


def _exit_code(ending: Ending) -> int | None:
    """Return the exit code as shells count it: 128 + n for signal n."""
    status = ending.status
    return 128 - status if status is not None and status < 0 else status


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return "The workflow ended in an unknown way."
    if status >= 0:
        return f"The workflow ended with exit code {status}."
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "a signal"
    return f"The workflow was ended by {name} (signal {-status})."


def _described(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{type(error).__name__}: {error.strerror}"
    return type(error).__name__
