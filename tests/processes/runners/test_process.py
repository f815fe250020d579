"""Runs from end to end: real repositories, real processes, real signals."""

import json
import os
import secrets
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.runners.child import Timing
from app.runners.git import GIT, GitAccess
from app.runners.output import FULL_MARK
from app.runners.process import ProcessRunner, RunnerOptions
from app.runners.stopping import Stop, StopReason
from app.runners.values import LogLine, Outcome, RunTask, RunUser
from tests.support.repositories import SourceRepository
from tests.support.runner_host import task
from tests.support.waiting import processes_with, until


class Bench:
    """A runner, a source, and what came of the run."""

    def __init__(self, place: Path, source: SourceRepository, access: GitAccess) -> None:
        self.place = place
        self.source = source
        self.options = RunnerOptions(
            place / "data",
            access,
            SystemClock(),
            timing=Timing(lease=10.0, grace=0.5, linger=0.2),
            git_timeout=60,
        )
        self.lines: list[LogLine] = []
        self.stop = Stop()
        self.commits: list[str] = []
        # An argument that no other process on the machine has.
        self.mark = f"1000.{secrets.randbelow(10**9):09}"

    def script(self, text: str, name: str = "w.sh") -> str:
        return self.source.commit(
            {f".bellringer/workflows/{name}": text.replace("MARK", self.mark)}
        )

    def run(self, changed: RunTask | None = None) -> Outcome:
        return ProcessRunner(self.options).run(
            changed or task(), log=self._log, stop=self.stop, on_commit=self.commits.append
        )

    def run_in_thread(
        self, changed: RunTask | None = None
    ) -> tuple[threading.Thread, list[Outcome]]:
        outcomes: list[Outcome] = []
        thread = threading.Thread(target=lambda: outcomes.append(self.run(changed)))
        thread.start()
        return thread, outcomes

    def texts(self, stream: str = "stdout") -> list[str]:
        return [line.text for line in self.lines if line.stream == stream]

    def marked(self) -> set[int]:
        return processes_with(self.mark)

    def left(self) -> list[Path]:
        return list((self.place / "data/trees").iterdir())

    def _log(self, lines: Sequence[LogLine]) -> None:
        self.lines += lines


@pytest.fixture
def bench(place: Path, source: SourceRepository, access: GitAccess) -> Bench:
    return Bench(place, source, access)


# --- what a run sees --------------------------------------------------------------------------------


def test_a_run_succeeds_and_leaves_nothing(bench: Bench) -> None:
    commit = bench.script("echo out; echo err >&2; printf last\n")
    assert bench.run() == Outcome("succeeded", exit_code=0, commit=commit)
    assert bench.texts() == ["out", "last"]
    assert bench.texts("stderr") == ["err"]
    assert bench.commits == [commit]
    assert bench.left() == []


def test_a_run_sees_its_own_environment_and_nothing_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELLRINGER_GIT_TOKEN", "s3cr3t")
    monkeypatch.setenv("LD_PRELOAD_X", "s3cr3t")
    bench.options = replace(
        bench.options, extra_env={"REGION": "eu", "HOME": "/", "BELLRINGER_RUN_ID": "0"}
    )
    commit = bench.script("tr '\\0' '\\n' < /proc/$$/environ\n")
    outcome = bench.run(task(due_at=datetime(2026, 12, 1, 3, tzinfo=UTC), attempt=2))
    assert outcome.state == "succeeded", bench.lines
    seen = dict(text.split("=", 1) for text in bench.texts())
    home, events = Path(seen.pop("HOME")), Path(seen.pop("BELLRINGER_EVENTS"))
    assert home.parent == events.parent and home.name == "home"
    assert seen == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "REGION": "eu",
        "BELLRINGER_RUN_ID": "4711",
        "BELLRINGER_AUTOMATION": "nightly",
        "BELLRINGER_TRIGGER": "manual",
        "BELLRINGER_TRIGGER_TYPE": "api",
        "BELLRINGER_DUE_AT": "2026-12-01T03:00:00Z",
        "BELLRINGER_ATTEMPT": "2",
        "BELLRINGER_REPOSITORY": "acme/shop",
        "BELLRINGER_REF": "main",
        "BELLRINGER_COMMIT": commit,
    }


