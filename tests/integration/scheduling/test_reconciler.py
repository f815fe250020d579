"""Which jobs there are, from when they count, and what the node's row says."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection, text

from app.clock import Clock
from app.cron import Expression
from app.errors import DatabaseUnavailable
from app.nodes.registry import NodeRegistry
from app.scheduling.expressions import EnabledExpressions
from app.scheduling.metrics import SchedulerMetrics
from app.scheduling.reconciler import Reconciler
from app.scheduling.values import Due
from tests.support.scheduling import EVERY_MINUTE, NOON, DrivenClock, World

HOURLY = "0 * * * *"


class ListedJobs:
    """Keeps jobs in a dict: expression → from when it counts."""

    def __init__(self) -> None:
        self.since: dict[str, datetime] = {}

    def add(self, expression: str, parsed: Expression, since: datetime) -> None:
        assert expression not in self.since
        self.since[expression] = since

    def remove(self, expression: str) -> None:
        del self.since[expression]

    def wakeup(self) -> None:
        pass


class Node:
    """A reconciler that a test drives by hand."""

    def __init__(self, world: World, clock: Clock | None = None) -> None:
        self.jobs = ListedJobs()
        self.handed: list[Due] = []
        self.metrics = SchedulerMetrics()
        self.hindrance: str | None = None
        self.expressions = EnabledExpressions(world.database)
        self.registry = NodeRegistry(world.database)
        self.reconciler = Reconciler(
            self.expressions,
            self.jobs,
            self._hand_on,
            self.registry,
            "node",
            lambda: self.hindrance,
            self.metrics,
            clock or world.clock,
            interval=1,
            heartbeat=0,
        )

    def _hand_on(self, due: Sequence[Due]) -> None:
        self.handed += due

    def row(self):
        return self.registry.list()[0]


def test_there_is_one_job_per_distinct_enabled_expression(world: World) -> None:
    world.save("one", EVERY_MINUTE, HOURLY)
    world.save("two", EVERY_MINUTE)
    world.save("off", "5 5 5 5 5", enabled=False)
    node = Node(world)
    node.reconciler.reconcile()
    assert node.jobs.since == {EVERY_MINUTE: NOON, HOURLY: NOON}

    world.save("one", EVERY_MINUTE)
    world.save("two", "*/2 * * * *")
    node.reconciler.reconcile()
    assert set(node.jobs.since) == {EVERY_MINUTE, "*/2 * * * *"}

    world.save("two", "*/2 * * * *", enabled=False)
    world.execute("DELETE FROM automations WHERE id = 'one'")
    node.reconciler.reconcile()
    assert node.jobs.since == {}


def test_expressions_are_told_apart_by_byte(world: World) -> None:
    for number, expression in enumerate(("0 0 * * MON", "0 0 * * mon", "0 0 * * mon ")):
        world.dba_adds(f"a{number}", expression)
    assert len(EnabledExpressions(world.database).read()[1]) == 3


def test_a_new_expression_counts_from_the_read_before(world: World) -> None:
    node = Node(world)
    node.reconciler.reconcile()
    world.clock.forward(seconds=0.4)
    world.save("new", EVERY_MINUTE)
    world.clock.forward(seconds=0.6)
    node.reconciler.reconcile()
    assert node.jobs.since == {EVERY_MINUTE: NOON}


def test_a_definition_whose_write_was_open_for_long_counts_from_its_arm(world: World) -> None:
    """Armed before the last read, committed after it."""
    node = Node(world)
    world.clock.forward(seconds=10)
    node.reconciler.reconcile()
    world.clock.forward(seconds=-4)
    world.save("slow", EVERY_MINUTE)
    world.clock.forward(seconds=5)
    node.reconciler.reconcile()
    assert node.jobs.since[EVERY_MINUTE] == NOON + timedelta(seconds=6, microseconds=-1)


def test_what_was_due_last_is_handed_on_once_as_the_node_starts(world: World) -> None:
    world.save("one", EVERY_MINUTE, "30 11 * * *")
    node = Node(world)
    node.reconciler.reconcile()
    node.reconciler.reconcile()
    assert {(d.expression, d.due_at) for d in node.handed} == {
        (EVERY_MINUTE, NOON),
        ("30 11 * * *", NOON - timedelta(minutes=30)),
    }
    assert {d.since for d in node.handed} == {None}
    assert len(node.handed) == 2


def test_a_read_that_fails_leaves_the_jobs_and_loses_no_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.save("one", EVERY_MINUTE)
    node = Node(world)
    node.reconciler.reconcile()

    def away() -> None:
        raise DatabaseUnavailable("gone fishing")

    with monkeypatch.context() as patched:
        patched.setattr(node.expressions, "read", away)
        world.clock.forward(minutes=5)
        node.reconciler.reconcile()
        assert set(node.jobs.since) == {EVERY_MINUTE}
        assert "gone fishing" in str(node.reconciler.problem())
    world.save("two", HOURLY)
    node.reconciler.reconcile()
    assert node.jobs.since[HOURLY] == NOON
    assert node.reconciler.problem() is None


def test_an_invalid_expression_is_shown_and_the_others_fire(world: World) -> None:
    world.dba_adds("broken", "61 * * * *")
    world.save("sound", EVERY_MINUTE)
    node = Node(world)
    for _ in range(2):
        node.reconciler.reconcile()
        node.reconciler._beat()
    assert set(node.jobs.since) == {EVERY_MINUTE}
    assert node.metrics.registry.get_sample_value("bellringer_expressions_invalid") == 1
    assert node.metrics.registry.get_sample_value("bellringer_expressions") == 1
    assert "61 * * * *" in node.row().problem

    world.save("broken", HOURLY)
    node.reconciler.reconcile()
    node.reconciler._beat()
    assert node.row().problem is None
    assert set(node.jobs.since) == {EVERY_MINUTE, HOURLY}


def test_the_nodes_row_comes_back_and_says_what_hinders(world: World) -> None:
    node = Node(world)
    node.reconciler._beat()
    world.execute("DELETE FROM nodes")
    node.hindrance = "Claims fail: it is raining"
    node.reconciler._beat()
    assert node.row().problem == "Claims fail: it is raining"
    assert node.row().role == "scheduler"


def test_a_clock_that_is_set_back_lets_no_job_wait_for_the_old_time(world: World) -> None:
    world.save("one", EVERY_MINUTE)
    node = Node(world)
    node.reconciler.reconcile()
    node.reconciler._notice_step()
    world.clock.forward(hours=-2)
    node.reconciler._notice_step()
    assert node.jobs.since == {EVERY_MINUTE: NOON - timedelta(hours=2)}


def test_a_node_whose_clock_is_slow_fires_by_the_databases_clock(world: World) -> None:
    world.clock.forward(minutes=-1)
    world.save("one", EVERY_MINUTE, "30 * * * *")
    node = Node(world, DrivenClock(NOON - timedelta(hours=1)))
    node.reconciler.reconcile()
    node.handed.clear()
    for _ in range(121):
        world.clock.forward(seconds=1)
        node.reconciler.reconcile()
    assert [(d.expression, d.due_at) for d in node.handed] == [
        (EVERY_MINUTE, NOON),
        (EVERY_MINUTE, NOON + timedelta(minutes=1)),
    ]


def test_reading_the_expressions_does_not_read_every_trigger(world: World) -> None:
    """The plan goes from expression to expression on the index."""
    for number in range(300):
        world.dba_adds(f"a{number:03}", ("* * * * *", "0 * * * *")[number % 2])
    dialect = world.database.dialect
    table = "automation_triggers"
    world.execute(f"ANALYZE TABLE {table}" if dialect == "mariadb" else "ANALYZE")
    explain = "EXPLAIN QUERY PLAN " if dialect == "sqlite" else "EXPLAIN "
    query = str(EnabledExpressions(world.database)._query)

    def planned(connection: Connection) -> str:
        if dialect == "postgresql":
            # So small a table is read whole unless that is made dear.
            connection.execute(text("SET LOCAL enable_seqscan = off"))
        return "\n".join(str(tuple(row)) for row in connection.execute(text(explain + query)))

    plan = world.database.write(planned)
    wanted = {
        "sqlite": "COVERING INDEX ix_automation_triggers_enabled_expression",
        "postgresql": "Index Only Scan using ix_automation_triggers_enabled_expression",
        "mariadb": "ix_automation_triggers_enabled_expression",
    }
    assert wanted[dialect] in plan
    if dialect == "mariadb":
        assert "Using index" in plan
