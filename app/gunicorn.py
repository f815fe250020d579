"""How gunicorn serves Bellringer: ``gunicorn -c python:app.gunicorn app.wsgi:app``.

Whoever starts it adds ``--bind`` and ``--workers``. Threads, since a log that is followed keeps one for
up to a minute.
"""

import os
import socket
import struct
from pathlib import Path
from typing import Any

from prometheus_client import multiprocess

worker_class = "gthread"
threads = 16
timeout = 60
graceful_timeout = 10
keepalive = 5
limit_request_line = 8190
limit_request_fields = 100
max_requests = 0
preload_app = False
control_socket_disable = True

SILENCE = 20
"""Seconds for which a client may send nothing of what it announced, or read nothing of its answer."""
_DIRECTORY = os.environ.get("PROMETHEUS_MULTIPROC_DIR")


def on_starting(server: Any) -> None:
    """Forget the numbers of the server that ran before, if its workers kept any."""
    if _DIRECTORY:
        Path(_DIRECTORY).mkdir(parents=True, exist_ok=True)
        for file in Path(_DIRECTORY).glob("*.db"):
            file.unlink(missing_ok=True)


def when_ready(server: Any) -> None:
    """Let no client that fell silent keep a thread: what is accepted inherits the listener's limits."""
    limit = struct.pack("ll", SILENCE, 0)
    for listener in server.LISTENERS:
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def child_exit(server: Any, worker: Any) -> None:
    """Let go of the gauges of a worker that has ended; its counters stay in the sums."""
    if _DIRECTORY:
        multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
