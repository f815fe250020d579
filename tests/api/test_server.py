"""Real gunicorn processes: writers that race, bodies in chunks, streams, metrics, and the documentation."""

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import httpx
import pytest

from app import gunicorn
from app.api import run_logs
from app.db import Database
from app.runs.ledger import Held, RunLedger, Verdict
from app.runs.logs import NewLine, RunLogs
from tests.support.api import ADMIN, definition
from tests.support.databases import copy_of
from tests.support.server import ROOT, command, environment, free_port, serving

HEADERS = {"Authorization": f"Bearer {ADMIN}"}
NIGHTLY = "/api/v1/automations/nightly"
LINES = "/api/v1/automations/lines"
WRITERS = 12


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server of this module has its files."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server_database(database_templates: dict[str, str], directory: Path) -> str:
    """The URL of the server's database."""
    return copy_of(database_templates["sqlite"], directory)


@pytest.fixture(scope="module")
def server(server_database: str, directory: Path) -> Iterator[str]:
    """Two processes on a SQLite database; each test has automations of its own."""
    metrics = str(directory / "metrics")
    with serving(server_database, directory, PROMETHEUS_MULTIPROC_DIR=metrics) as address:
        yield address


def client(address: str) -> httpx.Client:
    return httpx.Client(base_url=address, headers=HEADERS, timeout=30)


# --- writers that race ------------------------------------------------------------------------------


def at_once(address: str, request: str, **more: object) -> list[httpx.Response]:
    """Send a request ``WRITERS`` times at once; ``{n}`` in the body is a different number in each."""
    barrier = Barrier(WRITERS)

    def send(number: int) -> httpx.Response:
        with client(address) as own:
            own.get("/healthz")
            method, _, path = request.partition(" ")
            body = json.dumps(more.get("body")).replace("{n}", str(number))
            barrier.wait(30)
            return own.request(
                method,
                path,
                content=body if "body" in more else None,
                headers={"Content-Type": "application/json", **more.get("headers", {})},  # type: ignore[dict-item]
            )

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(send, range(WRITERS)))


@pytest.fixture
def racing_server(database_url: str, tmp_path: Path) -> Iterator[str]:
    """Three processes on an empty database of each kind in turn."""
    with serving(database_url, tmp_path, workers=3) as address:
        yield address


def statuses(answers: list[httpx.Response]) -> list[int]:
    return sorted(answer.status_code for answer in answers)


def test_of_those_who_come_at_once_one_wins(racing_server: str) -> None:
    others = WRITERS - 1
    create_only = {"If-None-Match": "*"}
    with client(racing_server) as own:
        body = definition(id="one", name="By {n}")
        posted = at_once(racing_server, "POST /api/v1/automations", body=body)
        assert statuses(posted) == [201] + [409] * others
        body = definition(name="By {n}")
        put = at_once(racing_server, f"PUT {NIGHTLY}", body=body, headers=create_only)
        assert statuses(put) == [201] + [412] * others
        key = {"Idempotency-Key": "k"}
        keyed = at_once(racing_server, f"POST {NIGHTLY}/runs", body={"input": 1}, headers=key)
        assert statuses(keyed) == [200] * others + [201]
        assert len({answer.json()["id"] for answer in keyed}) == 1
        tag = {"If-Match": own.get(NIGHTLY).headers["ETag"]}
        body = definition(name="Writer {n}")
        written = at_once(racing_server, f"PUT {NIGHTLY}", body=body, headers=tag)
        assert statuses(written) == [200] + [412] * others
        [winner] = [answer for answer in written if answer.status_code == 200]
        assert own.get(NIGHTLY).json() == winner.json()
        told = {a.json()["current_revision"] for a in written if a is not winner}
        assert told == {winner.json()["revision"]}
        tag = {"If-Match": winner.headers["ETag"]}
        deleted = at_once(racing_server, f"DELETE {NIGHTLY}", headers=tag)
        assert statuses(deleted) == [204] + [404] * others
        changes = own.get(f"{NIGHTLY}/history").json()["data"]
        assert [change["action"] for change in changes] == ["delete", "replace", "create"]


# --- what only a socket can send --------------------------------------------------------------------