def test_a_run_reads_its_events(bench: Bench) -> None:
    bench.script("cat $BELLRINGER_EVENTS\n")
    document = {"data": [{"data": {"ü": 1}, "meta": {}}], "meta": {"size": 1}, "input": "x"}
    bench.run(task(events=document))
    assert json.loads("".join(bench.texts())) == document


def test_a_run_starts_with_clean_hands(bench: Bench) -> None:
    """No descriptors but the three, nothing on standard input, no signal ignored or blocked, no core."""
    bench.script(
        "import os, resource, signal, sys\n"
        "print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1], sys.stdin.read() == '')\n"
        "status = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
        "print(int(status['SigBlk'], 16))\n"
        "print([s for s in (1, 2, 3, 15, 17) if signal.getsignal(s) is signal.SIG_IGN])\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE), oct(os.umask(0)), os.getpgrp() == os.getpid())\n",
        "w.py",
    )
    assert bench.run().state == "succeeded"
    assert bench.texts() == ["[0, 1, 2] True", "0", "[]", "(0, 0) 0o22 True"]


def test_the_tree_is_the_working_directory_and_has_no_link_to_the_cache(bench: Bench) -> None:
    """What would plant a hook in a linked work tree fails here."""
    bench.script(
        "ls -A; git rev-parse --git-dir; git config core.hooksPath /tmp; "
        "d=$(git rev-parse --git-common-dir 2>/dev/null) && echo linked $d; true\n"
    )
    assert bench.run().state == "succeeded"
    assert bench.texts() == [".bellringer"]
    (cache,) = (bench.place / "data/repositories").glob("*/repository")
    assert not (cache / "hooks").exists()
    assert "hooksPath" not in (cache / "config").read_text()


def test_a_secret_of_the_worker_is_masked_in_the_log(bench: Bench) -> None:
    bench.options = replace(
        bench.options, access=GitAccess(bench.options.access.url_template, token="t0k3n-1234")
    )
    bench.script("printf 't0k3'; sleep 0.1; echo 'n-1234'\n")
    bench.run()
    assert bench.texts() == ["***"]


# --- how a run ends ---------------------------------------------------------------------------------


def test_the_exit_code_is_kept(bench: Bench) -> None:
    bench.script("exit 3\n")
    outcome = bench.run()
    assert (outcome.state, outcome.reason, outcome.exit_code) == ("failed", "exit-code", 3)
    assert outcome.detail == "The workflow ended with exit code 3."


def test_a_signal_is_named(bench: Bench) -> None:
    bench.script("kill -SEGV $$\n")
    outcome = bench.run()
    assert (outcome.reason, outcome.exit_code) == ("exit-code", 139)
    assert outcome.detail == "The workflow was ended by SIGSEGV (signal 11)."


@pytest.mark.parametrize(("first", "code"), [("#!/no/such/thing\n", 127), ("\x01\x02", 126)])
def test_a_workflow_that_can_not_start_says_why(bench: Bench, first: str, code: int) -> None:
    bench.source.commit({"w": first}, executable=True)
    outcome = bench.run()
    assert (outcome.state, outcome.reason, outcome.exit_code) == ("failed", "exit-code", code)
    assert "#! line" in (outcome.detail or "")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"workflow": "gone"}, "workflow-not-found"),
        ({"workflow": "../w"}, "target-invalid"),
        ({"ref": "gone"}, "ref-not-found"),
        ({"ref": "--x"}, "target-invalid"),
        ({"repository": "acme/gone"}, "clone-failed"),
        ({"repository": "acme"}, "target-invalid"),
    ],
)
def test_a_target_that_is_not_there_fails_with_its_reason(
    bench: Bench, changes: dict[str, object], code: str
) -> None:
    bench.script("true\n")
    outcome = bench.run(task(**changes))
    assert (outcome.state, outcome.reason) == ("failed", code)
    assert outcome.detail and bench.left() == []


