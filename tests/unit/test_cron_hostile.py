"""Whatever is typed or sent as an expression is one, or is refused in words, in time linear in its length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cron import Expression, describe, parse
from app.errors import InvalidExpression
from tests.support.cron_oracle import expressions

FIELDS = ["minute", "hour", "day of month", "month", "day of week"]
ALPHABET = "0123456789*?/-,+#LWlwSUNMOJAF@= \t\u3000\x1c\u0660²ſİ\0"


@given(st.one_of(st.text(), st.text(ALPHABET), st.lists(st.text(ALPHABET[:-8])).map(" ".join)))
def test_any_text_is_an_expression_or_refused_in_words(text):
    try:
        expression = parse(text)
    except InvalidExpression as wrong:
        assert wrong.field in {"expression", *FIELDS}
        assert wrong.detail.isprintable()
        assert len(wrong.detail) < 1000
    else:
        assert isinstance(expression, Expression)
        assert describe(expression)


@given(expressions(), st.data())
def test_one_changed_character_is_an_expression_or_refused(text, data):
    at = data.draw(st.integers(0, len(text) - 1))
    changed = text[:at] + data.draw(st.sampled_from(ALPHABET)) + text[at + 1 :]
    try:
        assert describe(parse(changed))
    except InvalidExpression as wrong:
        assert wrong.detail


@pytest.mark.parametrize(
    "text",
    [
        "9" * 500_000,
        "0" * 500_000 + "5",
        "1," * 200_000 + "1",
        "-" * 500_000 + "L",
        "L" * 500_000,
        "1-" * 200_000 + "L",
        "*/" * 200_000,
        "#" * 500_000,
        "\u3000" * 500_000,
        "A" * 500_000,
        "1W" * 200_000,
        "5 " * 200_000,
        "+" * 500_000,
    ],
    ids=lambda text: f"{len(text)} of {text[:2]!a}",
)
@pytest.mark.parametrize("field", FIELDS)
def test_very_long_text_is_read_in_one_go(field, text):
    """What is quadratic in the length of its input would not end here within hours."""
    try:
        parse(" ".join(text if name == field else "*" for name in FIELDS))
    except InvalidExpression as wrong:
        assert len(wrong.detail) < 1000
