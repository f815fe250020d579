"""Where log events go: to standard error, as lines for people or as JSON for machines.

Events of structlog and of the standard library's loggers come out alike.
"""

import logging
import sys
from datetime import datetime
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor


def configure_logging(log_format: str, level: str, stream: TextIO | None = None) -> None:
    """Send log events of at least ``level`` to ``stream``, or to standard error.

    ``log_format`` is ``console`` or ``json``. What is bound to the context of the thread, as a request's
    id is, comes along.
    """
    output = stream or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _instants_as_text,
    ]
    ending: list[Processor]
    if log_format == "json":
        # No local variables in tracebacks, here and below: they may be secrets.
        without_locals = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        ending = [
            structlog.processors.ExceptionRenderer(without_locals),
            structlog.processors.JSONRenderer(),
        ]
    else:
        plain = structlog.dev.plain_traceback
        ending = [structlog.dev.ConsoleRenderer(colors=output.isatty(), exception_formatter=plain)]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(threshold)
    # Engines and jobs are chatty below warnings, and say nothing there that an operator needs.
    for noisy in ("sqlalchemy", "apscheduler", "alembic"):
        logging.getLogger(noisy).setLevel(max(threshold, logging.WARNING))


def _instants_as_text(_logger: object, _method: str, event: EventDict) -> EventDict:
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in event.items()
    }
