"""The scheduler as a process: puts its parts together and listens to signals."""

import logging
import queue
import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import FrameType

import structlog
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from app.clock import Clock, SystemClock
from app.cron import Expression
from app.db import Database, DatabaseLimits
from app.db.migrating import require_schema
from app.errors import DatabaseUnavailable
from app.log_output import configure_logging
from app.nodes.monitoring import Monitoring, database_fault
from app.nodes.registry import NodeRegistry, new_node_id
from app.scheduling.claiming import Claiming, ClaimingOptions
from app.scheduling.executor import GatheringExecutor
from app.scheduling.expressions import EnabledExpressions
from app.scheduling.metrics import SchedulerMetrics
from app.scheduling.occurrences import OccurrenceLedger
from app.scheduling.reconciler import Reconciler
from app.scheduling.trigger import CronExpressionTrigger
from app.settings import Settings

log = structlog.get_logger()

_STOPS_WITHIN = 15.0


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """How a scheduler works. ``interval`` and ``heartbeat`` are in seconds."""

    catch_up: timedelta = timedelta(seconds=300)
    max_attempts: int = 1
    interval: float = 1.0
    heartbeat: float = 5.0
    claiming: ClaimingOptions = field(default_factory=ClaimingOptions)


class SchedulerService:
    """One scheduler node. Any number may work on one database."""

    def __init__(
        self,
        database: Database,
        registry: NodeRegistry,
        clock: Clock,
        options: SchedulerOptions | None = None,
    ) -> None:
        options = options or SchedulerOptions()
        self.node = new_node_id("scheduler")
        self.metrics = SchedulerMetrics()
        self.metrics.look_up(lambda: database.retries)
        ledger = OccurrenceLedger(
            database, catch_up=options.catch_up, max_attempts=options.max_attempts
        )
        self._claiming = Claiming(ledger, self.node, self.metrics, options.claiming)
        self._jobs = _Jobs(GatheringExecutor(self._claiming.hand_on))
        self._reconciler = Reconciler(
            EnabledExpressions(database),
            self._jobs,
            self._claiming.hand_on,
            registry,
            self.node,
            lambda: self._claiming.problem,
            self.metrics,
            clock,
            interval=options.interval,
            heartbeat=options.heartbeat,
        )

    def start(self) -> None:
        """Begin to fire; a database that is away is waited for."""
        self._claiming.start()
        self._jobs.start()
        self._reconciler.start()
        log.info("scheduler-started", node=self.node)

    def stop(self) -> None:
        """Fire no more, once what was due already is claimed; within 30 seconds."""
        self._jobs.stop()
        self._claiming.stop(_STOPS_WITHIN)
        self._reconciler.stop(_STOPS_WITHIN)
        log.info("scheduler-stopped", node=self.node)

    def fault(self) -> str | None:
        """Return why this process does not work and wants to be started anew, or None.

        A database that is away and a stored expression that is not valid are no such fault.
        """
        return self._claiming.fault() or self._reconciler.fault()

    def problem(self) -> str | None:
        """Return what hinders this node or what it can't fire, for people; None if all is well."""
        return self._reconciler.problem()

    def hindrance(self) -> str | None:
        """Return why nothing fires just now, or None."""
        return self._reconciler.hindrance()


class _Jobs:
    """The jobs in APScheduler's memory, one per expression."""

    def __init__(self, executor: GatheringExecutor) -> None:
        # Its records name each job that comes and goes, and repeat what our own say.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            timezone="UTC",
            executors={"default": executor},
            job_defaults={"coalesce": True, "misfire_grace_time": None},
        )

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        self._scheduler.shutdown()

    def wakeup(self) -> None:
        self._scheduler.wakeup()

    def add(self, expression: str, parsed: Expression, since: datetime) -> None:
        first = parsed.next(since)
        if first is None:
            return
        self._scheduler.add_job(
            _handed_on_by_the_executor,
            CronExpressionTrigger(parsed),
            args=(since,),
            id=expression,
            next_run_time=first,
        )

    def remove(self, expression: str) -> None:
        try:
            self._scheduler.remove_job(expression)
        except JobLookupError:
            # It had no further instant, so it was never added or went by itself.
            pass


def _handed_on_by_the_executor(since: datetime) -> None:
    """Stand for the work of a job, which our executor never calls."""


def serve(settings: Settings) -> int:
    """Schedule until SIGTERM or SIGINT, then end in order and return 0.

    Raises SettingsInvalid if the address for metrics can't be had, and SchemaOutOfDate.
    """
    configure_logging(settings.log_format, settings.log_level)
    orders: queue.SimpleQueue[int] = queue.SimpleQueue()

    def ordered(number: int, _frame: FrameType | None) -> None:
        # This queue's put is reentrant, which an event's set is not.
        orders.put(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ordered)
    with ExitStack() as stack:
        limits = DatabaseLimits(statement=settings.database_timeout, pool=settings.database_pool)
        database = Database(settings.database_url, limits=limits)
        stack.callback(database.close)
        options = SchedulerOptions(
            catch_up=timedelta(seconds=settings.catch_up), max_attempts=settings.run_attempts
        )
        with suppress(DatabaseUnavailable):
            # One that is away is waited for, with health and metrics to look at.
            require_schema(database)
        service = SchedulerService(database, NodeRegistry(database), SystemClock(), options)
        if settings.metrics_bind is not None:
            monitoring = Monitoring(
                settings.metrics_bind,
                service.metrics.registry,
                service.fault,
                lambda: database_fault(database) or service.hindrance(),
                service.problem,
            )
            monitoring.start()
            stack.callback(monitoring.close)
        service.start()
        stack.callback(service.stop)
        orders.get()
    return 0
