"""Rows are judged again whenever they are read: what SQL lets pass, the domain does not."""

from collections.abc import Mapping

import pytest

from app.automations.store import ANY, AutomationStore
from app.db import Database
from app.errors import StoredAutomationInvalid
from tests.support.drafts import draft
from tests.support.rows import Sql, insert_row

PARENTS: Mapping[str, tuple[Mapping[str, object], str, str]] = {
    "blank name": ({"name": "\u00a0\t"}, "/name", "not blank"),
    "control in name": ({"name": "a\tb"}, "/name", "control"),
    "control in description": ({"description": "a\x07"}, "/description", "control"),
    "no slash": ({"target_repository": "acme"}, "/target/repository", "owner/repo"),
    "two slashes": ({"target_repository": "a/b/c"}, "/target/repository", "owner/repo"),
    "owner": ({"target_repository": "-a/b"}, "/target/repository", "owner"),
    "dots": ({"target_repository": "a/.."}, "/target/repository", "name"),
    "ref": ({"target_ref": "a..b"}, "/target/ref", "'..'"),
    "lock": ({"target_ref": "a.lock"}, "/target/ref", ".lock"),
    "workflow": ({"target_workflow": "../../etc/passwd"}, "/target/workflow", "'..'"),
    "newline": ({"target_workflow": "a\n"}, "/target/workflow", "characters"),
}
TRIGGERS: Mapping[str, tuple[Mapping[str, object], str, str]] = {
    "expression": ({"expression": "61 * * * *"}, "/triggers/1/expression", "minute"),
    "not cron": ({"expression": "whenever"}, "/triggers/1/expression", "five"),
    "duplicate of the API's": ({"id": "manual"}, "/triggers/1/id", "twice"),
}
OF_SQLITE: Mapping[str, tuple[str, Mapping[str, object], str]] = {
    "name": ("automations", {"name": Sql("x'6162'")}, "/name"),
    "name, not ASCII": ("automations", {"name": Sql("x'ff'")}, "/name"),
    "description": ("automations", {"description": Sql("x'6162'")}, "/description"),
    "repository": ("automations", {"target_repository": Sql("x'612f62'")}, "/target/repository"),
    "ref": ("automations", {"target_ref": Sql("x'61'")}, "/target/ref"),
    "workflow": ("automations", {"target_workflow": Sql("x'61'")}, "/target/workflow"),
    "revision": ("automations", {"revision": Sql("CAST('" + "0" * 64 + "' AS BLOB)")}, "/revision"),
    "expression": (
        "automation_triggers",
        {"expression": Sql("CAST('* * * * *' AS BLOB)")},
        "/triggers/1/expression",
    ),
    "latin-1 name": ("automations", {"name": Sql("CAST(x'4dfc6c6c6572' AS TEXT)")}, "/name"),
    "NUL in a name": ("automations", {"name": Sql("'a' || char(0) || 'b'")}, "/name"),
    "NUL in an expression": (
        "automation_triggers",
        {"expression": Sql("'0 3 * * *' || char(0)")},
        "/triggers/1/expression",
    ),
}


def check_refused(database: Database, pointer: str, said: str = "") -> None:
    store = AutomationStore(database)
    fine = store.create("z-fine", draft(), "x")
    for read in (
        lambda: store.get("nightly"),
        store.list,
        lambda: store.list(limit=1),
        lambda: store.list(after="a"),
    ):
        with pytest.raises(StoredAutomationInvalid) as caught:
            read()
        assert caught.value.automation_id == "nightly"
        assert [v.pointer for v in caught.value.violations] == [pointer]
        assert said in caught.value.violations[0].detail
        assert "'nightly'" in str(caught.value)
    assert store.get("z-fine") == fine
    assert store.revision("nightly") is not None
    store.delete("nightly", ANY, "x")
    assert store.list() == [fine]
    (entry,) = store.history("nightly")
    assert entry.action == "delete"


@pytest.mark.parametrize("case", sorted(PARENTS))
def test_a_bad_parent_is_named_with_its_rule_and_can_be_deleted(
    database: Database, case: str
) -> None:
    row, pointer, said = PARENTS[case]
    database.write(lambda c: insert_row(c, "automations", **row))
    check_refused(database, pointer, said)


@pytest.mark.parametrize("case", sorted(TRIGGERS))
def test_a_bad_trigger_is_named_with_its_rule_and_can_be_deleted(
    database: Database, case: str
) -> None:
    row, pointer, said = TRIGGERS[case]

    def work(connection) -> None:
        insert_row(connection, "automations", api_enabled=1)
        insert_row(connection, "automation_triggers", **row)

    database.write(work)
    check_refused(database, pointer, said)


@pytest.mark.parametrize("case", sorted(OF_SQLITE))
def test_what_only_sqlite_stores_is_refused_too(sqlite_database: Database, case: str) -> None:
    table, row, pointer = OF_SQLITE[case]

    def work(connection) -> None:
        insert_row(connection, "automations", **(row if table == "automations" else {}))
        insert_row(connection, "automation_triggers", **(row if table != "automations" else {}))

    sqlite_database.write(work)
    check_refused(sqlite_database, pointer)


def test_all_broken_rules_of_a_row_come_together(database: Database) -> None:
    def work(connection) -> None:
        insert_row(connection, "automations", name="\t", target_ref="-", target_workflow="/")
        insert_row(connection, "automation_triggers", id="a", expression="x")
        insert_row(connection, "automation_triggers", id="b", expression="y")

    database.write(work)
    with pytest.raises(StoredAutomationInvalid) as caught:
        AutomationStore(database).get("nightly")
    assert [v.pointer for v in caught.value.violations] == [
        "/name",
        "/target/ref",
        "/target/workflow",
        "/triggers/1/expression",
        "/triggers/2/expression",
    ]


def test_a_replace_mends_a_bad_row(database: Database) -> None:
    database.write(lambda c: insert_row(c, "automations", target_ref="-"))
    store = AutomationStore(database)
    store.replace("nightly", ANY, draft("mended"), "x")
    assert store.get("nightly").draft == draft("mended")


def test_an_expression_with_spare_spaces_reads_back_canonical(database: Database) -> None:
    def work(connection) -> None:
        insert_row(connection, "automations")
        insert_row(connection, "automation_triggers", expression=" 0  3 * * * ")

    database.write(work)
    (trigger,) = AutomationStore(database).get("nightly").draft.schedules
    assert trigger.expression == "0 3 * * *"
