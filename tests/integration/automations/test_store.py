"""The contract of the store, on each database."""

import pytest
from sqlalchemy import text

from app.automations.reading import AutomationFilter
from app.automations.revision import revision_of
from app.automations.store import ANY, AutomationStore
from app.automations.values import Target
from app.db import Database
from app.errors import AlreadyExists, InvalidInput, NotFound, StaleRevision
from tests.support.drafts import draft

OTHER = "f" * 64


@pytest.fixture
def store(database: Database) -> AutomationStore:
    return AutomationStore(database)


def ids(store: AutomationStore, **filters: str) -> list[str]:
    found = [a.id for a in store.list(where=AutomationFilter(**filters))]
    assert store.count(AutomationFilter(**filters)) == len(found)
    return found


# --- reading ----------------------------------------------------------------------------------------


def test_nothing_is_there_at_first(store: AutomationStore) -> None:
    assert store.list() == []
    assert store.count() == 0
    assert store.get("nightly") is None
    assert store.revision("nightly") is None


def test_what_was_created_reads_back(store: AutomationStore) -> None:
    made = draft(
        "Bäckerei 🔔",
        {"z": "0 3 * * *", "a": " */5  * * * MON "},
        api=True,
        disabled={"m_-": "@daily".replace("@daily", "0 0 1 1 *")},
        description="a\tb\nc 'quoted' \"twice\" \\ %s :x /* -- ;",
    )
    created = store.create("nightly", made, "somebody")
    read = store.get("nightly")
    assert read == created
    assert read.draft == made
    assert read.revision == revision_of(made) == store.revision("nightly")
    assert [t.id for t in read.draft.schedules] == ["a", "m_-", "z"]
    assert read.draft.schedules[0].expression == "*/5 * * * MON"
    assert [t.enabled for t in read.draft.schedules] == [True, False, True]


@pytest.mark.parametrize("description", [None, "", " ", "🔔" * 100_000])
def test_a_description_is_kept_apart_from_none(store: AutomationStore, description) -> None:
    store.create("a", draft(description=description), "x")
    assert store.get("a").draft.description == description


@pytest.mark.parametrize("api", [True, False])
def test_api_enablement_and_no_schedules(store: AutomationStore, api: bool) -> None:
    store.create("a", draft(api=api), "x")
    read = store.get("a").draft
    assert read.api_enabled is api
    assert read.schedules == ()
    assert store.list()[0].draft == read


def test_the_list_is_sorted_by_byte_and_pages_by_key(store: AutomationStore) -> None:
    names = ["b", "a-b", "a", "ab", "a-", "a0", "0", "z9"]
    for name in names:
        store.create(name, draft(name, {"t2": "0 1 * * *", "t1": "0 2 * * *"}), "x")
    assert [a.id for a in store.list()] == sorted(names)
    walked: list[str] = []
    while page := store.list(after=walked[-1] if walked else None, limit=3):
        assert len(page) <= 3
        assert all([t.id for t in a.draft.schedules] == ["t1", "t2"] for a in page)
        walked += [a.id for a in page]
    assert walked == sorted(names)
    assert [a.id for a in store.list(after="a-zzz", limit=1)] == ["a0"]
    assert store.list(after="zz") == []


def test_a_limit_counts_automations_and_not_triggers(store: AutomationStore) -> None:
    for name in ("a", "b", "c"):
        store.create(name, draft(schedules={f"t{n}": "0 1 * * *" for n in range(5)}), "x")
    assert [len(a.draft.schedules) for a in store.list(limit=2)] == [5, 5]


@pytest.mark.parametrize("after", ["a\0", "\ud800"])
def test_an_after_that_no_column_could_hold_is_refused(store: AutomationStore, after: str) -> None:
    with pytest.raises(InvalidInput):
        store.list(after=after)


# --- filters ----------------------------------------------------------------------------------------


