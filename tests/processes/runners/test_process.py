"""Runs from end to end: what they see, how they end, what they write."""

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.runners.child import Timing
from app.runners.git import GIT, GitAccess
from app.runners.output import FULL_MARK
from app.runners.process import ProcessRunner
from app.runners.stopping import StopReason
from app.runners.values import LogLine, Outcome
from tests.support.bench import Bench
from tests.support.runner_host import task
from tests.support.waiting import until

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
