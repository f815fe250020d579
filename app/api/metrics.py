"""What the API counts of itself. Labels are few and fixed: never an id, never a client's own word."""

import os
import time

from flask import Flask, Response, g, request
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""The variable by which prometheus_client shares the numbers of several processes through files."""

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "bellringer_http_requests",
            "Requests answered, by method, route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.duration = Histogram(
            "bellringer_http_request_duration_seconds",
            "Time until an answer's headers were ready, by method and route.",
            ("method", "route"),
            registry=self.registry,
        )

    def observe(self, app: Flask) -> None:
        """Count every request that ``app`` answers."""
        app.before_request(_start)
        app.after_request(self._count)

    def exposition(self) -> bytes:
        """Return all metrics in the text format: under gunicorn those of all its workers."""
        registry = self.registry
        if os.environ.get(MULTIPROCESS):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def _count(self, response: Response) -> Response:
        method = request.method if request.method in _METHODS else "other"
        route = request.url_rule.rule if request.url_rule is not None else "unmatched"
        self.requests.labels(method, route, str(response.status_code)).inc()
        if (began := g.get("began")) is not None:
            self.duration.labels(method, route).observe(time.perf_counter() - began)
        return response


def _start() -> None:
    g.began = time.perf_counter()


__all__ = ["CONTENT_TYPE_LATEST", "MULTIPROCESS", "Metrics"]
