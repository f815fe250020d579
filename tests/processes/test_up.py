"""``bellringer up``, as a person and as a service manager meet it."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import fresh_database
from tests.support.repositories import SourceRepository
from tests.support.servers import free_port, wait_until_answers
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]


class Up:
    """A running ``bellringer up`` in a directory of its own."""

    def __init__(self, directory: Path, *arguments: str, **settings: str) -> None:
        self.directory = directory
        self.port = free_port()
        plain = {k: v for k, v in os.environ.items() if not k.startswith("BELLRINGER_")}
        self.environment = {
            **plain,
            "PYTHONPATH": str(ROOT),
            "BELLRINGER_BIND": f"127.0.0.1:{self.port}",
            "BELLRINGER_DRAIN": "5",
            "BELLRINGER_WEB_WORKERS": "1",
            **{f"BELLRINGER_{name}": value for name, value in settings.items()},
        }
        self.log = directory / "up.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app", "up", *arguments],
                cwd=directory,
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def said(self) -> str:
        return self.log.read_text()

    def ready(self) -> "Up":
        wait_until_answers(f"http://127.0.0.1:{self.port}/readyz", 60)
        until(lambda: "Bellringer serves at" in self.said(), 60)
        return self

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=90,
        )

    def children(self) -> dict[str, int]:
        """Return the process ids of web, scheduler and worker."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = {}
        for pid in map(int, path.read_text().split()):
            try:
                called = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except FileNotFoundError:
                continue
            for name in ("gunicorn", "scheduler", "worker"):
                if name.encode() in called:
                    found[name] = pid
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def up(directory: Path) -> Iterator[Up]:
    """A running ``bellringer up --demo`` on an empty SQLite file."""
    running = Up(directory, "--demo")
    try:
        yield running.ready()
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait(10)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_newcomer_sees_the_demo_run_and_stops_everything(up: Up) -> None:
    followed = up.command("automation", "run", "hello", "--input", '{"x": 1}', "--follow")
    assert followed.returncode == 0, followed.stderr + up.said()
    assert "of the automation 'hello'" in followed.stdout
    assert '"input": {"x": 1}' in followed.stdout
    token = up.directory / "var" / "admin-token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert token.read_text().strip() not in up.said()
    children = up.children()
    assert set(children) == {"gunicorn", "scheduler", "worker"}
    assert up.stop() == 0
    assert not [pid for pid in children.values() if alive(pid)]
    again = Up(up.directory, "--demo").ready()
    assert json.loads(again.command("run", "list", "--json").stdout)[-1]["state"] == "succeeded"
    assert again.stop() == 0


def test_the_web_serves_until_nothing_runs(directory: Path) -> None:
    port = free_port()
    running = Up(directory, "--demo", METRICS_BIND=f"127.0.0.1:{port}", DRAIN="60").ready()
    try:
        # Scheduler and worker have an address each.
        wait_until_answers(f"http://127.0.0.1:{port}/healthz")
        wait_until_answers(f"http://127.0.0.1:{port + 1}/healthz")
        slow = directory / "var/local-repositories/bellringer/slow.git"
        make_slow_repository(directory / "tree", slow)
        running.command(
            *("automation", "create", "slow", "--repository", "bellringer/slow"),
            *("--workflow", "slow.sh"),
        )
        started = json.loads(running.command("automation", "run", "slow", "--json").stdout)
        run = str(started["id"])

        def state() -> str:
            shown = json.loads(running.command("run", "show", run, "--json").stdout)
            return str(shown["state"])

        until(lambda: state() == "running", 60)
        running.process.send_signal(signal.SIGTERM)
        until(lambda: "stopping" in running.said(), 30)
        assert running.command("run", "cancel", run).returncode == 0
        assert running.process.wait(60) == 0
        assert "canceled" in running.said()
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait(10)


def make_slow_repository(tree: Path, bare: Path) -> None:
    source = SourceRepository(tree)
    source.commit({"slow.sh": "sleep 300\n"})
    source.git("clone", "--quiet", "--bare", ".", str(bare))


def test_what_dies_is_started_again(up: Up) -> None:
    before = up.children()
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    after = until(lambda: c if len(c := up.children()) == 3 and c != before else None, 60)
    assert not set(after.values()) & set(before.values())
    up.ready()
    followed = up.command("automation", "run", "hello", "--follow")
    assert followed.returncode == 0, followed.stderr + up.said()


def test_nothing_is_left_when_the_supervisor_is_killed(up: Up) -> None:
    children = up.children()
    up.process.kill()
    up.process.wait(10)
    until(lambda: not [pid for pid in children.values() if alive(pid)], 60)


def test_a_taken_port_is_said_before_anything_is_started(up: Up) -> None:
    second = up.command("up", "--bind", f"127.0.0.1:{up.port}")
    assert second.returncode == 1
    assert "Address already in use" in second.stderr
    assert "Traceback" not in second.stderr


def test_an_invalid_legacy_file_stops_the_start(directory: Path) -> None:
    (directory / "automations").mkdir()
    (directory / "automations" / "bad.toml").write_text("name =")
    refused = Up(directory)
    assert refused.process.wait(60) == 1
    assert "bad.toml: is not TOML" in refused.said()
    assert (directory / "automations" / "bad.toml").exists()


@pytest.mark.parametrize("dialect", ["postgresql", "mariadb"])
def test_it_runs_on_a_server_and_fires_what_is_imported(directory: Path, dialect: str) -> None:
    (directory / "automations").mkdir()
    (directory / "automations" / "hello-again.toml").write_text(
        'name = "Hello again"\n'
        'target = {repository = "bellringer/demo", ref = "main", workflow = "hello"}\n'
        '[[triggers]]\ntype = "schedule"\nid = "often"\nenabled = true\nexpression = "* * * * *"\n'
    )
    with fresh_database(dialect, directory) as url:
        running = Up(directory, DATABASE_URL=url).ready()
        try:
            assert "1 imported (hello-again)" in running.said()
            ended = until(
                lambda: [
                    run
                    for run in json.loads(running.command("run", "list", "--json").stdout)
                    if run["state"] != "queued" and run["finished_at"]
                ],
                90,
            )
            # The demo was not asked for, so there is no such repository: the ledger says so.
            assert ended[-1]["reason"]["code"] == "clone-failed"
            assert ended[-1]["trigger"] == {"type": "schedule", "id": "often"}
        finally:
            assert running.stop() == 0


def test_ports_that_would_meet_are_refused_before_anything_is_started(directory: Path) -> None:
    port = free_port()
    for bind, metrics in ((port, port), (port + 1, port)):
        refused = Up(directory, BIND=f"127.0.0.1:{bind}", METRICS_BIND=f"127.0.0.1:{metrics}")
        assert refused.process.wait(60) == 2
    assert "need ports of their own" in refused.said()
    assert not (directory / "var").exists()
