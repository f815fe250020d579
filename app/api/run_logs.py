"""The call on a run's log: as plain text, or live as server-sent events.

Neither holds a database connection while it waits for a line or for its client. A live stream ends
after a minute at the latest and the client comes again, so that it never keeps a server thread; and
where many are followed at once, the rest are answered with what there is and come again in a second,
so that streams never keep all threads.
"""

import itertools
import json
import threading
import time
from collections.abc import Generator, Iterator

import structlog
from flask import Response, request
from flask_smorest import Blueprint

from app.api import documents
from app.api import parameters as given
from app.api.calls import call, text_answer
from app.api.services import Services, services
from app.errors import DatabaseUnavailable, NotFound
from app.runs.values import LogLine

log = structlog.get_logger()

blueprint = Blueprint("logs", __name__, description="What runs wrote.")

STREAM_SECONDS = 60.0
STREAMS_AT_MOST = 8
"""How many streams one process keeps open: half of its threads (``app/gunicorn.py``)."""
POLL_SECONDS = 0.5
_KEEP_ALIVE_SECONDS = 15.0
_LINES_AT_A_TIME = 500
_EVENT_STREAM = "text/event-stream"
_places = threading.BoundedSemaphore(STREAMS_AT_MOST)


@call(
    blueprint,
    "GET",
    "/runs/<run_id>/log",
    role="viewer",
    parameters=[
        given.RUN_ID,
        given.AFTER_LINE.documented(),
        given.ATTEMPT.documented(),
        given.LAST_EVENT_ID,
    ],
    answers={
        200: text_answer(
            "The log. As events, each `line` has the JSON of a line and its number as id; `end` has "
            "the state that the run ended in.",
            {
                "text/plain": "Cloning acme/shop\nDone\n",
                _EVENT_STREAM: 'id: 1\nevent: line\ndata: {"number":1,"text":"Done"}\n\n',
            },
        )
    },
    problems=["invalid-id", "invalid-header", "invalid-input", "not-found"],
)
def read_log(run_id: str) -> Response:
    """Read the log of a run.

    As text: the lines so far. With `Accept: text/event-stream`: those, and then each as it is written,
    until an `end` event. A stream ends after a minute, or at once where many are followed; come again
    with `Last-Event-ID`, as browsers do.
    """
    number = given.number_in_path("run", run_id)
    query = given.read_query(given.AFTER_LINE, given.ATTEMPT)
    resumed = given.last_event_id()
    after = resumed if resumed is not None else query["after"] or 0
    if services().runs.get(number) is None:
        raise NotFound("run", number)
    reader = _Reader(services(), number, query["attempt"], after)
    if _wants_events():
        return _streamed(reader.events(), _EVENT_STREAM)
    return _streamed(reader.text(), "text/plain; charset=utf-8")


class _Reader:
    """Reads on from the last line that was read."""

    def __init__(self, parts: Services, run_id: int, attempt: int | None, after: int) -> None:
        self._parts = parts
        self._run_id = run_id
        self._attempt = attempt
        self._after = min(after, 2**31 - 1)

    def text(self) -> Generator[bytes]:
        """Yield the lines so far as text."""
        while lines := self._more():
            yield "".join(f"{line.text}\n" for line in lines).encode("utf-8", "replace")

    def events(self) -> Generator[bytes]:
        """Yield the lines so far and those to come as server-sent events."""
        yield b"retry: 1000\n\n"
        has_place = _places.acquire(blocking=False)
        try:
            yield from self._live_events(STREAM_SECONDS if has_place else 0)
        except DatabaseUnavailable as error:
            # The client comes again by itself, after the line that it saw last.
            log.warning("log stream broke off", run=self._run_id, reason=error.reason)
        finally:
            if has_place:
                _places.release()

    def _live_events(self, seconds: float) -> Iterator[bytes]:
        clock = self._parts.clock
        quiet_since = clock.monotonic()
        ends = quiet_since + seconds
        while True:
            # Looked at before the lines: what ended had written its last line by then.
            run = self._parts.runs.get(self._run_id)
            for lines in iter(self._more, []):
                yield b"".join(_event(line) for line in lines)
                quiet_since = clock.monotonic()
            if run is None or run.finished:
                state = json.dumps({"state": run.state if run else None})
                yield f"event: end\ndata: {state}\n\n".encode()
                return
            if clock.monotonic() >= ends:
                return
            if clock.monotonic() - quiet_since > _KEEP_ALIVE_SECONDS:
                yield b": still there\n\n"
                quiet_since = clock.monotonic()
            time.sleep(POLL_SECONDS)

    def _more(self) -> list[LogLine]:
        lines = self._parts.logs.read(
            self._run_id, self._after, self._attempt, limit=_LINES_AT_A_TIME
        )
        if lines:
            self._after = lines[-1].number
        return lines


def _streamed(chunks: Generator[bytes], content_type: str) -> Response:
    # The first read happens now, while there can still be a proper answer if it fails.
    started = itertools.chain([next(chunks, b"")], chunks)
    response = Response(started, content_type=content_type)
    response.call_on_close(chunks.close)
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    return response


def _event(line: LogLine) -> bytes:
    data = json.dumps(documents.log_line(line), separators=(",", ":"))
    return f"id: {line.number}\nevent: line\ndata: {data}\n\n".encode()


def _wants_events() -> bool:
    best = request.accept_mimetypes.best_match(["text/plain", _EVENT_STREAM])
    return best == _EVENT_STREAM
