"""Keeps several programs running, restarts what dies, and stops all of them in order."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

import click

_FIRST_WAIT = 1.0
_LONGEST_WAIT = 30.0
_STEADY = 60.0
"""Seconds after which a program counts as running well, so that its next restart is quick again."""

_PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Program:
    """A Python program to keep running: its name, its arguments, and what its environment adds."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Child:
    program: Program
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    wait: float = _FIRST_WAIT
    start_at: float = 0.0


class Supervisor:
    """Runs until SIGTERM or SIGINT; then stops the programs and waits up to ``patience`` seconds.

    The first of them is stopped last: it is what people look through at the others. A second signal
    ends what is left at once. Where the supervisor itself is killed, Linux tells the programs to end.
    """

    def __init__(self, programs: Sequence[Program], *, patience: float) -> None:
        self._children = [_Child(program) for program in programs]
        self._patience = patience
        self._signals = 0
        self._woken = threading.Event()
        self._ready: tuple[str, Callable[[], None]] | None = None

    def when_ready(self, url: str, tell: Callable[[], None]) -> None:
        """Call ``tell`` once, when ``url`` first answers with success."""
        self._ready = (url, tell)

    def run(self) -> int:
        """Keep the programs running; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda *_: self._woken.set())
        while not self._signals:
            now = time.monotonic()
            for child in self._children:
                self._tend(child, now)
            self._look_if_ready()
            self._woken.wait(0.25 if self._ready else self._until_next(now))
            self._woken.clear()
        return self._stop()

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1
        self._woken.set()

    def _tend(self, child: _Child, now: float) -> None:
        """Start a program that is due to start; note one that ended."""
        if child.process is not None:
            code = child.process.poll()
            if code is None:
                return
            if now - child.started >= _STEADY:
                child.wait = _FIRST_WAIT
            _say(f"{child.program.name} ended ({_how(code)}); it starts again in {child.wait:g} s")
            child.process = None
            child.start_at = now + child.wait
            child.wait = min(child.wait * 2, _LONGEST_WAIT)
        if now >= child.start_at:
            child.process = subprocess.Popen(
                [sys.executable, *child.program.arguments],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **child.program.environment},
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
            child.started = now

    def _until_next(self, now: float) -> float:
        waits = [c.start_at - now for c in self._children if c.process is None]
        return max(0.05, min(waits, default=3600.0))

    def _look_if_ready(self) -> None:
        if self._ready is None:
            return
        url, tell = self._ready
        try:
            with urllib.request.urlopen(url, timeout=2):
                pass
        except (OSError, urllib.error.URLError):
            return
        self._ready = None
        tell()

    def _stop(self) -> int:
        """Stop the programs but the first, and then the first; return 1 if one had to be killed."""
        running = [c for c in self._children if c.process is not None and c.process.poll() is None]
        names = ", ".join(c.program.name for c in running)
        _say(
            f"stopping {names or 'nothing'}; runs at work may end first. "
            "A second signal ends everything at once."
        )
        deadline = time.monotonic() + self._patience
        first = self._children[0]
        in_order = True
        for group in ([c for c in running if c is not first], [c for c in running if c is first]):
            for child in group:
                if child.process is not None:
                    child.process.terminate()
            ended = [self._ended(child, deadline) for child in group]
            in_order = in_order and all(ended)
        return 0 if in_order else 1

    def _ended(self, child: _Child, deadline: float) -> bool:
        """Wait for a program that was told to end; kill it, and say so, if it does not in time."""
        process = child.process
        assert process is not None
        while process.poll() is None:
            if self._signals > 1 or time.monotonic() > deadline:
                _say(f"{child.program.name} did not end in time and is killed")
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait(10)
                return False
            self._woken.wait(0.5)
            self._woken.clear()
        return True


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _say(text: str) -> None:
    click.echo(f"bellringer up: {text}", err=True)
