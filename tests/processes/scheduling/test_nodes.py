"""Schedulers as processes: several at once, killed, stopped, cut off."""

import random
import signal
import time
from datetime import timedelta

import pytest
from sqlalchemy import make_url, text

from tests.support.proxy import proxy_to
from tests.support.scheduler_nodes import SPEED, Nodes, check_that_nothing_is_lost
from tests.support.scheduling import EVERY_MINUTE
from tests.support.waiting import until

MINUTE = timedelta(minutes=1)


def fired(nodes: Nodes) -> int:
    return sum(o.state == "fired" for o in nodes.world.occurrences())


def registered(nodes: Nodes) -> int:
    return nodes.world.database.read(lambda c: c.scalar(text("SELECT count(*) FROM nodes")))


@pytest.mark.parametrize("count", [2, 5])
def test_schedulers_share_out_each_occurrence_once(nodes: Nodes, count: int) -> None:
    for number in range(10):
        nodes.world.save(f"a{number}", EVERY_MINUTE)
    nodes.start(count)
    # Told to stop before it listens to signals, a process ends as any other would.
    until(lambda: registered(nodes) == count, 60)
    until(lambda: fired(nodes) >= 4, 40)
    nodes.end()
    assert check_that_nothing_is_lost(nodes.world) >= 4
    assert all(o.runs == 10 for o in nodes.world.occurrences() if o.state == "fired")
    assert {p.returncode for p in nodes.processes} == {0}
    assert registered(nodes) == 0


def test_killed_schedulers_lose_and_repeat_nothing(nodes: Nodes) -> None:
    for number in range(20):
        nodes.world.save(f"a{number}", EVERY_MINUTE)
    nodes.start(2)
    until(lambda: fired(nodes) >= 1, 30)
    for _ in range(4):
        time.sleep(random.uniform(0.1, 0.8))
        nodes.kill_one()
        nodes.start()
    before = fired(nodes)
    until(lambda: fired(nodes) > before + 1, 40)
    nodes.end()
    total = check_that_nothing_is_lost(nodes.world)
    assert total >= 5


def test_definitions_that_change_while_schedulers_fire(nodes: Nodes) -> None:
    """Each run bears a trigger's expression and an instant after it was armed, and there is one each."""
    nodes.world.save("steady", EVERY_MINUTE)
    nodes.start(2)
    until(lambda: fired(nodes) >= 1, 30)
    for number in range(30):
        nodes.world.save(f"a{number % 7}", EVERY_MINUTE, f"*/{number % 5 + 1} * * * *")
        if number % 3 == 0:
            nodes.world.save(f"a{number % 7}", EVERY_MINUTE, enabled=False)
    before = fired(nodes)
    until(lambda: fired(nodes) > before + 2, 40)
    nodes.end()
    runs = [r for r in nodes.world.runs() if r.state == "queued"]
    assert len({(r.automation_id, r.trigger_id, r.due_at) for r in runs}) == len(runs)
    steady = [r.due_at for r in runs if r.automation_id == "steady"]
    gone_by = {
        o.due_at
        for o in nodes.world.occurrences()
        if o.expression == EVERY_MINUTE and o.state == "fired"
    }
    assert set(steady) == gone_by


def test_created_half_a_second_before_its_minute_it_fires(nodes: Nodes) -> None:
    """An expression that no node has seen before, half a second of the clock before it is due."""
    nodes.world.save("steady", EVERY_MINUTE)
    nodes.start(2)
    until(lambda: fired(nodes) >= 1, 30)
    for attempt in range(3):
        now = nodes.clock.now()
        at = now.replace(second=0, microsecond=0) + 2 * MINUTE
        wait = (at - timedelta(seconds=0.5) - now).total_seconds() / SPEED
        time.sleep(wait)
        nodes.world.save(f"brand-new-{attempt}", f"{at.minute} {at.hour} * * *")
        armed = nodes.world.database.read(
            lambda c, a=attempt: c.scalar(
                text(
                    "SELECT min(armed_at) FROM automation_trigger_arms "
                    f"WHERE automation_id = 'brand-new-{a}'"
                )
            )
        )
        if str(armed)[:19] < str(at)[:19]:
            until(lambda a=attempt, at=at: (f"brand-new-{a}", at) in nodes.world.fired(), 20)
            return
    pytest.skip("the machine was too busy to create an automation within half a second")


