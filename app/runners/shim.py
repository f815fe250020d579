"""Stands between a worker and one thing that it started, and ends it when the worker can't.

Run as ``python -I -S shim.py CONTROL REPORT [KEPT …]``, the arguments being inherited descriptors.
It stands alone: only the standard library, nothing of this package.

CONTROL brings one line of JSON (what to start), then single bytes: ``.`` I am alive, ``T`` end it
gently, ``K`` end it now. End of file, or silence longer than the lease, means that the worker is
gone or stopped: the shim ends everything and goes too. REPORT takes lines of JSON:
``{"started": pid}`` or ``{"failed": stage, "errno": n}``, and last ``{"cause", "status", "left"}``.
KEPT are locks to be held until nothing that was started is left.

As a child subreaper the shim stays an ancestor of all that the child starts, daemons included, so
that walking /proc finds them. Where there is no prctl or no /proc, it ends the process group alone.
"""

import contextlib
import errno
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SWEEP_SECONDS = 20.0
LOOK_AGAIN_SECONDS = 0.05
NEVER = float("inf")


Order = dict[str, Any]


def main(arguments: list[str]) -> int:
    """Do the whole of the shim's work; the exit status says nothing."""
    control, report, *kept = (int(argument) for argument in arguments)
    for descriptor in (control, report, *kept):
        os.set_inheritable(descriptor, False)
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_IGN)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    line, said = _read_line(control)
    if line:
        Watch(json.loads(line), control, report).run(said)
    return 0


