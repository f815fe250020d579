"""``/healthz``, ``/readyz`` and ``/metrics`` of a process that is no web server.

Served by a few threads with short time limits, so that nobody who connects can hinder the process.
"""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, socket
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from app.db import Database
from app.db.migrating import require_schema
from app.errors import DatabaseUnavailable, SchemaOutOfDate, SettingsInvalid

CONNECTIONS = 8
"""Requests that are answered at a time; who comes on top of them is turned away."""
PATIENCE = 5.0
"""Seconds that a client may take to send its request, and to take each part of its answer."""

Check = Callable[[], str | None]
"""Returns what is wrong, in a few words that may leave the process, or None."""


def database_fault(database: Database) -> str | None:
    """Return what is wrong with the database: it is away, or not at the schema of this release.

    One that a later release has migrated is well.
    """
    try:
        require_schema(database)
    except DatabaseUnavailable:
        return "the database is not available"
    except SchemaOutOfDate:
        return "the database is not at the schema of this release; run 'bellringer migrate'"
    return None


class DatabaseRetries(Collector):
    """How often writes of this process raced, which its database knows when asked."""

    def __init__(self, retries: Callable[[], int]) -> None:
        self._retries = retries

    def collect(self) -> Iterator[Metric]:
        """Return the figure."""
        yield CounterMetricFamily(
            "bellringer_database_retries",
            "Tries of writes that lost a race and were made again.",
            value=self._retries(),
        )


class Monitoring:
    """A small HTTP server on threads of its own.

    ``health`` judges the process, ``readiness`` whether it can work; ``note`` is what people should
    know though the process is well, and stands in the answer about health.
    """

    def __init__(
        self,
        bind: str,
        registry: CollectorRegistry,
        health: Check,
        readiness: Check,
        note: Check = lambda: None,
    ) -> None:
        """Listen on ``bind`` (``host:port``). Raises SettingsInvalid if that can't be."""
        answers = {
            "/healthz": lambda: _verdict(health(), note()),
            "/readyz": lambda: _verdict(readiness()),
            "/metrics": lambda: (200, CONTENT_TYPE_LATEST, generate_latest(registry)),
        }
        host, _, port = bind.rpartition(":")
        try:
            self._server = _Server((host.strip("[]"), int(port)), answers)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SettingsInvalid(
                [f"BELLRINGER_METRICS_BIND: cannot listen on {bind}: {reason}"]
            ) from error

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Serve until :meth:`close`."""
        threading.Thread(target=self._server.serve_forever, name="monitoring", daemon=True).start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()


_Answer = tuple[int, str, bytes]


def _verdict(fault: str | None, note: str | None = None) -> _Answer:
    text = "\n".join(filter(None, ("ok" if fault is None else fault, note)))
    return (200 if fault is None else 503), "text/plain; charset=utf-8", f"{text}\n".encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], answers: dict[str, Callable[[], _Answer]]) -> None:
        if ":" in address[0]:
            self.address_family = AF_INET6
        self.answers = answers
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: socket | tuple[bytes, socket], client: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client)
        except BaseException:
            self._places.release()
            raise

    def process_request_thread(self, request: socket | tuple[bytes, socket], client: Any) -> None:
        try:
            super().process_request_thread(request, client)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        # A client that went away is no news.
        pass


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "bellringer"
    sys_version = ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        answer = self.server.answers.get(self.path.partition("?")[0])
        status, kind, content = (
            (404, "text/plain; charset=utf-8", b"not here\n") if answer is None else answer()
        )
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass
