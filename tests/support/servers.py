"""Servers of the product, as real processes on free ports."""

import socket
import time
import urllib.error
import urllib.request


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_answers(url: str, limit: float = 30.0, *, any_answer: bool = False) -> None:
    """Wait until ``url`` answers with success, or with anything; fail after ``limit`` seconds."""
    deadline = time.monotonic() + limit
    while True:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except urllib.error.HTTPError:
            if any_answer:
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, f"{url} did not answer within {limit} s"
        time.sleep(0.05)
