"""One definition read by id over HTTP, token included, against a bare Flask view of the same bytes.

Both stand behind the same gunicorn with two sync workers. A few connections ask in turn, each kept
alive no longer than sync workers do; the two servers are measured alternately, and the medians compared.
"""

import argparse
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from app.auth.tokens import TokenStore
from app.automations.store import AutomationStore
from app.automations.values import Draft, ScheduleTrigger, Target
from app.db import Database
from benchmarks.databases import BACKENDS, benchmark_database
from tests.support.servers import free_port, wait_until_answers

ROOT = Path(__file__).resolve().parents[1]
CLIENTS = 4
TARGETS = {  # figure → database → least ratio to the bare view
    "read by id": {"sqlite": 0.5, "postgresql": 0.3},
    "answered 304": {"sqlite": 0.55, "postgresql": 0.35},
}

BARE = """
from pathlib import Path
from flask import Flask, Response

app = Flask("bare")
body = Path({body!r}).read_bytes()

@app.get("/same")
def same():
    return Response(body, mimetype="application/json")
"""


@contextlib.contextmanager
def serving(application: str, directory: Path, **environment: str) -> Iterator[int]:
    """Serve an application with two sync workers; give the port."""
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "--workers", "2", "--worker-class", "sync"),
            *("--bind", f"127.0.0.1:{port}", "--log-level", "error", application),
        ],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{directory}", **environment},
    )
    try:
        wait_until_answers(f"http://127.0.0.1:{port}/healthz", any_answer=True)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def rate(port: int, path: str, headers: dict[str, str], status: int, requests: int) -> float:
    """Return requests per second over a few clients, checking every answer's status."""
    failures: list[int] = []

    def ask(count: int) -> None:
        for _ in range(count):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            if answer.status != status:
                failures.append(answer.status)

    threads = [threading.Thread(target=ask, args=(requests // CLIENTS,)) for _ in range(CLIENTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - began
    if failures:
        raise RuntimeError(f"{path} answered {failures[0]} instead of {status}")
    return requests // CLIENTS * CLIENTS / elapsed


def measure(backend: str, requests: int, rounds: int) -> None:
    """Print both figures for one database."""
    with tempfile.TemporaryDirectory() as name, benchmark_database(backend, Path(name)) as url:
        directory = Path(name)
        database = Database(url)
        draft = Draft(
            "Nightly",
            "Cuts a build and tells the others.",
            Target("acme/shop", "main", "release"),
            True,
            (ScheduleTrigger("nightly", True, "0 3 * * *"),),
        )
        stored = AutomationStore(database).create("nightly", draft, "benchmark")
        token = TokenStore(database).create("benchmark", "viewer", "benchmark").token
        database.close()
        authorized = {"Authorization": f"Bearer {token}"}
        path = "/api/v1/automations/nightly"
        body = directory / "body.json"
        with serving("app.wsgi:app", directory, BELLRINGER_DATABASE_URL=url) as ours:
            connection = http.client.HTTPConnection("127.0.0.1", ours, timeout=10)
            connection.request("GET", path, headers=authorized)
            body.write_bytes(connection.getresponse().read())
            (directory / "bare.py").write_text(BARE.format(body=str(body)))
            conditional = {**authorized, "If-None-Match": f'"{stored.revision}"'}
            with serving("bare:app", directory) as bare:
                calls = {
                    "bare": (bare, "/same", {}, 200),
                    "read by id": (ours, path, authorized, 200),
                    "answered 304": (ours, path, conditional, 304),
                }
                rates: dict[str, list[float]] = {figure: [] for figure in calls}
                for round_ in range(rounds + 1):
                    for figure, (port, where, headers, status) in calls.items():
                        measured = rate(port, where, headers, status, requests)
                        if round_:  # the first one warms up
                            rates[figure].append(measured)
    baseline = statistics.median(rates["bare"])
    for figure, targets in TARGETS.items():
        value = statistics.median(rates[figure])
        print(
            json.dumps(
                {
                    "benchmark": "reads",
                    "figure": figure,
                    "database": backend,
                    "ours": round(value),
                    "baseline": round(baseline),
                    "unit": "requests/s",
                    "ratio": round(value / baseline, 2),
                    "target": f">= {targets[backend]}" if backend in targets else None,
                }
            ),
            flush=True,
        )


def main() -> None:
    """Measure on each database that answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="a small one is a smoke run")
    scale = parser.parse_args().scale
    for backend in BACKENDS:
        measure(backend, max(CLIENTS, int(2000 * scale)), max(1, int(5 * scale)))


if __name__ == "__main__":
    main()
