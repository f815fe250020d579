"""The scheduler as it is served: the machine's own clock, signals, health and metrics."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from app.db import Database
from app.nodes.registry import NodeRegistry
from tests.support.scheduling import DrivenClock, World
from tests.support.waiting import until

ROOT = Path(__file__).parents[3]
SERVE = (
    "import os, sys; from app.scheduling.service import serve; from app.settings import load; "
    "sys.exit(serve(load(os.environ)))"
)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@pytest.fixture
def served(sqlite_url: str, tmp_path: Path):
    """A scheduler on SQLite with health and metrics, and the port of these."""
    port = _free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "BELLRINGER_DATABASE_URL": sqlite_url,
        "BELLRINGER_METRICS_BIND": f"127.0.0.1:{port}",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE], cwd=tmp_path, env=environment, stderr=subprocess.PIPE
    )
    yield process, port
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(served, sqlite_database: Database, number: int) -> None:
    process, port = served
    registry = NodeRegistry(sqlite_database)
    until(registry.list, 30)
    (node,) = registry.list()
    assert (node.role, node.pid) == ("scheduler", process.pid)
    assert until(lambda: _get(port, "/healthz")[0] == 200)
    process.send_signal(number)
    assert process.wait(20) == 0
    assert list(registry.list()) == []


def test_health_metrics_and_the_nodes_row_show_an_expression_that_is_not_valid(
    served, sqlite_database: Database
) -> None:
    _, port = served
    World(sqlite_database, DrivenClock()).dba_adds("broken", "every monday")
    registry = NodeRegistry(sqlite_database)
    until(lambda: any("every monday" in (n.problem or "") for n in registry.list()), 30)
    until(lambda: "bellringer_expressions_invalid 1.0" in _get(port, "/metrics")[1])
    assert "bellringer_occurrence_lateness_seconds_bucket" in _get(port, "/metrics")[1]
    # One bad row must not have the process restarted for it.
    status, said = _get(port, "/healthz")
    assert status == 200 and "every monday" in said
    assert _get(port, "/readyz")[0] == 200


def test_an_idle_scheduler_hardly_works(served, sqlite_database: Database) -> None:
    """It wakes each second, and no more often; a loop gone wild would burn a whole core."""
    process, _ = served
    until(NodeRegistry(sqlite_database).list, 30)

    def ticks() -> int:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    time.sleep(1)
    before = ticks()
    time.sleep(2)
    assert (ticks() - before) / os.sysconf("SC_CLK_TCK") < 1
