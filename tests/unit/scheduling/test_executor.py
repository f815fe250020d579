"""The executor: what falls due in one pass is handed on together, and never dropped."""

from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.background import BackgroundScheduler

from app import cron
from app.scheduling.executor import GatheringExecutor
from app.scheduling.trigger import CronExpressionTrigger
from app.scheduling.values import Due
from tests.support.waiting import until


def test_all_jobs_of_a_pass_come_in_one_piece_with_their_instants() -> None:
    passes: list[list[Due]] = []
    scheduler = BackgroundScheduler(
        timezone="UTC",
        executors={"default": GatheringExecutor(lambda due: passes.append(list(due)))},
        job_defaults={"coalesce": True, "misfire_grace_time": None},
    )
    now = datetime.now(UTC)
    last_minute = now.replace(second=0, microsecond=0)
    expressions = [f"{n},* * * * *" for n in range(50)]
    for expression in expressions:
        scheduler.add_job(
            lambda since: None,
            CronExpressionTrigger(cron.parse(expression)),
            args=(last_minute,),
            id=expression,
            # Many minutes were passed over, as after a long pause: only the latest comes.
            next_run_time=last_minute - timedelta(days=30),
        )
    scheduler.start()
    until(lambda: passes)
    scheduler.shutdown()
    assert {(d.expression, d.since) for d in passes[0]} == {(e, last_minute) for e in expressions}
    instants = {d.due_at for d in passes[0]}
    assert len(instants) == 1 and instants.pop() >= last_minute
    assert len(passes[0]) == len(expressions)
