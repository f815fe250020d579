"""A scheduler process for tests: the product's own parts on a clock that runs fast.

Called with a database URL, the clock's epoch (seconds since 1970, on the machine's clock), the instant
that it stands for, and how many of its seconds pass in one.
"""

import signal
import sys
import threading
import time
from datetime import UTC, datetime, timedelta, tzinfo

import apscheduler.schedulers.base

from app.db import Database, DatabaseLimits
from app.nodes.registry import NodeRegistry
from app.scheduling.claiming import ClaimingOptions
from app.scheduling.service import SchedulerOptions, SchedulerService


class FastClock:
    """Shows, in every process alike, ``start`` plus ``speed`` times what passed since ``epoch``."""

    def __init__(self, epoch: float, start: datetime, speed: float) -> None:
        self.epoch, self.start, self.speed = epoch, start, speed

    def now(self) -> datetime:
        return self.start + timedelta(seconds=(time.time() - self.epoch) * self.speed)

    def monotonic(self) -> float:
        return time.monotonic()


def on_clock(clock: FastClock) -> None:
    """Have APScheduler, which reads the machine's clock itself, look at ``clock``."""

    class Shown(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return clock.now()

    apscheduler.schedulers.base.datetime = Shown


def main(url: str, epoch: str, start: str, speed: str, catch_up: str) -> None:
    clock = FastClock(float(epoch), datetime.fromisoformat(start), float(speed))
    on_clock(clock)
    limits = DatabaseLimits(connect=1, statement=3, lock=1, idle_transaction=2, write=3)
    database = Database(url, limits=limits, clock=clock)
    service = SchedulerService(
        database,
        NodeRegistry(database),
        clock,
        SchedulerOptions(
            catch_up=timedelta(seconds=float(catch_up)),
            interval=0.05,
            heartbeat=0.5,
            claiming=ClaimingOptions(sweeps=(0.2,)),
        ),
    )
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    service.start()
    while not stop.wait(0.1):
        pass
    service.stop()


if __name__ == "__main__":
    assert datetime.now(UTC)
    main(*sys.argv[1:])
