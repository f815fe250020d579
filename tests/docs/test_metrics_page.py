"""The page of metrics lists exactly those that the processes serve, and by whom."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from app.api.metrics import Metrics
from app.runs.ledger import Queue
from app.scheduling.metrics import SchedulerMetrics
from app.worker.metrics import WorkerMetrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def names(registry: CollectorRegistry) -> set[str]:
    return {metric.name for metric in registry.collect()}


def served() -> dict[str, set[str]]:
    scheduler, worker = SchedulerMetrics(), WorkerMetrics()
    scheduler.look_up(lambda: 0)
    worker.look_up(lambda: 0, lambda: Queue(0, 0.0))
    by_process = {
        "web": names(Metrics().registry),
        "scheduler": names(scheduler.registry),
        "worker": names(worker.registry),
    }
    return {
        name: {process for process, theirs in by_process.items() if name in theirs}
        for name in set().union(*by_process.values())
    }


def test_the_page_lists_what_is_served_and_by_whom() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", PAGE.read_text(), re.MULTILINE)
    assert {name: set(by.split(", ")) for name, by in rows} == served()
    assert len(rows) == len(served())
