"""What a scheduler counts. Labels never carry an id or an expression."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.nodes.monitoring import DatabaseRetries

_LATENESS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300)


class SchedulerMetrics:
    """The metrics of one scheduler, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.lateness = Histogram(
            "bellringer_occurrence_lateness_seconds",
            "Time from the instant an occurrence was due to its claim.",
            registry=self.registry,
            buckets=_LATENESS,
        )
        self.fired = self._counter("occurrences_fired", "Occurrences that this node claimed.")
        self.missed = self._counter(
            "occurrences_missed", "Occurrences that nobody claimed in time."
        )
        self.runs = self._counter("runs_queued", "Runs that this node's claims started.")
        self.overtaken = self._counter(
            "claims_overtaken", "Claims made again since another node was faster."
        )
        self.failures = self._counter("claim_failures", "Claims that the database did not take.")
        self.clock_ahead = self._counter(
            "clock_ahead", "Claims that came before the database's clock had the instant."
        )
        self.expressions = self._gauge("expressions", "Enabled expressions that this node fires.")
        self.invalid = self._gauge("expressions_invalid", "Enabled expressions that are no cron.")
        self.read_failures = self._counter(
            "reconcile_failures", "Reads of the enabled expressions that failed."
        )

    def look_up(self, retries: Callable[[], int]) -> None:
        """Add how often writes raced, which the database knows."""
        self.registry.register(DatabaseRetries(retries))

    def _counter(self, name: str, documentation: str) -> Counter:
        return Counter(f"bellringer_{name}", documentation, registry=self.registry)

    def _gauge(self, name: str, documentation: str) -> Gauge:
        return Gauge(f"bellringer_{name}", documentation, registry=self.registry)
