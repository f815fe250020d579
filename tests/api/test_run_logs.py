"""Reading logs, as text and as a stream of events."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.api import run_logs
from app.db import Database
from app.runs.ledger import Held, RunLedger, Verdict
from app.runs.logs import NewLine, RunLogs
from tests.support.api import Api, assert_problem, make_api

EVENTS = {"Accept": "text/event-stream"}


@dataclass
class Running:
    """A run that a worker holds, and what writes its log."""

    database: Database
    id: int
    attempt: int
    last: int | None = None

    def write(self, *lines: str, stream: str = "stdout") -> None:
        now = self.database.read(self.database.now)
        new = [NewLine(stream, now, line) for line in lines]
        self.last = RunLogs(self.database).append(
            self.id, "worker-1", self.attempt, new, after=self.last
        )
        assert self.last is not None

    def finish(self) -> None:
        held = Held(self.id, self.attempt)
        verdict = Verdict("succeeded", exit_code=0)
        assert RunLedger(self.database).finish("worker-1", held, verdict)


@pytest.fixture
def live_api(sqlite_database: Database) -> Api:
    """The application with a clock that moves, since streams end by it."""
    return make_api(sqlite_database)


@pytest.fixture
def running(live_api: Api, sqlite_database: Database) -> Running:
    live_api.create()
    live_api.post("/automations/nightly/runs")
    [claimed] = RunLedger(sqlite_database).claim("worker-1", 1, 30)
    return Running(sqlite_database, claimed.run.id, claimed.run.attempt)


def events_of(chunks: Iterator[bytes]) -> Iterator[dict[str, str]]:
    """Read events the way a browser does, as they come."""
    buffer = ""
    for chunk in chunks:
        buffer += chunk.decode()
        while "\n\n" in buffer:
            block, buffer = buffer.split("\n\n", 1)
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            if "event" in fields:
                yield fields


def stream_of(api: Api, path: str, **headers: str) -> Iterator[dict[str, str]]:
    answer = api.get(path, headers={**EVENTS, **headers}, documented=False)
    assert answer.status_code == 200
    assert answer.content_type.startswith("text/event-stream")
    return events_of(answer.response)


def test_the_log_as_text(live_api: Api, running: Running) -> None:
    path = f"/runs/{running.id}/log"
    assert live_api.get(path).text == ""
    running.write("one", "two ünïcode", "")
    running.write("<b>three</b>", stream="stderr")
    answer = live_api.get(path)
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.text == "one\ntwo ünïcode\n\n<b>three</b>\n"
    assert live_api.get(f"{path}?after=3").text == "<b>three</b>\n"
    assert live_api.get(f"{path}?after=99").text == ""
    assert live_api.get(f"{path}?after={2**63 - 1}").text == ""
    assert live_api.get(f"{path}?attempt=1&after=1").text.startswith("two")
    assert live_api.get(f"{path}?attempt=2").text == ""


def test_a_long_log_is_read_to_its_end(live_api: Api, running: Running) -> None:
    lines = [f"line {number}" for number in range(2 * run_logs._LINES_AT_A_TIME + 1)]
    running.write(*lines)
    assert live_api.get(f"/runs/{running.id}/log").text.splitlines() == lines


def test_text_is_what_is_answered_unless_events_are_asked_for(
    live_api: Api, running: Running
) -> None:
    running.finish()
    for accept, expected in [
        ("*/*", "text/plain"),
        ("text/*", "text/plain"),
        ("application/json", "text/plain"),
        ("text/event-stream;q=0.1, text/plain", "text/plain"),
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, */*;q=0.1", "text/event-stream"),
    ]:
        answer = live_api.get(f"/runs/{running.id}/log", headers={"Accept": accept})
        assert (accept, answer.mimetype) == (accept, expected)


def test_a_stream_has_the_lines_so_far_then_those_to_come_then_the_end(
    live_api: Api, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "POLL_SECONDS", 0.01)
    running.write("one")
    events = stream_of(live_api, f"/runs/{running.id}/log")
    first = next(events)
    assert (first["id"], first["event"]) == ("1", "line")
    line = json.loads(first["data"])
    assert (line["number"], line["text"], line["stream"], line["attempt"]) == (
        1,
        "one",
        "stdout",
        1,
    )
    assert line["logged_at"].endswith("Z")
    running.write("two\r", "data: x")
    assert [json.loads(next(events)["data"])["text"] for _ in range(2)] == ["two\r", "data: x"]
    running.write("last")
    running.finish()
    rest = list(events)
    assert [event["event"] for event in rest] == ["line", "end"]
    assert json.loads(rest[1]["data"]) == {"state": "succeeded"}


def test_a_stream_goes_on_after_the_last_event(live_api: Api, running: Running) -> None:
    running.write("one", "two", "three")
    running.finish()
    path = f"/runs/{running.id}/log"
    events = list(stream_of(live_api, path, **{"Last-Event-ID": "2"}))
    assert [event.get("id") for event in events] == ["3", None]
    after = list(stream_of(live_api, f"{path}?after=1"))
    assert [event.get("id") for event in after] == ["2", "3", None]
    both = list(stream_of(live_api, f"{path}?after=1", **{"Last-Event-ID": "3"}))
    assert [event["event"] for event in both] == ["end"]


def test_a_stream_ends_by_itself_after_its_time_and_says_no_end(
    live_api: Api, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(run_logs, "STREAM_SECONDS", 0.1)
    running.write("one")
    events = list(stream_of(live_api, f"/runs/{running.id}/log"))
    assert [event["event"] for event in events] == ["line"]


def test_without_a_free_place_a_stream_has_the_lines_so_far_and_ends(
    live_api: Api, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "_places", threading.BoundedSemaphore(1))
    running.write("one")
    path = f"/runs/{running.id}/log"
    first = live_api.get(path, headers=EVENTS, documented=False)
    followed = events_of(first.response)
    next(followed)
    again = [event["event"] for event in stream_of(live_api, path)]
    assert again == ["line"]
    first.close()
    place = run_logs._places
    assert place.acquire(blocking=False), "a stream that was left keeps its place"
    running.finish()
    over = [event["event"] for event in stream_of(live_api, path)]
    assert over == ["line", "end"]


def test_a_quiet_stream_says_that_it_is_there(
    live_api: Api, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(run_logs, "_KEEP_ALIVE_SECONDS", 0.02)
    monkeypatch.setattr(run_logs, "STREAM_SECONDS", 0.2)
    answer = live_api.get(f"/runs/{running.id}/log", headers=EVENTS)
    assert b"\n: still there\n\n" in answer.data


def test_a_waiting_stream_holds_no_connection(
    live_api: Api, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_logs, "POLL_SECONDS", 0.0)
    running.write("one")
    events = stream_of(live_api, f"/runs/{running.id}/log")
    next(events)
    held = []
    monkeypatch.setattr(
        run_logs.time, "sleep", lambda _: held.append(running.database.reader.pool.checkedout())
    )
    running.write("two")
    next(events)
    running.finish()
    list(events)
    assert held and set(held) == {0}


def test_a_stream_breaks_off_quietly_when_the_database_goes(
    live_api: Api, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.errors import DatabaseUnavailable

    def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("gone")

    running.write("one")
    monkeypatch.setattr(run_logs, "POLL_SECONDS", 0.0)
    events = stream_of(live_api, f"/runs/{running.id}/log")
    next(events)
    monkeypatch.setattr(RunLedger, "get", away)
    assert list(events) == []


@pytest.mark.parametrize("value", ["", "x", "-1", "1.0", "9" * 19])
def test_a_malformed_last_event_id_is_refused(live_api: Api, running: Running, value: str) -> None:
    for accept in (EVENTS, {}):
        headers = {**accept, "Last-Event-ID": value}
        answer = live_api.get(f"/runs/{running.id}/log", headers=headers)
        assert_problem(answer, 400, "invalid-header")


def test_polling_and_streams_are_bounded() -> None:
    assert run_logs.POLL_SECONDS <= 1
    assert run_logs.STREAM_SECONDS <= 60