def test_what_a_run_does_to_its_tree_does_not_keep_it(bench: Bench) -> None:
    bench.script("mkdir -p a/b $HOME/c; touch a/b/x; chmod 0 a/b a $HOME/c .; exit 0\n")
    assert bench.run().state == "succeeded"
    assert bench.left() == []


def test_a_run_that_ignores_term_is_killed_at_its_time_limit(bench: Bench) -> None:
    bench.script("trap '' TERM; echo on; while :; do sleep MARK; done\n")
    outcome = bench.run(task(timeout=1.0))
    assert (outcome.state, outcome.reason) == ("failed", "timeout")
    assert "time limit of 1 seconds" in (outcome.detail or "")
    assert bench.texts() == ["on"]
    assert bench.marked() == set()


def test_a_run_may_clean_up_at_its_time_limit(bench: Bench) -> None:
    bench.script("trap 'echo bye; exit 9' TERM; sleep MARK & wait\n")
    outcome = bench.run(task(timeout=1.0))
    assert (outcome.reason, outcome.exit_code) == ("timeout", 9)
    assert bench.texts() == ["bye"]


@pytest.mark.parametrize(
    ("reason", "state"), [("canceled", "canceled"), ("shutdown", "canceled"), ("lost", "lost")]
)
def test_a_stop_ends_it(bench: Bench, reason: StopReason, state: str) -> None:
    bench.script("trap 'exit 7' TERM; sleep MARK & wait\n")
    thread, outcomes = bench.run_in_thread()
    until(bench.marked)
    bench.stop.request(reason)
    thread.join(30)
    (outcome,) = outcomes
    assert outcome.state == state
    assert ("shut down" in (outcome.detail or "")) == (reason == "shutdown")
    assert bench.marked() == set() and bench.left() == []


def test_lost_goes_before_any_other_reason(bench: Bench) -> None:
    bench.script("trap '' TERM; while :; do sleep MARK; done\n")
    bench.options = replace(bench.options, timing=Timing(lease=60.0, grace=60.0))
    thread, outcomes = bench.run_in_thread()
    until(bench.marked)
    bench.stop.request("canceled")
    bench.stop.request("lost")
    bench.stop.request("shutdown")
    thread.join(30)
    assert [outcome.state for outcome in outcomes] == ["lost"]


def test_a_stop_before_the_start_starts_nothing(bench: Bench) -> None:
    bench.script("echo on\n")
    bench.stop.request("canceled")
    assert bench.run().state == "canceled"
    assert bench.texts() == []


def test_a_stop_ends_a_fetch_that_hangs(bench: Bench) -> None:
    bench.script("true\n")
    git = bench.place / "git"
    git.write_text(
        f'#!/bin/sh\ncase "$*" in *" fetch "*) trap "" TERM; sleep {bench.mark};; esac\nexec {GIT} "$@"\n'
    )
    git.chmod(0o755)
    bench.options = replace(bench.options, git=str(git))
    thread, outcomes = bench.run_in_thread()
    until(bench.marked)
    bench.stop.request("canceled")
    thread.join(30)
    assert [outcome.state for outcome in outcomes] == ["canceled"]
    assert bench.marked() == set() and bench.left() == []


def test_a_fetch_has_a_time_limit(bench: Bench) -> None:
    bench.script("true\n")
    git = bench.place / "git"
    git.write_text(f"#!/bin/sh\nsleep {bench.mark}\n")
    git.chmod(0o755)
    bench.options = replace(bench.options, git=str(git), git_timeout=0.5)
    outcome = bench.run()
    assert outcome.reason == "clone-failed" and "0.5 seconds" in (outcome.detail or "")
    assert bench.marked() == set()


def test_a_log_that_can_not_be_written_ends_the_run(bench: Bench) -> None:
    bench.script("echo on; sleep MARK\n")

    def log(lines: Sequence[LogLine]) -> None:
        if lines[0].stream == "stdout":
            raise ValueError("s3cr3t")

    outcome = ProcessRunner(bench.options).run(task(), log=log, stop=bench.stop, on_commit=print)
    assert (outcome.state, outcome.reason) == ("failed", "runner-error")
    assert "s3cr3t" not in (outcome.detail or "")
    assert bench.marked() == set() and bench.left() == []


