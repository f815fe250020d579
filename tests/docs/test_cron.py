"""The examples of ``docs/cron.md`` are right."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.cron import describe, parse
from app.errors import InvalidExpression

TEXT = (Path(__file__).parents[2] / "docs/cron.md").read_text("utf-8")
START = datetime(2026, 12, 1, tzinfo=UTC)


def rows(header: str) -> list[list[str]]:
    """Return the cells of all tables under ``header``."""
    tables = re.findall(
        rf"^\| {re.escape(header)} \|\n\| [-| ]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE
    )
    return [line.strip("| ").split(" | ") for table in tables for line in table.splitlines()]


EXAMPLES = rows("expression | in words | next")
REFUSED = rows("expression | is refused because")
FORMS = rows("write | for")


def test_the_tables_are_found() -> None:
    assert "after 2026-12-01 00:00" in TEXT
    assert (len(EXAMPLES), len(REFUSED), len(FORMS)) == (36, 12, 15)


@pytest.mark.parametrize(("expression", "words", "due"), EXAMPLES)
def test_an_example_is_described_and_due_as_it_says(expression: str, words: str, due: str) -> None:
    parsed = parse(expression.strip("`"))
    assert describe(parsed) == words
    instant = parsed.next(START)
    assert (instant.strftime("%Y-%m-%d %H:%M") if instant else "never") == due


@pytest.mark.parametrize(("expression", "why"), REFUSED)
def test_an_error_is_what_it_says(expression: str, why: str) -> None:
    with pytest.raises(InvalidExpression) as caught:
        parse(expression.strip("`"))
    assert why in caught.value.detail


@pytest.mark.parametrize(
    "form", sorted({form for row in FORMS for form in re.findall("`(.+?)`", row[0])})
)
def test_each_form_is_one_that_some_field_takes(form: str) -> None:
    def is_taken(index: int) -> bool:
        fields = ["*"] * 5
        fields[index] = form
        try:
            return bool(parse(" ".join(fields)))
        except InvalidExpression:
            return False

    assert any(map(is_taken, range(5)))


def test_what_the_text_says_in_passing_holds() -> None:
    assert parse("22-23,0-5 * * * *").ever_fires
    assert describe("0 9 * * 1-5") == "At 09:00 UTC, Monday through Friday"
