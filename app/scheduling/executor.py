"""The APScheduler executor: gathers what falls due in one pass, and hands it on together."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from apscheduler.events import EVENT_JOB_SUBMITTED, JobSubmissionEvent
from apscheduler.executors.base import BaseExecutor

from app.scheduling.values import Due


class GatheringExecutor(BaseExecutor):  # type: ignore[misc]
    """Receives the instants for which jobs were scheduled, and runs no job.

    APScheduler submits the jobs of a pass one by one and announces them all after the last; the
    first announcement is what hands them on. Jobs carry the ``since`` of their expression.
    """

    def __init__(self, hand_on: Callable[[Sequence[Due]], None]) -> None:
        super().__init__()
        self._hand_on = hand_on
        self._gathered: list[Due] = []

    def start(self, scheduler: Any, alias: str) -> None:
        """Listen for the end of each pass."""
        super().start(scheduler, alias)
        scheduler.add_listener(self._pass_ended, EVENT_JOB_SUBMITTED)

    def submit_job(self, job: Any, run_times: list[datetime]) -> None:
        """Take down the instants of one job; there is no limit of instances, as nothing runs here."""
        self._do_submit_job(job, run_times)

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
        self._gathered += (Due(job.id, at.astimezone(UTC), *job.args) for at in run_times)

    def _pass_ended(self, _event: JobSubmissionEvent) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered:
            self._hand_on(gathered)