def exchange(address: str, request: bytes) -> bytes:
    """Send bytes; return all that is answered until the server closes."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass  # It closed before it had read all that was sent, as it may after a 413.
        return answer


def head(method: str, path: str, *lines: str) -> bytes:
    fixed = (f"{method} {path} HTTP/1.1", "Host: x", "Connection: close")
    return "\r\n".join([*fixed, f"Authorization: Bearer {ADMIN}", *lines, "", ""]).encode("latin-1")


def test_bodies_in_chunks(server: str) -> None:
    start = head(
        "POST",
        "/api/v1/automations",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
    )
    body = json.dumps(definition(id="chunked")).encode()
    in_two = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:10], body[10:]))
    assert exchange(server, start + in_two + b"0\r\n\r\n").startswith(b"HTTP/1.1 201")
    piece = b" " * 65536
    large = (b"%x\r\n%s\r\n" % (len(piece), piece)) * 17 + b"0\r\n\r\n"
    answer = exchange(server, start + large)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"/problems/content-too-large" in answer


@pytest.mark.parametrize("body", [b"zz\r\n{}\r\n0\r\n\r\n", b"5\r\n{}\r\n", b"2\r\n{}xx0\r\n\r\n"])
def test_chunks_that_are_none_are_the_clients_fault(server: str, body: bytes) -> None:
    host, _, port = server.removeprefix("http://").partition(":")
    start = head(
        "POST",
        "/api/v1/automations",
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
    )
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(start + body)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400")


def test_a_client_that_falls_silent_keeps_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gunicorn, "SILENCE", 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gunicorn.when_ready(SimpleNamespace(LISTENERS=[SimpleNamespace(sock=listener)]))
        with socket.create_connection(listener.getsockname()) as silent:
            accepted, _ = listener.accept()
            with accepted:
                accepted.setblocking(True)
                with pytest.raises(BlockingIOError):
                    accepted.recv(1)
                with pytest.raises(BlockingIOError):
                    accepted.sendall(b"x" * 100_000_000)
            silent.close()


def test_a_large_body_is_refused_by_its_announced_length(server: str) -> None:
    start = head(
        "POST",
        "/api/v1/automations",
        "Content-Type: application/json",
        "Content-Length: 1048577",
    )
    answer = exchange(server, start + b" " * 1048577)
    assert answer.startswith(b"HTTP/1.1 413")


def test_header_lines_that_come_several_times_are_one_list(server: str) -> None:
    with client(server) as own:
        made = own.put(LINES, json=definition(), headers={"If-None-Match": "*"})
    lines = (f'If-Match: "{"0" * 64}"', f"If-Match: {made.headers['ETag']}")
    assert exchange(server, head("DELETE", LINES, *lines)).startswith(b"HTTP/1.1 204")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../factory.py",
        "/static/%2e%2e/%2e%2e/settings.py",
        "/static/..%2f..%2fsettings.py",
        "/api/v1/../../etc/passwd",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out(server: str, path: str) -> None:
    answer = exchange(server, head("GET", path))
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"import" not in answer and b"root:" not in answer


def test_a_request_id_can_not_break_out_of_its_header(server: str) -> None:
    for line in ("X-Request-Id: a\r\n Set-Cookie: b=c", "X-Request-Id: a\rSet-Cookie: b=c"):
        answer = exchange(server, head("GET", "/healthz", line))
        assert b"set-cookie" not in answer.lower().split(b"\r\n\r\n")[0]


# --- over all processes -----------------------------------------------------------------------------


def test_metrics_are_those_of_all_processes_and_name_no_automation(server: str) -> None:
    with client(server) as own:
        own.put("/api/v1/automations/very-secret-id", json=definition())
    for _ in range(30):
        httpx.get(f"{server}/healthz")
    text = httpx.get(f"{server}/metrics").text
    labels = 'method="GET",route="/healthz",status="200"'
    [line] = [
        t
        for t in text.splitlines()
        if t.startswith("bellringer_http_requests_total") and labels in t
    ]
    assert float(line.split()[-1]) >= 30
    assert 'route="/api/v1/automations/<automation_id>"' in text
    assert "very-secret-id" not in text


def test_a_stream_is_live_and_does_not_keep_others_waiting(
    server: str, server_database: str
) -> None:
    database = Database(server_database)
    ledger, logs = RunLedger(database), RunLogs(database)
    with client(server) as own:
        own.put("/api/v1/automations/live", json=definition(), headers={"If-None-Match": "*"})
        run = own.post("/api/v1/automations/live/runs").json()["id"]
        [claimed] = ledger.claim("worker-1", 1, 30)
        line = NewLine("stdout", database.read(database.now), "hello")
        last = logs.append(run, "worker-1", claimed.run.attempt, [line])
        accept = {"Accept": "text/event-stream"}
        with own.stream("GET", f"/api/v1/runs/{run}/log", headers=accept) as answer:
            lines = answer.iter_lines()
            assert next(text for text in lines if text.startswith("data:")).count("hello") == 1
            assert httpx.get(f"{server}/healthz", timeout=5).status_code == 200
            logs.append(
                run,
                "worker-1",
                claimed.run.attempt,
                [NewLine("stdout", line.logged_at, "bye")],
                after=last,
            )
            assert "bye" in next(text for text in lines if text.startswith("data:"))
            verdict = Verdict("succeeded", exit_code=0)
            assert ledger.finish("worker-1", Held(run, claimed.run.attempt), verdict)
            assert any(text == "event: end" for text in lines)
    database.close()


def test_very_many_streams_leave_threads_for_others(server: str, server_database: str) -> None:
    assert gunicorn.threads // 2 >= run_logs.STREAMS_AT_MOST
    with client(server) as own:
        own.put("/api/v1/automations/many", json=definition(), headers={"If-None-Match": "*"})
        run = own.post("/api/v1/automations/many/runs").json()["id"]
    host, _, port = server.removeprefix("http://").partition(":")
    request = head("GET", f"/api/v1/runs/{run}/log", "Accept: text/event-stream")
    with ExitStack() as streams:
        for _ in range(3 * gunicorn.threads):
            stream = streams.enter_context(socket.create_connection((host, int(port)), timeout=20))
            stream.sendall(request)
            assert stream.recv(100).startswith(b"HTTP/1.1 200")
        for _ in range(10):
            assert httpx.get(f"{server}/healthz", timeout=10).status_code == 200


# --- starting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"BELLRINGER_TOKEN_CASHE": "5"}, "BELLRINGER_TOKEN_CACHE"),
        ({"BELLRINGER_ADMIN_TOKEN": "shrt-s3cret"}, "BELLRINGER_ADMIN_TOKEN"),
        ({"BELLRINGER_DATABASE_URL": "oracle://u:s3cret@h/d"}, "BELLRINGER_DATABASE_URL"),
    ],
)
def test_wrong_settings_stop_the_start_with_their_names(
    tmp_path: Path, sqlite_url: str, variables: dict[str, str], said: str
) -> None:
    done = subprocess.run(
        command(free_port(), 1),
        cwd=tmp_path,
        env={**environment(sqlite_url), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert "s3cret" not in done.stderr
    assert "Traceback" not in done.stderr


def test_the_server_logs_as_the_settings_say(tmp_path: Path) -> None:
    away = f"sqlite:///{tmp_path}/no/such/directory/x.db"
    with serving(away, tmp_path, workers=1, BELLRINGER_LOG_FORMAT="json") as address:
        answer = httpx.get(f"{address}/api/v1/automations", headers=HEADERS)
        assert answer.status_code == 503
    [log] = tmp_path.glob("gunicorn-*.log")
    events = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    told = [event for event in events if event["event"] == "database unavailable"]
    assert [event["request_id"] for event in told] == [answer.headers["X-Request-Id"]]


# --- the documentation ------------------------------------------------------------------------------


def test_the_examples_of_the_documentation_run(sqlite_url: str, tmp_path: Path) -> None:
    with serving(sqlite_url, tmp_path, workers=1) as server:
        run_examples(server, tmp_path)


def run_examples(server: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    examples = re.findall(r"```sh\n# answers (\d{3})\n(.*?)```", page, flags=re.DOTALL)
    assert len(examples) >= 14
    for expected, script in examples:
        before, _, last = script.rpartition("curl ")
        status = 'curl -s -o answer -w "%{http_code}" '
        done = subprocess.run(
            ["sh", "-eu", "-c", f"{before}{status}{last}"],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "SERVER": server, "TOKEN": ADMIN},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.stdout == expected, f"{script}\n{done.stdout} {done.stderr}"
