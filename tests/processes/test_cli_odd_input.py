"""What a person, a script or a wrong address can do to a command: it ends with a sentence."""

import http.server
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes.conftest import environment
from tests.support.waiting import until

Command = Callable[..., subprocess.CompletedProcess[str]]

DEEP = "[" * 5000
RUN = ("automation", "run", "none")
CREATE = ("automation", "create", "new", "--file", "-")
TARGET = ("--repository", "acme/shop", "--workflow", "x.sh")


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        ((*RUN, "--input", "NaN"), ""),
        ((*RUN, "--input", "1e999"), ""),
        ((*RUN, "--input", DEEP), ""),
        ((*RUN, "--input", "9" * 5000), ""),
        ((*RUN, "--input", '"\\ud800"'), ""),
        ((*RUN, "--idempotency-key", "\u00e9"), ""),
        ((*RUN, "--idempotency-key", "a\nb"), ""),
        (CREATE, '{"name": NaN}'),
        (CREATE, '{"name": "\\ud800"}'),
        (CREATE, '{"name": ' + DEEP),
        (CREATE, "name = 2026-12-01"),
        (CREATE, "name = nan"),
        (CREATE, "name = " + DEEP),
        (CREATE, "name = " + "9" * 5000),
        (("automation", "create", "\udcff", *TARGET), ""),
        (("automation", "create", "new", "--name", "\udcff", *TARGET), ""),
        (("automation", "show", "\udcff"), ""),
        (("automation", "list", "--repository", "\udcff"), ""),
        (("automation", "delete", "none", "--yes", "--if-match", "\u00e9"), ""),
    ],
)
def test_what_can_not_be_sent_or_taken_is_refused_in_a_sentence(
    bellringer: Command, server: dict[str, str], arguments: tuple[str, ...], stdin: str
) -> None:
    done = bellringer(*arguments, stdin=stdin, **server)
    assert done.returncode in (1, 2, 3, 4)
    assert done.stderr and "Traceback" not in done.stderr


def test_an_edited_text_that_is_no_utf_8_is_refused(
    bellringer: Command, server: dict[str, str], tmp_path: Path
) -> None:
    assert bellringer("automation", "create", "new", *TARGET, **server).returncode == 0
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff")
    done = bellringer("automation", "edit", "new", **server, EDITOR=f"cp {binary}")
    assert done.returncode == 1
    assert "UTF-8" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("url", ["http://[::1", "http://host:port"])
def test_an_address_that_is_none_is_a_wrong_setting(bellringer: Command, url: str) -> None:
    done = bellringer("automation", "list", URL=url)
    assert done.returncode == 2
    assert "BELLRINGER_URL" in done.stderr and "Traceback" not in done.stderr


def test_a_server_that_is_another_one_is_told_from_ours(bellringer: Command) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>Welcome!</html>")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}"
        for command in (("automation", "list"), ("automation", "show", "a"), ("run", "show", "1")):
            done = bellringer(*command, URL=url)
            assert done.returncode == 1
            assert "is not Bellringer" in done.stderr and "Traceback" not in done.stderr
        other.shutdown()


def test_a_closed_output_is_no_fault() -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m app settings {closed}"],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (0, False)


def test_an_interrupted_command_says_so_and_exits_with_130(
    bellringer: Command, server: dict[str, str]
) -> None:
    assert bellringer("automation", "create", "new", *TARGET, **server).returncode == 0
    run = json.loads(bellringer("automation", "run", "new", "--json", **server).stdout)["id"]
    following = subprocess.Popen(
        [sys.executable, "-m", "app", "run", "log", str(run), "--follow"],
        env=environment(**server),
        stderr=subprocess.PIPE,
        text=True,
        # A shell that puts the tests in the background has them ignore what a terminal sends.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # A socket is opened long after the command has begun.
    until(lambda: is_connected(following.pid))
    following.send_signal(signal.SIGINT)
    _, told = following.communicate(timeout=30)
    assert (following.returncode, told.splitlines()[-1]) == (130, "bellringer: interrupted")
    # With the run its stream ends, which a server that stops would wait for.
    assert bellringer("run", "cancel", str(run), **server).returncode == 0


def is_connected(pid: int) -> bool:
    try:
        opened = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:
        # One was closed meanwhile.
        return False
    return any(each.startswith("socket:") for each in opened)
