"""A small Git host over HTTP that demands a password, for tests of what Git is told."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class GitHost(ThreadingHTTPServer):
    """Serves the repositories below ``root`` to who shows ``user:token``; notes what it was sent."""

    daemon_threads = True

    def __init__(self, root: Path, token: str, redirect_to: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.token = token
        self.redirect_to = redirect_to
        self.authorizations: list[str | None] = []
        self.command_lines_with_token: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def accepts(self, authorization: str | None) -> bool:
        if authorization is None or not authorization.startswith("Basic "):
            return False
        password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")[2]
        return password == self.token

    def look_at_command_lines(self) -> None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes()
            except OSError:
                continue
            if self.token.encode() in line:
                self.command_lines_with_token.append(line)


class _Handler(BaseHTTPRequestHandler):
    server: GitHost

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def _answer(self, body: bytes) -> None:
        host = self.server
        authorization = self.headers.get("Authorization")
        host.authorizations.append(authorization)
        host.look_at_command_lines()
        if host.redirect_to is not None:
            self._plain(302, ("Location", host.redirect_to + self.path))
        elif host.accepts(authorization):
            self._backend(body)
        else:
            self._plain(401, ("WWW-Authenticate", 'Basic realm="git"'))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _plain(self, status: int, header: tuple[str, str]) -> None:
        self.send_response(status)
        self.send_header(*header)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _backend(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "REMOTE_ADDR": "127.0.0.1",
            },
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def git_host(root: Path, token: str, redirect_to: str | None = None) -> Iterator[GitHost]:
    """Serve in a thread while the block lasts."""
    host = GitHost(root, token, redirect_to)
    thread = threading.Thread(
        target=host.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield host
    finally:
        host.shutdown()
        host.server_close()
        thread.join()
