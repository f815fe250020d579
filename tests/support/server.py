"""A real server: gunicorn with its own configuration, in processes of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.api import ADMIN

ROOT = Path(__file__).parents[2]


def environment(database_url: str, **more: str) -> dict[str, str]:
    """Return the environment of a server on that database."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("BELLRINGER_")}
    return {
        **inherited,
        "PYTHONPATH": str(ROOT),
        "BELLRINGER_DATABASE_URL": database_url,
        "BELLRINGER_ADMIN_TOKEN": ADMIN,
        **more,
    }


def command(port: int, workers: int) -> list[str]:
    """Return how the server is started."""
    return [
        *(sys.executable, "-m", "gunicorn", "-c", "python:app.gunicorn"),
        *("--bind", f"127.0.0.1:{port}", "--workers", str(workers), "app.wsgi:app"),
    ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(database_url: str, directory: Path, *, workers: int = 2, **more: str) -> Iterator[str]:
    """Serve, and give the server's address; its output is in ``directory``."""
    port = free_port()
    log = directory / f"gunicorn-{port}.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            command(port, workers),
            cwd=directory,
            env=environment(database_url, **more),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{address}/healthz", timeout=5).raise_for_status()
                break
            except httpx.HTTPError:
                assert server.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
        yield address
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(40)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(5)