def test_stopped_for_minutes_it_catches_up_and_says_what_it_missed(nodes: Nodes) -> None:
    nodes.world.save("nightly", EVERY_MINUTE)
    (node,) = nodes.start()
    until(lambda: fired(nodes) >= 2, 30)
    node.send_signal(signal.SIGSTOP)
    time.sleep(2)
    before = fired(nodes)
    node.send_signal(signal.SIGCONT)
    until(lambda: nodes.world.runs("missed"), 20)
    until(lambda: fired(nodes) > before, 20)
    nodes.end()
    check_that_nothing_is_lost(nodes.world)
    assert sum(o.state == "missed" for o in nodes.world.occurrences()) >= 3


def test_stopped_in_the_middle_of_a_claim_it_holds_up_nobody_for_long(nodes: Nodes) -> None:
    """A row that the claim waits for is locked, the node is stopped, and then the row is let go."""
    world = nodes.world
    if world.database.dialect == "sqlite":
        pytest.skip("on SQLite writers wait, as is documented")
    world.save("nightly", EVERY_MINUTE)
    (stopped,) = nodes.start(catch_up=86_400)
    until(lambda: fired(nodes) >= 1, 30)
    with world.database.writer.connect() as holder:
        # The occurrence that comes next, held as another claim would hold it.
        newest = max(o.due_at for o in world.occurrences())
        held = newest + 2 * MINUTE
        at = held if world.database.dialect == "postgresql" else held.replace(tzinfo=None)
        holder.execute(
            text(
                "INSERT INTO schedule_occurrences "
                "(expression, due_at, state, claimed_at, node, runs) "
                "VALUES (:e, :at, 'fired', :at, 'test', 0)"
            ),
            {"e": EVERY_MINUTE, "at": at},
        )
        until(lambda: _waits_for_a_lock(nodes), 20)
        stopped.send_signal(signal.SIGSTOP)
        holder.rollback()
    nodes.start(catch_up=86_400)
    until(lambda: fired(nodes) >= 3, 40)
    stopped.send_signal(signal.SIGCONT)
    until(lambda: fired(nodes) >= 5, 40)
    nodes.end()
    check_that_nothing_is_lost(world)


def _waits_for_a_lock(nodes: Nodes) -> bool:
    query = {
        "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
        "AND datname = current_database()",
        "mariadb": "SELECT count(*) FROM information_schema.innodb_trx t "
        "JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id "
        "WHERE t.trx_state = 'LOCK WAIT' AND p.db = database()",
    }[nodes.world.database.dialect]
    # MariaDB looks again only when nobody has asked for a tenth of a second.
    time.sleep(0.15)
    return bool(nodes.world.database.read(lambda c: c.scalar(text(query))))


@pytest.mark.parametrize("how", ["cut", "hang"])
def test_cut_off_from_the_database_it_goes_on_when_it_is_back(nodes: Nodes, how: str) -> None:
    url = make_url(nodes.url)
    if url.host is None or url.port is None:
        if nodes.world.database.dialect == "sqlite":
            pytest.skip("nothing lies between SQLite and its file")
        url = url.set(port={"postgresql": 5432, "mariadb": 3306}[nodes.world.database.dialect])
    nodes.world.save("nightly", EVERY_MINUTE)
    with proxy_to(str(url.host), int(url.port or 0)) as proxy:
        through = url.set(host="127.0.0.1", port=proxy.port)
        (node,) = nodes.start(url=through.render_as_string(hide_password=False), catch_up=86_400)
        until(lambda: fired(nodes) >= 1, 30)
        getattr(proxy, how)()
        time.sleep(2)
        before = fired(nodes)
        proxy.mend()
        until(lambda: fired(nodes) >= before + 2, 40)
        assert node.poll() is None
        nodes.end()
    check_that_nothing_is_lost(nodes.world)
    assert nodes.world.runs("missed")
