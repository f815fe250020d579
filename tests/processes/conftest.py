"""Commands as processes of their own, and a server for them to speak to."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.auth.tokens import TokenStore
from app.db import Database
from tests.support.servers import free_port, wait_until_answers

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., subprocess.CompletedProcess[str]]


def environment(**settings: str) -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("BELLRINGER_")}
    return {**plain, "PYTHONPATH": str(ROOT), **{f"BELLRINGER_{k}": v for k, v in settings.items()}}


@pytest.fixture
def bellringer(tmp_path: Path) -> Command:
    """Run a command in an empty directory, with the settings given."""

    def run(*arguments: str, stdin: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        extra = {k: settings.pop(k) for k in list(settings) if k == "EDITOR"}
        return subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            cwd=tmp_path,
            env={**environment(**settings), **extra},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A server on an empty database; gives the settings by which a command reaches it."""
    port = free_port()
    token = TokenStore(Database(sqlite_url)).create("test", "admin", "test").token
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "--config", "python:app.gunicorn"),
            *("--bind", f"127.0.0.1:{port}", "--workers", "1", "app.wsgi:app"),
        ],
        cwd=tmp_path,
        env=environment(DATABASE_URL=sqlite_url),
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_answers(f"http://127.0.0.1:{port}/readyz")
        yield {"URL": f"http://127.0.0.1:{port}", "TOKEN": token, "DATABASE_URL": sqlite_url}
    finally:
        process.terminate()
        process.wait(30)
