"""Speaks to a Bellringer server, and turns its problems into messages and exit codes."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import click
import httpx

from app.cli.main import settings_of
from app.cli.output import complain
from app.errors import SettingsInvalid
from app.settings import PREFIX, Settings

TOKEN_FILE = "admin-token"
"""The file in the data dir in which ``bellringer up`` keeps the token that it made."""

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_EXIT_CODES = {404: 3, 409: 4, 412: 4, 503: 5}


class Client:
    """The API of one server. Whatever is refused ends the command with the server's own words."""

    def __init__(self, settings: Settings) -> None:
        self._base = (settings.url or f"http://{_reachable(settings.bind)}").rstrip("/")
        token = settings.token or _kept_token(settings) or settings.admin_token
        self._no_token = None if token else Path(settings.data_dir, TOKEN_FILE).absolute()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            self._http = httpx.Client(base_url=self._base, headers=headers, timeout=_TIMEOUT)
        except httpx.InvalidURL as error:
            raise SettingsInvalid([f"{PREFIX}URL: {error}"]) from None

    def get(self, path: str, **params: object) -> Any:
        """Return the JSON that a GET answers."""
        return self.call("GET", path, params=params).json()

    def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, object] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (),
    ) -> httpx.Response:
        """Return the answer if it is a success or one of the statuses in ``accept``."""
        given = {k: _utf_8(v) for k, v in (params or {}).items() if v is not None}
        # In ASCII, so that half a character is there for the server to refuse.
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        sent = {k: v.encode("utf-8", "surrogateescape") for k, v in (headers or {}).items()}
        if content is not None:
            sent["Content-Type"] = b"application/json"
        try:
            answer = self._http.request(
                method,
                f"/api/v1{path}",
                params=given,
                content=content,
                headers=sent,  # type: ignore[arg-type]  # bytes as values are taken
            )
        except httpx.LocalProtocolError as error:
            complain(f"That can't be sent: {error}.")
            sys.exit(2)
        except httpx.HTTPError as error:
            self._unreachable(error)
        if not answer.is_success and answer.status_code not in accept:
            refuse(answer, self._no_token)
        if answer.is_success and answer.content and "X-Request-Id" not in answer.headers:
            complain(f"What answers at {self._base} is not Bellringer; is {PREFIX}URL right?")
            sys.exit(1)
        return answer

    def pages(self, path: str, limit: int | None, **params: object) -> Iterator[dict[str, Any]]:
        """Yield the items of a listing, at most ``limit``, page by page."""
        cursor = "before" if path.endswith("/runs") else "after"
        left = limit
        while left is None or left > 0:
            size = min(left or 1000, 1000)
            page = self.get(path, limit=size, **params)
            yield from page["data"]
            if left is not None:
                left -= len(page["data"])
            if page["meta"]["next"] is None:
                return
            params[cursor] = page["meta"]["next"]

    def events(self, path: str, last: str | None) -> Iterator[tuple[str, str, str]]:
        """Yield id, name and data of each event of one live stream, until it ends."""
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        try:
            with self._http.stream("GET", f"/api/v1{path}", headers=headers) as answer:
                if not answer.is_success:
                    answer.read()
                    refuse(answer, self._no_token)
                fields: dict[str, str] = {}
                for line in answer.iter_lines():
                    if line:
                        name, _, value = line.partition(":")
                        value = value.removeprefix(" ")
                        fields[name] = f"{fields[name]}\n{value}" if name in fields else value
                    elif fields:
                        if "data" in fields or "event" in fields:
                            yield (
                                fields.get("id", ""),
                                fields.get("event", "message"),
                                fields.get("data", ""),
                            )
                        fields = {}
        except httpx.HTTPError as error:
            self._unreachable(error)

    def _unreachable(self, error: httpx.HTTPError) -> NoReturn:
        complain(
            f"{self._base} does not answer ({type(error).__name__}).",
            "Is it running? 'bellringer up' starts it; BELLRINGER_URL names another one.",
        )
        sys.exit(5)


def client_of(ctx: click.Context) -> Client:
    """Return a client for the server that the settings name."""
    return Client(settings_of(ctx))


def segment(text: str | int) -> str:
    """Return ``text`` as one segment of a path."""
    return quote(str(text), safe="", errors="surrogateescape")


def _utf_8(value: object) -> str:
    """Return ``value`` as text; bytes of the command line that are no UTF-8 become U+FFFD."""
    return str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def refuse(answer: httpx.Response, no_token: Path | None = None) -> NoReturn:
    """End the command with what the server says is wrong; ``no_token`` is where one was looked for."""
    status = answer.status_code
    try:
        problem = answer.json()
        headline = str(problem.get("detail") or problem.get("title"))
        errors = problem.get("errors", [])
    except (ValueError, AttributeError):
        headline, errors = f"The server answered {status}.", []
    details = [f"{e.get('pointer') or '/'}: {e.get('detail')}" for e in errors]
    if details == [f"/: {headline}"]:
        details = []
    if status == 401:
        details.append("BELLRINGER_TOKEN holds the token; 'bellringer token create' makes one.")
        if no_token is not None:
            details.append(
                f"It is not set, and there is no file {no_token} (BELLRINGER_DATA_DIR names another "
                "directory)."
            )
    complain(headline, *details)
    sys.exit(_EXIT_CODES.get(status, 1))


def _reachable(bind: str) -> str:
    host, _, port = bind.rpartition(":")
    return f"{ {'0.0.0.0': '127.0.0.1', '[::]': '[::1]'}.get(host, host) }:{port}"


def _kept_token(settings: Settings) -> str | None:
    try:
        return Path(settings.data_dir, TOKEN_FILE).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
