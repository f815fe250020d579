"""Everything at once: schedulers and workers that are killed, stopped and continued as they work."""

import sys
from pathlib import Path

from app.automations.values import Draft, Target
from tests.support.chaos import Chaos, Process, all_ended, api_runs, check, workflow
from tests.support.scheduler_nodes import Nodes
from tests.support.scheduling import EVERY_MINUTE
from tests.support.waiting import processes_with, until
from tests.support.workers import fleet

TRIGGERS = 2
SECONDS = 10.0


def test_nothing_is_lost_repeated_or_left_stuck(
    nodes: Nodes, database_url: str, tmp_path: Path
) -> None:
    world, diary = nodes.world, tmp_path / "diary"
    for number in range(TRIGGERS):
        world.save(f"a{number}", EVERY_MINUTE)
    target = Target("acme/shop", "main", "release")
    world.store.create("by-call", Draft("By call", None, target, True, ()), "test")
    with fleet(tmp_path / "workers", tmp_path / "git") as workers:
        workers.workflow(workflow(diary))

        def scheduler() -> Process:
            return nodes.start()[0]

        def worker() -> Process:
            return workers.start(database_url, lease=2, worker_concurrency=4).process

        chaos = Chaos([*[scheduler] * 3, *[worker] * 3], seed=1201, longest_stop=3)
        try:
            chaos.torment(SECONDS, api_runs(world, "by-call"))
            chaos.end(scheduler)
            until(lambda: all_ended(world), 60)
            chaos.end(worker)
        finally:
            chaos.fail()
        until(lambda: not processes_with(str(workers.directory)))
    counts = check(world, diary, TRIGGERS)
    sys.stdout.write(f"{world.database.dialect}: { ({**chaos.counts, **counts}) }\n")
    assert counts["succeeded"] and counts["occurrences fired"] > 1
