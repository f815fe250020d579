"""Starting a process under a shim and seeing it through: the worker's end of the pipe.

Everything that a worker starts, Git and workflows alike, is started here, so that nothing runs on
unwatched: a thread of the worker says every few seconds that it is alive, and the shim
(``shim.py``) ends everything when that stops coming.
"""

import contextlib
import io
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from app.clock import Clock
from app.runners.stopping import Stop
from app.runners.values import RunUser

SHIM = Path(__file__).with_name("shim.py")
UNRESPONSIVE_SECONDS = 30.0
DRAIN_SECONDS = 2.0

Cause = Literal["exited", "timeout", "stopped", "silence", "not-started", "shim-lost"]
OnOutput = Callable[[Literal["stdout", "stderr"], bytes], None]


@dataclass(frozen=True, slots=True)
class Timing:
    """The lengths of time that a shim goes by, in seconds.

    ``lease``: silence of the worker after which everything is ended. ``grace``: from TERM to KILL.
    ``linger``: what the child leaves running when it ends by itself may finish for so long.
    """

    lease: float = 30.0
    grace: float = 10.0
    linger: float = 1.0


@dataclass(frozen=True, slots=True)
class Program:
    """What to start: the whole environment, and an absolute path as the first argument.

    ``marker`` is an entry of the environment that nothing else on the machine has, by which strays
    are found if the shim is killed. ``kept`` are locks to hold until nothing is left.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    user: RunUser | None = None
    max_file_bytes: int | None = None
    marker: str | None = None
    kept: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended.

    ``status`` is as :func:`os.waitstatus_to_exitcode` gives it: negative for a signal; None where
    it was not seen. ``error`` and ``stage`` belong to ``not-started``. ``left`` counts processes that
    would not be killed.
    """

    cause: Cause
    status: int | None = None
    error: str | None = None
    stage: str | None = None
    left: int = 0


def supervise(
    program: Program,
    *,
    stop: Stop,
    on_output: OnOutput,
    clock: Clock,
    timing: Timing,
    timeout: float,
) -> Ending:
    """Start ``program``, hand on its output as it comes, and return when nothing of it is left.

    ``on_output`` is called on the calling thread only; while it blocks, the time limit and ``stop``
    still hold. Should it raise, everything is killed and its exception goes on to the caller.
    """
    return _Supervision(program, stop, clock, timing, timeout).run(on_output)