def test_a_repository_filters_exactly(store: AutomationStore) -> None:
    store.create("a", draft(target=Target("acme/shop", "main", "x")), "x")
    store.create("b", draft(target=Target("acme/Shop", "main", "x")), "x")
    store.create("c", draft(target=Target("acme/shop2", "main", "x")), "x")
    assert ids(store, repository="acme/shop") == ["a"]
    assert ids(store, repository="acme/") == []
    assert ids(store, repository="acme/%") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NIGHT", ["other", "nightly-1"]),
        ("night", ["other", "nightly-1"]),
        ("ly-1", ["nightly-1"]),
        ("LY-1", ["nightly-1"]),
        ("100%", ["percent"]),
        ("%", ["percent"]),
        ("_", ["under"]),
        ("/", ["slash"]),
        ("\\", ["back"]),
        ("'", ["quote"]),
        ("Éclair", ["eclair"]),
        ("Écl", ["eclair"]),
        ("ÉCLAIR", ["eclair"]),
        ("日本", ["kanji"]),
        ("🔔", ["kanji"]),
        (" spaced ", ["space"]),
        ("", None),
        ("nothing like it", []),
    ],
)
def test_a_text_is_found_literally_in_id_or_name_in_either_case(
    store: AutomationStore, text: str, found: list[str] | None
) -> None:
    names = {
        "nightly-1": "x",
        "other": "The Nightly build",
        "percent": "100% sure",
        "under": "a_b",
        "slash": "a/b",
        "back": "a\\b",
        "quote": "it's",
        "eclair": "Éclair",
        "kanji": "日本 🔔",
        "space": "a spaced b",
    }
    for key, name in names.items():
        store.create(key, draft(name), "x")
    assert ids(store, text=text) == sorted(names if found is None else found)


def test_a_type_of_trigger_filters(store: AutomationStore) -> None:
    store.create("api", draft(api=True), "x")
    store.create("both", draft(schedules={"a": "0 1 * * *", "b": "0 1 * * *"}, api=True), "x")
    store.create("neither", draft(), "x")
    store.create("schedule", draft(disabled={"a": "0 1 * * *"}), "x")
    assert ids(store, trigger_type="api") == ["api", "both"]
    assert ids(store, trigger_type="schedule") == ["both", "schedule"]
    assert ids(store, trigger_type="api", text="both") == ["both"]
    with pytest.raises(InvalidInput):
        AutomationFilter(trigger_type="plugin2")


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "\udfff"])
def test_a_filter_that_no_column_could_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        AutomationFilter(text=text, repository=text, trigger_type=text)
    assert [v.pointer for v in caught.value.violations] == ["/repository", "/q", "/trigger"]


# --- writing ----------------------------------------------------------------------------------------


def test_an_id_is_taken_once(store: AutomationStore) -> None:
    first = store.create("a", draft("first", {"t": "0 1 * * *"}), "x")
    with pytest.raises(AlreadyExists):
        store.create("a", draft("second"), "x")
    with pytest.raises(AlreadyExists):
        store.create("a", first.draft, "x")
    assert store.get("a") == first
    assert len(store.history("a")) == 1


@pytest.mark.parametrize("wrong", ["", "A", "a" * 64, "a\n", "é", "a\0", "\ud800"])
def test_a_wrong_id_is_never_stored(store: AutomationStore, wrong: str) -> None:
    with pytest.raises(InvalidInput):
        store.create(wrong, draft(), "x")
    with pytest.raises(InvalidInput):
        store.replace(wrong, ANY, draft(), "x")
    assert store.count() == 0


def test_a_replace_from_the_current_revision_replaces_all(store: AutomationStore) -> None:
    old = store.create("a", draft("old", {"x": "0 1 * * *", "y": "0 2 * * *"}, api=True), "x")
    new = draft("new", {"y": "0 9 * * *", "z": "0 3 * * *"}, description="d")
    replaced = store.replace("a", frozenset({OTHER, old.revision}), new, "x")
    assert replaced.changed
    assert replaced.automation.revision == revision_of(new)
    assert store.get("a") == replaced.automation
    assert store.get("a").draft == new


def test_a_replace_to_no_triggers_leaves_none(store: AutomationStore) -> None:
    store.create("a", draft(schedules={"x": "0 1 * * *"}, api=True), "x")
    store.replace("a", ANY, draft(), "x")
    assert store.get("a").draft == draft()


