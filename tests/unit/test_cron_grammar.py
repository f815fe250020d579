"""What is an expression, what is none, and what the error says about it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.cron import canonical, describe, parse
from app.errors import InvalidExpression
from tests.support.cron_oracle import expressions

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "vectors/cron.jsonl").read_text("utf-8").splitlines()
]
FIELDS = ["minute", "hour", "day of month", "month", "day of week"]
RUST_WHITE_SPACE = [
    *"\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000",
    *map(chr, range(0x2000, 0x200B)),
]
NO_WHITE_SPACE = [*"\x1c\x1d\x1e\x1f\u180e\u200b\u200c\u2060\ufeff\0\b"]


def refused(expression: str) -> InvalidExpression:
    with pytest.raises(InvalidExpression) as caught:
        parse(expression)
    assert caught.value.expression == expression
    assert str(caught.value) == caught.value.detail
    return caught.value


def with_field(name: str, text: str) -> str:
    """Return an expression whose field ``name`` is ``text``."""
    return " ".join(text if name == field else "*" for field in FIELDS)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: repr(v["expression"]))
def test_the_vectors_are_accepted_and_refused(vector):
    if vector["valid"]:
        assert parse(vector["expression"]).source == canonical(vector["expression"])
    else:
        refused(vector["expression"])


# --- white space ----------------------------------------------------------------------------------


@pytest.mark.parametrize("space", RUST_WHITE_SPACE, ids=ascii)
def test_fields_are_separated_by_any_run_of_unicode_white_space(space):
    expression = parse(f"{space}0{space} {space}0{space}{space}*{space}*\t*{space}{space}")
    assert expression.source == "0 0 * * *"
    assert expression == parse("0 0 * * *")


@pytest.mark.parametrize("character", NO_WHITE_SPACE, ids=ascii)
def test_what_only_looks_like_white_space_separates_nothing(character):
    assert refused(f"0{character}0 * * *").field == "expression"
    wrong = refused(f"0 0 * * *{character}")
    assert (wrong.field, wrong.text) == ("day of week", f"*{character}")


def test_white_space_is_that_of_the_grammar_and_no_other():
    everything = [chr(code) for code in range(0x110000)]
    assert [c for c in everything if canonical(c) == ""] == sorted(RUST_WHITE_SPACE)


@given(st.text())
@example(" \x1c a \u3000\u3000 b\x85")
def test_the_canonical_form_is_its_own(text):
    once = canonical(text)
    assert canonical(once) == once
    assert "".join(once.split(" ")) == "".join(c for c in text if c not in RUST_WHITE_SPACE)


def test_the_canonical_form_changes_nothing_but_white_space():
    assert canonical("\t00  09\u3000*/5,1-3  jan\n+sUn ") == "00 09 */5,1-3 jan +sUn"
    assert canonical(" not\ta  valid one ") == "not a valid one"


@given(expressions())
def test_an_expression_and_its_source_are_equal(text):
    assert parse(text) == parse(parse(text).source) == parse(f"\n{text.replace(' ', '  ')} ")


# --- what is right --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("* * * * *", "0-59 0-23 1-31 1-12 0-7"),
        ("* * ? * ?", "* * * * *"),
        ("*/1 * * * *", "* * * * *"),
        ("5/15 * * * *", "5,20,35,50 * * * *"),
        ("10-30/10 * * * *", "10,20,30 * * * *"),
        ("*/90 * * * *", "0 * * * *"),
        ("007 0000000000000000000009 01 01 01", "7 9 1 1 1"),
        ("*/0015 * * * *", "*/15 * * * *"),
        ("7,5,5,6 * * * *", "5-7 * * * *"),
        ("* * * JAN-dec/3 *", "* * * 1,4,7,10 *"),
        ("* * * jAn,6,Dec *", "* * * 1,6,12 *"),
        ("* * * FEB/4 *", "* * * 2,6,10 *"),
        ("* * * 2-MAR *", "* * * 2,3 *"),
        ("* * * * SUN", "* * * * 0"),
        ("* * * * 7", "* * * * 0"),
        ("* * * * mon-5", "* * * * 1-5"),
        ("* * * * SAT-SUN", "* * * * 0,6"),
        ("* * * * 5-7", "* * * * 5,6,0"),
        ("* * * * SUN-SUN", "* * * * 0-7"),
        ("* * * * SUN-MON", "* * * * 0,1"),
        ("* * * * tue#2", "* * * * 2#2"),
        ("* * * * 5#L", "* * * * FRIL"),
        ("* * * * 7L", "* * * * sunl"),
        ("* * * * 1-5#2", "* * * * 1#2,2#2,3#2,4#2,5#2"),
        ("* * * * */2#1", "* * * * 0#1,2#1,4#1,6#1"),
        ("* * * * ?/2#1", "* * * * */2#1"),
        ("* * l * *", "* * L * *"),
        ("* * 15w * *", "* * 015W * *"),
        ("* * lW * *", "* * LW * *"),
        ("* * ?/2 * *", "* * */2 * *"),
        ("* * 5 * +*", "* * 5 * *"),
    ],
)
def test_two_ways_to_write_one_meaning(one, other):
    def meaning(text: str):
        expression, start = parse(text), datetime(2027, 1, 1, tzinfo=UTC)
        due = expression.latest_between(start, start + timedelta(days=800), 2000)
        return describe(expression), due, expression.next(start)

    assert meaning(one) == meaning(other)


# --- what is wrong --------------------------------------------------------------------------------

MISTAKES = [
    # field, piece, what the message says besides
    ("minute", "60", "is out of range"),
    ("minute", "1-60", "is out of range"),
    ("minute", "99999999999999999999", "is out of range"),
    ("minute", "60/2", "is out of range"),
    ("hour", "24", "is out of range"),
    ("day of month", "0", "is out of range"),
    ("day of month", "32", "is out of range"),
    ("day of month", "32W", "is out of range"),
    ("day of month", "0W", "is out of range"),
    ("month", "0", "is out of range"),
    ("month", "13", "is out of range"),
    ("day of week", "8", "is out of range"),
    ("day of week", "8#1", "is out of range"),
    ("day of week", "8L", "is out of range"),
    ("minute", "5-1", "runs backwards"),
    ("month", "NOV-FEB", "runs backwards"),
    ("day of week", "5-1", "runs backwards"),
    ("day of week", "6-0", "Sunday that ends a range is 7"),
    ("day of week", "7-MON", "runs backwards"),
    ("minute", "*/0", "1 to 65535"),
    ("minute", "*/000", "1 to 65535"),
    ("minute", "*/65536", "1 to 65535"),
    ("minute", "*/99999999999999999999", "1 to 65535"),
    ("minute", "*/", "no number for a step"),
    ("minute", "*/-1", "no number for a step"),
    ("minute", "*/5/5", "no number for a step"),
    ("minute", "*/*", "no number for a step"),
    ("minute", "/5", "is not understood"),
    ("minute", "1-", "is not understood"),
    ("minute", "-1", "is not understood"),
    ("minute", "1-2-3", "is not understood"),
    ("minute", "1~5", "is not understood"),
    ("minute", "**", "is not understood"),
    ("minute", "*5", "is not understood"),
    ("minute", "5*", "is not understood"),
    ("minute", "*-5", "is not understood"),
    ("minute", "1.5", "is not understood"),
    ("minute", "0x5", "is not understood"),
    ("minute", "H", "is not understood"),
    ("minute", "+5", "only the day of week takes"),
    ("minute", "?", "only day of month and day of week take"),
    ("hour", "?/2", "only day of month and day of week take"),
    ("month", "?", "only day of month and day of week take"),
    ("minute", "L", "which the field does not take"),
    ("hour", "15W", "which the field does not take"),
    ("month", "L", "which the field does not take"),
    ("month", "1#1", "only the day of week takes"),
    ("day of month", "1#1", "only the day of week takes"),
    ("minute", "٣", "means nothing here"),
    ("minute", "⁵", "means nothing here"),
    ("minute", "1-٥", "means nothing here"),
    ("minute", "*/٥", "no number for a step"),
    ("day of month", "１W", "means nothing here"),
    ("day of week", "1#²", "1 to 5"),
    ("day of week", "²L", "means nothing here"),
    ("day of week", "ſUN", "means nothing here"),
    ("day of week", "ſUNL", "means nothing here"),
    ("day of week", "frİ", "means nothing here"),
    ("day of week", "\ud800", "means nothing here"),
    ("month", "ﬆ", "means nothing here"),
    ("day of month", "Ⅼ", "means nothing here"),
    ("hour", "\0", "means nothing here"),
    ("month", "JANFEB", "joined to something else"),
    ("month", "JAN1", "joined to something else"),
    ("month", "january", "joined to something else"),
    ("day of week", "SUN6", "joined to something else"),
    ("day of week", "6SUN", "joined to something else"),
    ("day of week", "MONTUE", "joined to something else"),
    ("day of week", "thur", "joined to something else"),
    ("day of week", "MON-FRIL", "joined to something else"),
    ("month", "MON", "MON, that only the day of week takes"),
    ("minute", "jan", "jan, that only the month takes"),
    ("day of week", "JUL", "JUL, that only the month takes"),
    ("day of month", "FRI", "FRI, that only the day of week takes"),
    ("month", "FOO", "is not understood"),
    ("day of week", "MO", "is not understood"),
    ("minute", "@daily", "nicknames are not supported"),
    ("day of week", "@weekly", "nicknames are not supported"),
    ("minute", "TZ=UTC", "always in UTC"),
    ("day of month", "15WW", "W that does not follow one number"),
    ("day of month", "15W5", "W that does not follow one number"),
    ("day of month", "1-5W", "W that does not follow one number"),
    ("day of month", "*W", "W that does not follow one number"),
    ("day of month", "W", "W that does not follow one number"),
    ("day of month", "15W/2", "W that does not follow one number"),
    ("day of month", "1-15W/2", "W that does not follow one number"),
    ("day of month", "L-3", "adds to L"),
    ("day of month", "L/2", "adds to L"),
    ("day of month", "L-1W", "adds to L"),
    ("day of month", "LWL", "adds to L"),
    ("day of month", "LL", "adds to L"),
    ("day of month", "1-L", "L that does not stand alone"),
    ("day of month", "31L", "L that does not stand alone"),
    ("day of month", "WL", "L that does not stand alone"),
    ("day of month", "??", "? that does not stand alone"),
    ("day of month", "15?", "? that does not stand alone"),
    ("day of month", "+15", "only the day of week takes"),
    ("day of week", "*#1", "no day before the #"),
    ("day of week", "?#1", "no day before the #"),
    ("day of week", "*#L", "no day before the #"),
    ("day of week", "#1", "no day before the #"),
    ("day of week", "1#0", "1 to 5"),
    ("day of week", "1#6", "1 to 5"),
    ("day of week", "1#", "1 to 5"),
    ("day of week", "1#+1", "1 to 5"),
    ("day of week", "1#2#3", "1 to 5"),
    ("day of week", "1#1/2", "1 to 5"),
    ("day of week", "1#1.5", "1 to 5"),
    ("day of week", "1#LL", "1 to 5"),
    ("day of week", "L", "no day before the L"),
    ("day of week", "L5", "no day before the L"),
    ("day of week", "LW", "no day before the L"),
    ("day of week", "*L", "a range takes #L"),
    ("day of week", "1-5L", "a range takes #L"),
    ("day of week", "5LL", "a range takes #L"),
    ("day of week", "1+", "a + that is not the one before"),
    ("day of week", "1-+5", "a + that is not the one before"),
    ("day of week", "+", "no day after the +"),
]


@pytest.mark.parametrize(("field", "piece", "says"), MISTAKES, ids=ascii)
def test_an_error_names_the_field_the_piece_and_what_is_allowed(field, piece, says):
    wrong = refused(with_field(field, piece))
    assert (wrong.field, wrong.text) == (field, piece)
    assert wrong.detail.startswith(f"The {field} {piece!r} ")
    assert says in wrong.detail
    allowed = wrong.detail.rpartition("Allowed are ")[2]
    ends = {"minute": "0 to 59", "hour": "0 to 23", "day of month": "1 to 31"}
    ends |= {"month": "1 to 12 or JAN to DEC", "day of week": "0 to 7 or SUN to SAT"}
    assert allowed.startswith(f"{ends[field]}, *")


@pytest.mark.parametrize(
    ("field", "piece", "says"), [m for m in MISTAKES if m[1] != "+"], ids=ascii
)
def test_a_mistake_is_one_in_a_list_too(field, piece, says):
    wrong = refused(with_field(field, f"1,{piece},2"))
    assert (wrong.field, wrong.text) == (field, piece)
    assert says in wrong.detail


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("text", ["1,,2", "1,", ",1", ","])
def test_a_list_has_no_empty_items(field, text):
    wrong = refused(with_field(field, text))
    assert (wrong.field, wrong.text) == (field, text)
    assert f"{text!r} has nothing on one side of a comma" in wrong.detail


@pytest.mark.parametrize("text", ["LW,1", "1,LW", "LW,LW", "lw,L"])
def test_the_last_weekday_is_in_no_list(text):
    wrong = refused(with_field("day of month", text))
    assert (wrong.field, wrong.text.upper()) == ("day of month", "LW")
    assert "cannot be in a list" in wrong.detail


@pytest.mark.parametrize(("text", "piece"), [("++1", "+1"), ("1,+2", "+2"), ("+1,+2", "+2")])
def test_the_plus_stands_once_before_the_whole_day_of_week(text, piece):
    wrong = refused(with_field("day of week", text))
    assert (wrong.field, wrong.text) == ("day of week", piece)
    assert "a + that is not the one before the whole field" in wrong.detail


def test_the_first_wrong_field_is_the_one_that_is_named():
    assert refused("* 24 32 13 8").field == "hour"


@pytest.mark.parametrize(
    ("nickname", "meant"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
    ],
)
def test_a_nickname_is_refused_with_what_to_write_for_it(nickname, meant):
    wrong = refused(nickname)
    assert (wrong.field, wrong.text) == ("expression", nickname.strip())
    assert f"Write '{meant}'" in wrong.detail
    assert parse(meant).ever_fires


@pytest.mark.parametrize("text", ["@reboot", "@every 5m", "@"])
def test_an_unknown_nickname_is_told_the_five_fields(text):
    assert "minute, hour, day of month, month, day of week" in refused(text).detail


@pytest.mark.parametrize("text", ["0 0 0 * * *", "0 0 0 * * * 2027", "* * * * * *"])
def test_seconds_and_years_are_named_as_not_supported(text):
    wrong = refused(text)
    assert (wrong.field, wrong.text) == ("expression", text)
    assert f"has {len(text.split())} fields" in wrong.detail
    assert "Seconds and years are not supported" in wrong.detail


@pytest.mark.parametrize("text", ["*", "0 0 * *", "*****", "0 0 * * * * * *"])
def test_another_number_of_fields_is_told_the_five(text):
    wrong = refused(text)
    assert "It takes five: minute, hour, day of month, month, day of week" in wrong.detail
    assert "Seconds" not in wrong.detail


@pytest.mark.parametrize("text", ["", " ", "\u3000\n"])
def test_an_empty_expression_is_called_that(text):
    assert refused(text).detail.startswith("The expression is empty.")


@pytest.mark.parametrize("text", ["TZ=UTC 0 0 * * *", "CRON_TZ=Europe/Berlin 0 0 * * *"])
def test_a_time_zone_is_told_that_all_is_utc(text):
    assert "all are in UTC" in refused(text).detail
