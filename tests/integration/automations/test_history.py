"""History and arms: what each change leaves behind, on each database."""

from datetime import datetime

import pytest
from sqlalchemy import select, text

from app.automations.documents import read_draft
from app.automations.models import automation_trigger_arms as arms_table
from app.automations.store import ANY, AutomationStore
from app.db import Database
from tests.support.drafts import SteppedClock, draft
from tests.support.rows import insert_row

EVERY_HOUR = "0 * * * *"


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def clocked(database_url: str, clock: SteppedClock):
    database = Database(database_url, clock=clock)
    yield database
    database.close()


@pytest.fixture
def store(clocked: Database) -> AutomationStore:
    return AutomationStore(clocked)


def arms(database: Database) -> dict[tuple[str, str], datetime]:
    rows = database.read(lambda c: c.execute(select(arms_table)).all())
    return {(row.automation_id, row.trigger_id): row.armed_at for row in rows}


def test_every_change_is_recorded_and_outlives_the_automation(
    store: AutomationStore, clock: SteppedClock
) -> None:
    first, second = draft("first", {"t": EVERY_HOUR}, api=True), draft("second", description="d")
    created_at = clock.now()
    one = store.create("a", first, "alice")
    replaced_at = clock.step(microseconds=1)
    two = store.replace("a", ANY, second, "bob").automation
    deleted_at = clock.step(hours=1)
    store.delete("a", frozenset({two.revision}), "carol")
    entries = store.history("a")
    assert [(e.action, e.actor, e.revision, e.recorded_at) for e in entries] == [
        ("delete", "carol", two.revision, deleted_at),
        ("replace", "bob", two.revision, replaced_at),
        ("create", "alice", one.revision, created_at),
    ]
    assert [read_draft(e.document) for e in entries] == [second, second, first]
    numbers = [e.number for e in entries]
    assert numbers == sorted(numbers, reverse=True)
    assert store.history_entry("a", numbers[-1]) == entries[-1]
    assert store.history_entry("b", numbers[-1]) is None
    assert store.history_entry("a", 10**9) is None


def test_history_pages_by_number(store: AutomationStore) -> None:
    store.create("a", draft("0"), "x")
    for n in range(1, 5):
        store.replace("a", ANY, draft(str(n)), "x")
    store.create("other", draft(), "x")
    newest = store.history("a", limit=2)
    rest = store.history("a", before=newest[-1].number)
    assert [e.document["name"] for e in [*newest, *rest]] == ["4", "3", "2", "1", "0"]


def test_numbers_go_on_after_a_purge(store: AutomationStore, clocked: Database) -> None:
    store.create("a", draft(), "x")
    (last,) = store.history("a")
    clocked.write(lambda c: c.execute(text("DELETE FROM automation_history")))
    store.replace("a", ANY, draft("new"), "x")
    assert store.history("a")[0].number > last.number


def test_back_to_an_earlier_revision_is_a_change(store: AutomationStore) -> None:
    one = store.create("a", draft("one"), "x")
    store.replace("a", ANY, draft("two"), "x")
    store.replace("a", ANY, draft("one"), "x")
    assert store.revision("a") == one.revision
    assert [e.document["name"] for e in store.history("a")] == ["one", "two", "one"]


def test_an_actor_of_any_script_is_kept(store: AutomationStore) -> None:
    store.create("a", draft(), "é🔔" * 100)
    assert store.history("a")[0].actor == "é🔔" * 100


# --- arms -------------------------------------------------------------------------------------------


def test_enabled_triggers_are_armed_and_disabled_ones_are_not(
    store: AutomationStore, clocked: Database, clock: SteppedClock
) -> None:
    store.create("a", draft(schedules={"on": EVERY_HOUR}, disabled={"off": EVERY_HOUR}), "x")
    assert arms(clocked) == {("a", "on"): clock.now()}


def test_what_stays_enabled_and_the_same_stays_armed_as_it_was(
    store: AutomationStore, clocked: Database, clock: SteppedClock
) -> None:
    same = {"same": EVERY_HOUR}
    store.create("a", draft(schedules={**same, "other": EVERY_HOUR, "off": EVERY_HOUR}), "x")
    before = clock.now()
    after = clock.step(minutes=5)
    store.replace(
        "a",
        ANY,
        draft(
            "renamed",
            {**same, "other": "1 * * * *", "new": EVERY_HOUR},
            disabled={"off": EVERY_HOUR},
        ),
        "x",
    )
    assert arms(clocked) == {("a", "same"): before, ("a", "other"): after, ("a", "new"): after}


def test_enabling_again_arms_anew(
    store: AutomationStore, clocked: Database, clock: SteppedClock
) -> None:
    store.create("a", draft(schedules={"t": EVERY_HOUR}), "x")
    store.replace("a", ANY, draft(disabled={"t": EVERY_HOUR}), "x")
    assert arms(clocked) == {}
    later = clock.step(minutes=5)
    store.replace("a", ANY, draft(schedules={"t": EVERY_HOUR}), "x")
    assert arms(clocked) == {("a", "t"): later}


def test_a_replace_that_changes_nothing_rearms_nothing(
    store: AutomationStore, clocked: Database, clock: SteppedClock
) -> None:
    store.create("a", draft(schedules={"t": EVERY_HOUR}), "x")
    before = clock.now()
    clock.step(minutes=5)
    store.replace("a", ANY, draft(schedules={"t": EVERY_HOUR}), "x")
    assert arms(clocked) == {("a", "t"): before}


def test_a_row_written_by_hand_without_an_arm_stays_without(
    store: AutomationStore, clocked: Database, clock: SteppedClock
) -> None:
    def by_hand(connection) -> None:
        insert_row(connection, "automations")
        for trigger in ("kept", "changed"):
            insert_row(connection, "automation_triggers", id=trigger, expression=EVERY_HOUR)

    clocked.write(by_hand)
    store.replace("nightly", ANY, draft("new", {"kept": EVERY_HOUR, "changed": "1 * * * *"}), "x")
    assert arms(clocked) == {("nightly", "changed"): clock.now()}


def test_rows_changed_by_hand_under_their_old_revision_are_mended_by_a_replace(
    store: AutomationStore, clocked: Database
) -> None:
    made = draft(schedules={"t": EVERY_HOUR})
    store.create("a", made, "x")
    clocked.write(lambda c: c.execute(text("UPDATE automations SET name = 'by hand'")))
    clocked.write(lambda c: c.execute(text("DELETE FROM automation_triggers")))
    assert store.replace("a", ANY, made, "x").changed
    assert store.get("a").draft == made
    assert [e.action for e in store.history("a")] == ["replace", "create"]
