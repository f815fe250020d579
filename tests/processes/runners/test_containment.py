"""What a run starts ends with it, and as whom it runs is as whom it stays."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.runners.values import RunUser
from tests.support.bench import Bench
from tests.support.runner_host import task
from tests.support.waiting import processes_with, until

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
