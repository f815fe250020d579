"""Log events come out as JSON or as lines, from structlog and from plain loggers alike."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from app.log_output import configure_logging


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], _ = handlers, root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def test_json_has_one_object_per_event_from_either_kind_of_logger() -> None:
    output = io.StringIO()
    configure_logging("json", "info", output)
    structlog.contextvars.bind_contextvars(request="r-1")
    structlog.get_logger().info("run-started", run=7)
    logging.getLogger("app.runners").error("Run %d failed", 7)
    first, second = (json.loads(line) for line in output.getvalue().splitlines())
    assert (first["event"], first["run"], first["level"]) == ("run-started", 7, "info")
    assert first["request"] == "r-1"
    assert first["timestamp"].endswith("Z")
    assert (second["event"], second["level"]) == ("Run 7 failed", "error")


def test_what_lies_below_the_level_is_left_out() -> None:
    output = io.StringIO()
    configure_logging("json", "warning", output)
    structlog.get_logger().info("quiet")
    logging.getLogger("app").info("quiet")
    structlog.get_logger().warning("loud")
    assert [json.loads(line)["event"] for line in output.getvalue().splitlines()] == ["loud"]


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_traceback_shows_no_local_variables(log_format: str) -> None:
    output = io.StringIO()
    configure_logging(log_format, "info", output)
    password = "".join(["s3c", "ret"])
    try:
        raise ZeroDivisionError(len(password))
    except ZeroDivisionError:
        structlog.get_logger().exception("failed")
    assert "ZeroDivisionError" in output.getvalue()
    assert password not in output.getvalue()
