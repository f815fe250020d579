"""Nothing that was started runs on unwatched, whatever happens to the worker."""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.clock import SystemClock
from app.runners.git import GitAccess
from app.runners.process import ProcessRunner, RunnerOptions
from app.runners.trees import sweep
from tests.support.repositories import SourceRepository
from tests.support.waiting import processes_with, until


@contextmanager
def worker(
    place: Path, url_template: str, lease: float, grace: float = 0.5
) -> Iterator["subprocess.Popen[bytes]"]:
    """A real process that hosts a runner and has one run to carry out."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.support.runner_host",
            str(place / "data"),
            url_template,
            str(lease),
            str(grace),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def mark() -> str:
    return f"1000.{secrets.randbelow(10**9):09}"


STUBBORN = (
    "trap '' TERM HUP\n(setsid sh -c 'trap \"\" TERM; sleep MARK; sleep MARK' &)\n"
    "while :; do sleep MARK; done\n"
)


def test_a_killed_worker_takes_all_its_processes_along(
    place: Path, source: SourceRepository, access: object
) -> None:
    word = mark()
    source.commit({".bellringer/workflows/w.sh": STUBBORN.replace("MARK", word)})
    template = f"file://{place}/source/{{repository}}"
    with worker(place, template, lease=60) as process:
        until(lambda: len(processes_with(word)) >= 3)
        process.kill()
        process.wait()
        until(lambda: not processes_with(word))
        until(lambda: not processes_with(str(place / "data")))
    left = [path for path in (place / "data/trees").iterdir() if path.is_dir()]
    assert len(left) == 1

    def swept() -> bool:
        ProcessRunner(RunnerOptions(place / "data", GitAccess(template), SystemClock())).sweep()
        return list((place / "data/trees").iterdir()) == []

    until(swept)


def test_a_tree_is_not_swept_while_the_shim_of_a_dead_worker_is_at_work(
    place: Path, source: SourceRepository
) -> None:
    word = mark()
    source.commit({".bellringer/workflows/w.sh": STUBBORN.replace("MARK", word)})
    with worker(place, f"file://{place}/source/{{repository}}", lease=60, grace=3) as process:
        until(lambda: len(processes_with(word)) >= 3)
        process.kill()
        process.wait()
        assert sweep(place / "data/trees", SystemClock()) == 0
        assert processes_with(word)
        until(lambda: not processes_with(word))
        until(lambda: sweep(place / "data/trees", SystemClock()) == 1)


def test_two_workers_bring_the_same_repository_at_once(
    place: Path, source: SourceRepository
) -> None:
    source.commit({".bellringer/workflows/w.sh": "exit 5\n"})
    template = f"file://{place}/source/{{repository}}"
    with worker(place, template, lease=30) as one, worker(place, template, lease=30) as two:
        outcomes = [json.loads(process.communicate(timeout=30)[0]) for process in (one, two)]
    assert [outcome["exit_code"] for outcome in outcomes] == [5, 5]
    assert len(list((place / "data/repositories").glob("*/repository/objects/pack/*.pack"))) == 1


def test_a_killed_worker_takes_git_along(place: Path, source: SourceRepository) -> None:
    word = mark()
    source.commit({"a": "1"})
    # A source that keeps Git waiting: its list of refs is a pipe that nobody writes.
    source.git("pack-refs", "--all")
    (source.path / ".git/packed-refs").unlink()
    os.mkfifo(source.path / ".git/packed-refs")
    moved = place / "source" / word
    moved.mkdir()
    (place / "source/acme").rename(moved / "acme")
    with worker(place, f"file://{moved}/{{repository}}", lease=60) as process:
        until(lambda: processes_with(f"{word}/acme/shop"))
        process.kill()
        process.wait()
        until(lambda: not processes_with(word))


def test_a_stopped_worker_loses_its_run_and_says_so_when_it_goes_on(
    place: Path, source: SourceRepository
) -> None:
    word = mark()
    source.commit({".bellringer/workflows/w.sh": STUBBORN.replace("MARK", word)})
    with worker(place, f"file://{place}/source/{{repository}}", lease=3) as process:
        until(lambda: len(processes_with(word)) >= 3)
        process.send_signal(signal.SIGSTOP)
        until(lambda: not processes_with(word))
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate(timeout=20)
        assert process.returncode == 0
    outcome = json.loads(said)
    assert (outcome["state"], outcome["reason"]) == ("failed", "worker-lost")
    assert "stood still for more than 3 seconds" in outcome["detail"]
    assert list((place / "data/trees").iterdir()) == []


def test_a_worker_that_is_stopped_for_less_than_its_lease_keeps_its_run(
    place: Path, source: SourceRepository
) -> None:
    word = mark()
    go = place / "go"
    script = f"sleep {word} & while [ ! -e {go} ]; do sleep 0.02; done; exit 5\n"
    source.commit({".bellringer/workflows/w.sh": script})
    with worker(place, f"file://{place}/source/{{repository}}", lease=30) as process:
        until(lambda: processes_with(word))
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGCONT)
        go.touch()
        said, _ = process.communicate(timeout=20)
    assert json.loads(said)["exit_code"] == 5
