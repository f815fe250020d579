"""What a worker counts, and what it looks up when asked. Labels are few and fixed, never an id."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.errors import DatabaseUnavailable
from app.nodes.monitoring import DatabaseRetries
from app.runs.ledger import Queue

_DURATIONS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400)


class WorkerMetrics:
    """The metrics of one worker, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.ended = Counter(
            "bellringer_runs_ended",
            "Attempts that this worker carried out or reaped, by the state they led to.",
            ("state",),
            registry=self.registry,
        )
        self.duration = Histogram(
            "bellringer_run_duration_seconds",
            "Time from claiming a run to its end.",
            registry=self.registry,
            buckets=_DURATIONS,
        )
        self.lost = Counter(
            "bellringer_runs_lost",
            "Attempts that were taken from this worker.",
            registry=self.registry,
        )
        self.lines_dropped = Counter(
            "bellringer_log_lines_dropped",
            "Lines of runs' logs that could not be kept until the database took them.",
            registry=self.registry,
        )
        self.places = Gauge(
            "bellringer_worker_places",
            "Runs that this worker carries out at a time.",
            registry=self.registry,
        )
        self.running = Gauge(
            "bellringer_worker_running",
            "Runs that this worker is carrying out.",
            registry=self.registry,
        )

    def look_up(self, retries: Callable[[], int], queue: Callable[[], Queue]) -> None:
        """Add what the database knows: how often writes raced, and the queue."""
        self.registry.register(DatabaseRetries(retries))
        self.registry.register(_QueueFigures(queue))


class _QueueFigures(Collector):
    def __init__(self, queue: Callable[[], Queue]) -> None:
        self._queue = queue

    def describe(self) -> Iterator[Metric]:
        """Return nothing, so that registering does not ask the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Return the figures, or none while the database is away."""
        try:
            queue = self._queue()
        except DatabaseUnavailable:
            return
        yield GaugeMetricFamily(
            "bellringer_queue_depth", "Runs that wait, counted up to 10,000.", value=queue.depth
        )
        yield GaugeMetricFamily(
            "bellringer_queue_age_seconds",
            "How long the first in the queue has waited; 0 if none does.",
            value=queue.age,
        )