def test_a_log_that_hangs_keeps_neither_the_time_limit_nor_a_stop_from_working(
    bench: Bench,
) -> None:
    bench.script("echo on; sleep MARK\n")
    released = threading.Event()

    def log(lines: Sequence[LogLine]) -> None:
        if lines[0].stream == "stdout":
            until(bench.marked)
            until(lambda: not bench.marked())
            released.set()

    outcome = ProcessRunner(bench.options).run(
        task(timeout=1.0), log=log, stop=bench.stop, on_commit=lambda commit: None
    )
    assert released.is_set() and outcome.reason == "timeout"


@pytest.mark.parametrize("value", ["a\0b", "x" * 200_000])
def test_an_environment_that_the_system_refuses_fails_with_a_reason(
    bench: Bench, value: str
) -> None:
    bench.script("echo on\n")
    bench.options = replace(bench.options, extra_env={"X": value})
    outcome = bench.run()
    assert outcome.state == "failed" and "could not be started" in (outcome.detail or "")
    assert bench.texts() == [] and bench.left() == []


# --- what a run starts ------------------------------------------------------------------------------


def test_a_daemon_does_not_outlive_its_run(bench: Bench) -> None:
    bench.script(
        "(setsid sh -c 'trap \"\" TERM HUP; sleep MARK & sleep MARK' >/dev/null 2>&1 &) ; sleep 0.1\n"
    )
    assert bench.run().state == "succeeded"
    assert bench.marked() == set()


def test_a_daemon_does_not_outlive_a_canceled_run(bench: Bench) -> None:
    bench.script("(setsid sh -c 'trap \"\" TERM; sleep MARK; sleep MARK' &) ; wait; sleep MARK\n")
    thread, outcomes = bench.run_in_thread()
    until(lambda: len(bench.marked()) >= 2)
    bench.stop.request("canceled")
    thread.join(30)
    assert outcomes[0].state == "canceled" and bench.marked() == set()


@pytest.mark.parametrize("pause", ["0.02", "0"])
@pytest.mark.parametrize("detach", ["pass", "os.setsid()"])
def test_many_children_that_fork_on_are_ended(bench: Bench, pause: str, detach: str) -> None:
    bench.script(
        "import os, time\n"
        "for n in range(20):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        while True:\n"
        "            pid = os.fork()\n"
        "            if pid: os._exit(0)\n"
        f"            {detach}\n"
        f"            time.sleep({pause})\n"
        "time.sleep(0.2)\n",
        "w.py",
    )
    outcome = bench.run()
    assert outcome.state == "succeeded"
    assert not any("could not be ended" in text for text in bench.texts("system"))
    assert processes_with(str(bench.place / "data/trees")) == set()


def test_output_of_what_still_finishes_is_kept(bench: Bench) -> None:
    bench.script("(sleep 0.05; echo late) &\n")
    assert bench.run().state == "succeeded"
    assert bench.texts() == ["late"]


def test_a_killed_shim_takes_its_run_along(bench: Bench) -> None:
    bench.script("setsid sleep MARK & kill -STOP $PPID; sleep 0.1; kill -KILL $PPID; sleep MARK\n")
    outcome = bench.run()
    assert (outcome.state, outcome.reason) == ("failed", "runner-error")
    assert "killed" in (outcome.detail or "")
    assert bench.marked() == set() and bench.left() == []


def test_a_stopped_shim_is_not_waited_for_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.runners.child.UNRESPONSIVE_SECONDS", 0.5)
    bench.script("kill -STOP $PPID; setsid sleep MARK & sleep MARK\n")
    outcome = bench.run(task(timeout=1.0))
    assert (outcome.state, outcome.reason) == ("failed", "timeout")
    assert bench.marked() == set()


# --- what a run writes ------------------------------------------------------------------------------


def test_a_big_log_ends_and_the_run_goes_on(bench: Bench) -> None:
    bench.script("yes 0123456789abcdef0123456789abcdef | head -c 10485760; echo done >&2; exit 4\n")
    outcome = bench.run()
    assert outcome.exit_code == 4
    assert bench.texts("system")[-1] == FULL_MARK
    assert sum(len(text) + 1 for text in bench.texts()) <= 4 * 1024 * 1024


