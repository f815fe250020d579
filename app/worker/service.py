"""The worker as a process: puts its parts together and listens to signals."""

import os
import queue
import signal
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import structlog

from app.clock import Clock, SystemClock
from app.db import Database, DatabaseLimits
from app.db.migrating import require_schema
from app.errors import DatabaseUnavailable, SettingsInvalid
from app.log_output import configure_logging
from app.nodes.monitoring import Monitoring, database_fault
from app.nodes.registry import NodeRegistry, new_node_id
from app.runners.child import Timing
from app.runners.git import INHERITED, GitAccess
from app.runners.process import ProcessRunner, RunnerOptions
from app.runners.values import RunUser
from app.runs.ledger import RunLedger
from app.runs.logs import RunLogs
from app.settings import Settings
from app.worker.metrics import WorkerMetrics
from app.worker.presence import Presence
from app.worker.worker import Worker, WorkerOptions

log = structlog.get_logger()

ASK_AGAIN = 1.0


def serve(settings: Settings) -> int:
    """Work until SIGTERM or SIGINT; return the exit code.

    0 if everything that was begun is written down, 1 if not. Raises SettingsInvalid and
    SchemaOutOfDate before anything has begun.
    """
    configure_logging(settings.log_format, settings.log_level)
    orders: queue.SimpleQueue[object] = queue.SimpleQueue()

    def ordered(number: int, _frame: FrameType | None) -> None:
        # The one thing that a handler may do: this queue's put is reentrant, an event's set is not.
        orders.put(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ordered)
    with ExitStack() as stack:
        database = _database(settings, settings.database_pool)
        stack.callback(database.close)
        for_leases = _database(settings, 1)
        stack.callback(for_leases.close)
        clock = SystemClock()
        runner = _runner(settings, clock)
        if not _schema_fits(database, orders):
            return 0
        worker, metrics = _worker(settings, database, for_leases, runner, clock)
        if settings.metrics_bind is not None:
            monitoring = Monitoring(
                settings.metrics_bind,
                metrics.registry,
                worker.fault,
                lambda: database_fault(database),
            )
            monitoring.start()
            stack.callback(monitoring.close)
        swept = runner.sweep()
        if swept:
            log.info("trees-swept", trees=swept)
        return 0 if worker.run(orders) else 1


def _database(settings: Settings, pool: int) -> Database:
    # A server that hangs must leave time to try again before a lease ends.
    statement = min(settings.database_timeout, max(settings.lease / 3, 1.0))
    return Database(settings.database_url, limits=DatabaseLimits(statement=statement, pool=pool))


def _runner(settings: Settings, clock: Clock) -> ProcessRunner:
    try:
        return ProcessRunner(
            RunnerOptions(
                data_dir=settings.data_dir,
                access=GitAccess(
                    settings.git_url,
                    settings.git_token,
                    settings.git_ssh_key,
                    {name: os.environ[name] for name in INHERITED if name in os.environ},
                    settings.local_repositories,
                ),
                clock=clock,
                run_user=None if settings.run_user is None else RunUser.named(settings.run_user),
                extra_env=dict(settings.run_env),
                timing=Timing(lease=settings.lease),
                git_timeout=settings.git_timeout,
                cache_bytes=settings.git_cache_size,
                cache_age=settings.git_cache_age,
            )
        )
    except ValueError as error:
        raise SettingsInvalid([str(error)]) from error
    except OSError as error:
        where = Path(settings.data_dir).absolute()
        raise SettingsInvalid(
            [f"BELLRINGER_DATA_DIR: {where} cannot be used: {error.strerror}"]
        ) from error


def _worker(
    settings: Settings,
    database: Database,
    for_leases: Database,
    runner: ProcessRunner,
    clock: Clock,
) -> tuple[Worker, WorkerMetrics]:
    name = new_node_id("worker")
    ledger = RunLedger(database, max_attempts=settings.run_attempts)
    metrics = WorkerMetrics()
    metrics.look_up(lambda: database.retries + for_leases.retries, ledger.queue)
    worker = Worker(
        name,
        ledger,
        RunLedger(for_leases),
        RunLogs(database),
        runner,
        Presence(NodeRegistry(database), name, "worker", settings.worker_group, clock),
        clock,
        WorkerOptions(
            places=settings.worker_concurrency,
            lease=settings.lease,
            drain=settings.drain,
            timeout=settings.run_timeout,
        ),
        metrics,
    )
    return worker, metrics


def _schema_fits(database: Database, orders: "queue.SimpleQueue[object]") -> bool:
    """Wait until the database answers; False if told to stop first. Raises SchemaOutOfDate."""
    said = False
    while True:
        try:
            require_schema(database)
            return True
        except DatabaseUnavailable as error:
            if not said:
                log.warning("database-away", reason=error.reason)
            said = True
        if _ordered_within(ASK_AGAIN, orders):
            return False


def _ordered_within(seconds: float, orders: "queue.SimpleQueue[object]") -> bool:
    try:
        orders.get(timeout=seconds)
    except queue.Empty:
        return False
    return True