class _Supervision:
    def __init__(
        self, program: Program, stop: Stop, clock: Clock, timing: Timing, timeout: float
    ) -> None:
        self._program = program
        self._stop = stop
        self._clock = clock
        self._timing = timing
        self._deadline = clock.monotonic() + timeout
        self._wake = threading.Event()
        self._done = False
        self._asked: Cause | None = None
        self._hurried = False
        self._reports = b""

    def run(self, on_output: OnOutput) -> Ending:
        with contextlib.ExitStack() as stack:
            control, self._control = _pipe(stack)
            self._report, report = _pipe(stack)
            self._shim = self._start_shim(control.fileno(), report.fileno())
            control.close()
            report.close()
            for stream in (self._shim.stdout, self._shim.stderr):
                if stream is not None:
                    stack.callback(stream.close)
            watch = threading.Thread(target=self._watch, name="run-watch", daemon=True)
            stack.callback(self._finish, watch)
            self._give_order()
            watch.start()
            try:
                self._pump(on_output)
            except BaseException:
                self._tell(b"K")
                raise
        return self._ending()

    def _start_shim(self, control: int, report: int) -> "subprocess.Popen[bytes]":
        descriptors = (control, report, *self._program.kept)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(SHIM), *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            pass_fds=descriptors,
            start_new_session=True,
        )

    def _give_order(self) -> None:
        program = self._program
        user = program.user
        order: dict[str, Any] = {
            "arguments": list(program.arguments),
            "environment": dict(program.environment),
            "directory": str(program.directory),
            "max_file_bytes": program.max_file_bytes,
            "user": user and {"uid": user.uid, "gid": user.gid, "groups": list(user.groups)},
            "lease": self._timing.lease,
            "grace": self._timing.grace,
            "linger": self._timing.linger,
        }
        left = memoryview(json.dumps(order).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while left:
                left = left[self._control.write(left) :]
        os.set_blocking(self._control.fileno(), False)

    # --- the watching thread: says that the worker lives, and when it is enough

    def _watch(self) -> None:
        beat = self._timing.lease / 3
        with self._stop.waking(self._wake):
            while not self._done:
                self._tell(self._next_word())
                if self._clock.monotonic() >= self._deadline and self._asked is not None:
                    # The shim itself does not answer: it was stopped by what it watches, or hangs.
                    self._shim.kill()
                    return
                self._wake.wait(max(0.0, min(beat, self._deadline - self._clock.monotonic())))
                self._wake.clear()

    def _next_word(self) -> bytes:
        if self._stop.reason == "lost" and not self._hurried:
            self._hurried = True
            self._ask("stopped")
            return b"K"
        if self._asked is None and self._stop.reason is not None:
            self._ask("stopped")
            return b"T"
        if self._asked is None and self._clock.monotonic() >= self._deadline:
            self._ask("timeout")
            return b"T"
        return b"."

    def _ask(self, cause: Cause) -> None:
        self._asked = self._asked or cause
        self._deadline = self._clock.monotonic() + self._timing.grace + UNRESPONSIVE_SECONDS

    def _tell(self, word: bytes) -> None:
        # A shim that is gone or does not read must not hold its worker up.
        with contextlib.suppress(BrokenPipeError):
            self._control.write(word)

    # --- the calling thread: output and reports

    def _pump(self, on_output: OnOutput) -> None:
        assert self._shim.stdout is not None and self._shim.stderr is not None
        drained = float("inf")
        with selectors.DefaultSelector() as selector:
            selector.register(self._shim.stdout, selectors.EVENT_READ, "stdout")
            selector.register(self._shim.stderr, selectors.EVENT_READ, "stderr")
            selector.register(self._report, selectors.EVENT_READ, "report")
            while selector.get_map() and self._clock.monotonic() < drained:
                for key, _ in selector.select(None if drained == float("inf") else 0.1):
                    data = os.read(key.fd, 65536)
                    if key.data == "report":
                        self._reports += data
                    elif data:
                        on_output(key.data, data)
                    if not data:
                        selector.unregister(key.fileobj)
                        if key.data == "report":
                            # Only what could not be killed can still hold the others open.
                            drained = self._clock.monotonic() + DRAIN_SECONDS

    def _finish(self, watch: threading.Thread) -> None:
        """Let the shim end, and end it if it will not."""
        try:
            self._shim.wait(self._timing.grace + UNRESPONSIVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._shim.kill()
            self._shim.wait()
        self._done = True
        self._wake.set()
        if watch.ident is not None:
            watch.join()

    def _ending(self) -> Ending:
        messages = [json.loads(line) for line in self._reports.splitlines()]
        last = messages[-1] if messages else {}
        if "failed" in last:
            error = os.strerror(last["errno"])
            return Ending("not-started", error=error, stage=last["failed"])
        if "cause" not in last:
            left = _end_strays(last.get("started"), self._program.marker, self._clock)
            return Ending(self._asked or "shim-lost", left=left)
        status = last["status"]
        code = None if status is None else os.waitstatus_to_exitcode(status)
        cause: Cause = last["cause"]
        if cause == "stopped":
            cause = self._asked or cause
        return Ending(cause, status=code, left=last["left"])


def _pipe(stack: contextlib.ExitStack) -> tuple[io.FileIO, io.FileIO]:
    reader, writer = os.pipe()
    return stack.enter_context(io.FileIO(reader)), stack.enter_context(io.FileIO(writer, "w"))


def _end_strays(child: int | None, marker: str | None, clock: Clock) -> int:
    """Kill what a dead shim leaves: the child's session, and whatever carries the marker."""
    deadline = clock.monotonic() + UNRESPONSIVE_SECONDS
    pause = threading.Event()
    while left := _strays(child, marker):
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if clock.monotonic() >= deadline:
            return len(left)
        pause.wait(0.02)
    return 0


def _strays(child: int | None, marker: str | None) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _is_stray(entry, child, marker):
                found.append(int(entry.name))
    return found


def _is_stray(entry: Path, child: int | None, marker: str | None) -> bool:
    try:
        state, _, _, session = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:4]
        if state in b"ZX":
            return False
        if int(session) == child:
            return True
        return marker is not None and marker.encode() in (entry / "environ").read_bytes().split(
            b"\0"
        )
    except OSError:
        return False