def test_a_stale_replace_changes_nothing(store: AutomationStore) -> None:
    old = store.create("a", draft("old", {"x": "0 1 * * *"}), "x")
    for expected in (frozenset({OTHER}), frozenset()):
        with pytest.raises(StaleRevision) as caught:
            store.replace("a", expected, draft("new"), "x")
        assert caught.value.actual == old.revision
        assert caught.value.expected == expected
    assert store.get("a") == old
    assert len(store.history("a")) == 1


def test_a_replace_by_what_is_there_succeeds_whatever_was_expected(store: AutomationStore) -> None:
    old = store.create("a", draft("old", {"x": "0 1 * * *"}), "x")
    for expected in (frozenset({OTHER}), frozenset(), frozenset({old.revision}), ANY):
        replaced = store.replace("a", expected, draft("old", {"x": " 0 1 * * * "}), "x")
        assert not replaced.changed
        assert replaced.automation == old
    assert len(store.history("a")) == 1


def test_what_is_not_there_is_not_found(store: AutomationStore) -> None:
    for expected in (ANY, frozenset({OTHER}), frozenset()):
        with pytest.raises(NotFound):
            store.replace("a", expected, draft(), "x")
        with pytest.raises(NotFound):
            store.delete("a", expected, "x")
    assert store.count() == 0
    assert store.history("a") == []


def test_a_delete_takes_the_triggers_along(store: AutomationStore, database: Database) -> None:
    kept = store.create("b", draft(schedules={"x": "0 1 * * *"}), "x")
    old = store.create("a", draft(schedules={"x": "0 1 * * *"}), "x")
    with pytest.raises(StaleRevision):
        store.delete("a", frozenset({OTHER}), "x")
    store.delete("a", frozenset({OTHER, old.revision}), "x")
    assert store.list() == [kept]
    for table in ("automation_triggers", "automation_trigger_arms"):
        count = text(f"SELECT count(*) FROM {table}")
        assert database.read(lambda c, q=count: c.scalar(q)) == 1
    store.delete("b", ANY, "x")
    assert store.list() == []


def test_an_id_may_be_used_again_after_a_delete(store: AutomationStore) -> None:
    store.create("a", draft("old", {"x": "0 1 * * *"}), "x")
    store.delete("a", ANY, "x")
    store.create("a", draft("new"), "x")
    assert store.get("a").draft == draft("new")


def test_a_hundred_schedules_in_one_automation(store: AutomationStore) -> None:
    many = draft(schedules={f"t{n:03}": f"{n % 60} 1 * * *" for n in range(100)})
    store.create("a", many, "x")
    assert store.get("a").draft == many


# --- atomicity --------------------------------------------------------------------------------------

POISON = {
    "sqlite": (
        "CREATE TRIGGER poison BEFORE INSERT ON automation_triggers WHEN NEW.id = 'poison' "
        "BEGIN SELECT RAISE(ABORT, 'no poison'); END",
        "DROP TRIGGER poison",
    ),
    "postgresql": (
        "ALTER TABLE automation_triggers ADD CONSTRAINT poison CHECK (id <> 'poison')",
        "ALTER TABLE automation_triggers DROP CONSTRAINT poison",
    ),
    "mariadb": (
        "CREATE TRIGGER poison BEFORE INSERT ON automation_triggers FOR EACH ROW "
        "IF NEW.id = 'poison' THEN SIGNAL SQLSTATE '45000'; END IF",
        "DROP TRIGGER poison",
    ),
}


def test_a_failed_child_insert_leaves_the_old_aggregate_whole(
    store: AutomationStore, database: Database
) -> None:
    old = store.create("a", draft("old", {"x": "0 1 * * *"}), "x")
    make, drop = POISON[database.dialect]
    poisoned = draft("new", {"poison": "0 1 * * *", "before": "0 1 * * *"})
    database.write(lambda c: c.exec_driver_sql(make))
    try:
        with pytest.raises(InvalidInput, match="refuses"):
            store.replace("a", ANY, poisoned, "x")
        with pytest.raises(InvalidInput, match="refuses"):
            store.create("b", poisoned, "x")
        assert store.list() == [old]
        assert len(store.history("a")) == 1
        assert store.history("b") == []
    finally:
        database.write(lambda c: c.exec_driver_sql(drop))
    store.replace("a", ANY, poisoned, "x")
    assert store.get("a").draft == poisoned
