"""The page for DBAs says what the schema is."""

import re
from pathlib import Path

from sqlalchemy import CheckConstraint
from sqlalchemy.dialects import sqlite

from app.automations.store import AutomationStore
from app.db import Database
from app.models import metadata
from tests.support.schema import through_shell

PAGE = (Path(__file__).parents[2] / "docs" / "database.md").read_text("utf-8")


def first_cells(heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_every_table_stands_on_the_page() -> None:
    assert sorted(first_cells("Tables")) == sorted(metadata.tables)


def test_every_check_stands_on_the_page() -> None:
    preparer = sqlite.dialect().identifier_preparer
    checks = [
        str(preparer.format_constraint(constraint))
        for table in metadata.sorted_tables
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    ]
    assert sorted(first_cells("CHECKs")) == sorted(checks)


def test_the_example_for_writing_by_hand_works(database: Database) -> None:
    section = PAGE.split("## Writing by hand\n")[1]
    example = section[section.index("    BEGIN;") : section.index("COMMIT;") + len("COMMIT;\n")]
    through_shell(database.url, example)
    (made,) = AutomationStore(database).list()
    assert made.id == "nightly"
    assert [t.expression for t in made.draft.schedules] == ["0 3 * * *"]