class Watch:
    """The shim's work: start the child, listen to the worker, leave nothing behind."""

    def __init__(self, order: Order, control: int, report: int) -> None:
        self.order = order
        self.control = control
        self.report = report
        self.child = 0
        self.status: int | None = None
        self.cause = "exited"
        self.kill_at: float = NEVER
        self.silent_at: float = time.monotonic() + order["lease"]

    def run(self, said: bytes) -> None:
        """See the child through, ``said`` being what the worker has said already."""
        wakes, wake = os.pipe()
        for end in (wakes, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.child, failure = start(self.order)
        if failure is not None:
            self.say(failure)
            return
        self.say({"started": self.child})
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(wakes, select.POLLIN)
        self.heed(said)
        while not self.over():
            for descriptor, _ in poll.poll(self.patience() * 1000):
                if descriptor == wakes:
                    os.read(wakes, 4096)
                elif not self.listen():
                    poll.unregister(self.control)
            if time.monotonic() >= self.silent_at:
                self.end("silence")
                self.silent_at = NEVER
            if time.monotonic() >= self.kill_at:
                break
        left = self.sweep()
        self.say({"cause": self.cause, "status": self.status, "left": left})

    def over(self) -> bool:
        """Whether the child has ended and nothing that it started is left."""
        self.reap()
        if self.status is None:
            return False
        if not self.descendants():
            return True
        if self.cause == "exited":
            # What the child leaves may still be flushing its output; a daemon is not waited for.
            self.kill_at = min(self.kill_at, time.monotonic() + self.order["linger"])
        return False

    def patience(self) -> float:
        until: float = min(self.silent_at, self.kill_at) - time.monotonic()
        longest = LOOK_AGAIN_SECONDS if self.status is not None else 60.0
        return max(0.0, min(until, longest))

    def listen(self) -> bool:
        """Take what the worker says; False once it is gone."""
        said = os.read(self.control, 4096)
        if not said:
            self.end("worker-gone")
            self.silent_at = NEVER
            return False
        self.heed(said)
        return True

    def heed(self, said: bytes) -> None:
        self.silent_at = time.monotonic() + self.order["lease"]
        if b"K" in said:
            self.end("stopped", 0.0)
        elif b"T" in said:
            self.end("stopped")

    def end(self, cause: str, grace: float | None = None) -> None:
        """Ask the child's group to end, and have everything killed after ``grace`` seconds."""
        if self.cause == "exited":
            self.cause = cause
            for number in (signal.SIGTERM, signal.SIGCONT):
                with contextlib.suppress(OSError):
                    os.killpg(self.child, number)
        grace = self.order["grace"] if grace is None else grace
        self.kill_at = min(self.kill_at, time.monotonic() + grace)

    def sweep(self) -> int:
        """Kill all that is left, and return how many would not go."""
        deadline = time.monotonic() + SWEEP_SECONDS
        with contextlib.suppress(OSError):
            # Whatever forks as fast as it can must not leave the sweep without its share.
            os.setpriority(os.PRIO_PROCESS, 0, -10)
        while left := self.descendants():
            if time.monotonic() >= deadline:
                return sum(target > 0 for target in left)
            # Stopped first, so that nothing can fork faster than it is killed.
            stopped: set[int] = set()
            while (new := self.descendants() - stopped) and time.monotonic() < deadline:
                _signal_all(new, signal.SIGSTOP)
                stopped |= new
            _signal_all(stopped | left, signal.SIGKILL)
            time.sleep(0.005)
        self.reap()
        return 0

    def reap(self) -> bool:
        """Take the dead off the system; return whether any child is left."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.child:
                    self.status = status
        return False

    def descendants(self) -> set[int]:
        """Return all that descends from the shim, as targets for kill: processes, and groups below 0.

        A group is signaled as a whole, also what it forks meanwhile; nobody else can be in it, since
        a group stays in its session, and the child began one. Zombies count: their first thread may
        be all that is dead of them. Those that are truly dead come to the shim, and are reaped.
        """
        if not self.reap():
            return set()
        children: dict[int, list[tuple[int, int]]] = {}
        try:
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    with contextlib.suppress(OSError):
                        stat = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                        children.setdefault(int(stat[1]), []).append(
                            (int(entry.name), int(stat[2]))
                        )
        except OSError:
            return {self.child, -self.child}
        found: set[int] = set()
        below = [os.getpid()]
        while below:
            for pid, group in children.get(below.pop(), []):
                below.append(pid)
                found.add(pid)
                if group > 1 and group != os.getpgrp():
                    found.add(-group)
        return found

    def say(self, message: Order) -> None:
        # The worker may be gone, or stopped with a full pipe: neither may hold the shim up.
        os.set_blocking(self.report, False)
        with contextlib.suppress(OSError):
            os.write(self.report, json.dumps(message).encode() + b"\n")


def start(order: Order) -> tuple[int, Order | None]:
    """Start what ``order`` names in a session of its own; return its pid, or what went wrong."""
    shim = os.getpid()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(order, shim, writer)
    os.close(writer)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(null, standard)
    with os.fdopen(reader, "rb") as file:
        failure = file.read()
    return pid, json.loads(failure) if failure else None


def _become(order: Order, shim: int, failures: int) -> None:
    """Turn this fresh child into the program; never returns."""
    stage = "prepare"
    try:
        os.setsid()
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.umask(0o022)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if order["max_file_bytes"] is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["max_file_bytes"],) * 2)
        stage = "user"
        if order["user"] is not None:
            os.setgroups(order["user"]["groups"])
            os.setgid(order["user"]["gid"])
            os.setuid(order["user"]["uid"])
        # After the change of user, which would clear it.
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != shim:
            os._exit(1)
        stage = "directory"
        os.chdir(order["directory"])
        stage = "program"
        os.execve(order["arguments"][0], order["arguments"], order["environment"])
    except Exception as problem:
        # What is no error of the system is a value that it would not even be asked about.
        code = getattr(problem, "errno", None) or errno.EINVAL
        os.write(failures, json.dumps({"failed": stage, "errno": code}).encode())
    finally:
        os._exit(127)


def _read_line(control: int) -> tuple[bytes, bytes]:
    """Return the first line and what came after it; an empty line if the worker went before."""
    text = b""
    while b"\n" not in text:
        piece = os.read(control, 65536)
        if not piece:
            return b"", b""
        text += piece
    line, _, rest = text.partition(b"\n")
    return line, rest


def _signal_all(targets: set[int], number: int) -> None:
    for target in sorted(targets):
        with contextlib.suppress(OSError):
            os.kill(target, number)


def _load_prctl() -> Callable[..., object] | None:
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


_prctl_call = _load_prctl() if sys.platform == "linux" else None


def _prctl(option: int, value: int) -> None:
    if _prctl_call is not None:
        _prctl_call(option, int(value), 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