def test_a_binary_log_and_a_line_without_end_are_survived(bench: Bench) -> None:
    bench.script(
        "head -c 300000 /dev/urandom; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end\n"
    )
    assert bench.run().state == "succeeded"
    assert bench.texts()[-1] == "end"
    assert max(len(text.encode()) for text in bench.texts()) <= 16 * 1024


def test_lines_come_while_the_run_goes_on(bench: Bench) -> None:
    bench.script("import time\nprint('on')\ntime.sleep(MARK)\n", "w.py")
    thread, _ = bench.run_in_thread()
    until(lambda: bench.texts() == ["on"])
    assert thread.is_alive()
    bench.stop.request("canceled")
    thread.join(30)
    assert not thread.is_alive()


# --- as whom a run runs -----------------------------------------------------------------------------

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change user")


@root
def test_a_run_user_owns_its_files_and_no_other(bench: Bench) -> None:
    bench.options = replace(bench.options, run_user=RunUser.named("nobody"))
    bench.place.joinpath("data").mkdir(mode=0o755)
    repositories = bench.place / "data/repositories"
    bench.script(
        "id -u; id -g; id -G; stat -c %U . $HOME $BELLRINGER_EVENTS .bellringer/workflows/w.sh\n"
        f"cat $BELLRINGER_EVENTS > copy && touch $HOME/x && echo may write\n"
        f"ls {repositories} || ls {bench.place}/data/trees || touch ../x || echo may not look around\n"
    )
    assert bench.run().state == "succeeded"
    uid = str(RunUser.named("nobody").uid)
    assert bench.texts()[0] == uid
    assert bench.texts()[3:] == ["nobody"] * 4 + ["may write", "may not look around"]
    assert bench.left() == []


@root
def test_what_a_run_user_starts_is_ended_too(bench: Bench) -> None:
    bench.options = replace(bench.options, run_user=RunUser.named("nobody"))
    bench.script("(setsid sleep MARK >/dev/null 2>&1 &) ; kill -KILL $PPID && echo could; exit 0\n")
    assert bench.run().state == "succeeded"
    assert bench.texts() == []
    assert bench.marked() == set()


@root
@pytest.mark.skipif(
    not Path("/usr/bin/python3").exists(), reason="no Python that everybody may start"
)
def test_a_worker_that_may_not_change_user_says_so(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.script("echo on\n")
    bench.options = replace(bench.options, run_user=RunUser.named("root"))
    monkeypatch.setattr("sys.executable", "/usr/bin/python3")
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        bench.place.chmod(0o777)
        os.setgroups([])
        os.setresuid(65534, 65534, 65534)
        outcome = bench.run()
        os.write(writer, json.dumps([outcome.reason, outcome.detail, bench.texts()]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        reason, detail, texts = json.loads(file.read())
    os.waitpid(pid, 0)
    assert reason == "runner-error" and "BELLRINGER_RUN_USER" in detail and texts == []


@root
def test_a_data_directory_that_the_run_user_may_not_enter_is_named(bench: Bench) -> None:
    bench.options = replace(bench.options, run_user=RunUser.named("nobody"))
    bench.script("echo on\n")
    bench.place.chmod(0o700)
    outcome = bench.run()
    assert outcome.reason == "runner-error" and "data directory" in (outcome.detail or "")
    assert bench.texts() == []


def test_an_unknown_run_user_is_refused() -> None:
    with pytest.raises(ValueError, match="no system user 'nobody-at-all'"):
        RunUser.named("nobody-at-all")


def test_a_run_is_in_no_group_of_the_worker(bench: Bench) -> None:
    """An operator's Ctrl-C goes to the worker, which decides what becomes of its runs."""
    bench.script("ps -o pgid=,sid= -p $$,$PPID\n")
    bench.run()
    groups = {int(word) for text in bench.texts() for word in text.split()}
    assert len(groups) == 2 and not groups & {os.getpgrp(), os.getsid(0)}
