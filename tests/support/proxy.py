"""A TCP proxy that a test can cut, hang and mend, to stand for a network that fails."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy:
    """Passes bytes on to ``host:port``.

    While *cut*, connections are reset and new ones refused at once; while *hung*, nothing passes,
    nobody is told, and new connections are accepted but never answered.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        self._closed = False
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Reset all connections, and every new one."""
        self._refusing = True
        self._drop_all()

    def hang(self) -> None:
        """Let nothing pass any more."""
        self._flowing.clear()

    def mend(self) -> None:
        """Let everything pass again; what was held back passes now."""
        self._refusing = False
        self._flowing.set()

    def close(self) -> None:
        """End the proxy and its connections."""
        self._closed = True
        self._flowing.set()
        self._listener.close()
        self._drop_all()

    def _drop_all(self) -> None:
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            _reset(each)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                _reset(client)
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._flowing.wait()
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            _reset(client)
            return
        server.settimeout(None)
        with self._lock:
            self._sockets |= {client, server}
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
        with self._lock:
            self._sockets -= {source, sink}
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _reset(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def proxy_to(host: str, port: int) -> Iterator[Proxy]:
    """Give a proxy to ``host:port``."""
    proxy = Proxy(host, port)
    try:
        yield proxy
    finally:
        proxy.close()
