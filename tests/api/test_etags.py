"""Reading If-Match and If-None-Match: RFC 9110 to the letter, and two leniences."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.api.etags import Condition, EntityTag, MalformedTags, parse

A, B = "a" * 64, "b" * 64


def strong(*opaque: str) -> Condition:
    return Condition(tuple(EntityTag(text, weak=False) for text in opaque))


def weak(*opaque: str) -> Condition:
    return Condition(tuple(EntityTag(text, weak=True) for text in opaque))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("*", Condition((), any=True)),
        (" * ", Condition((), any=True)),
        (f'"{A}"', strong(A)),
        (f'W/"{A}"', weak(A)),
        (f'"{A}", "{B}"', strong(A, B)),
        (f'"{A}","{B}"', strong(A, B)),
        (f'"{A}"\t,\t"{B}"', strong(A, B)),
        (f', "{A}" , ,"{B}",', strong(A, B)),
        ('""', strong("")),
        ('"a,b"', strong("a,b")),
        ('"a, \\"'.replace(" ", "!"), strong("a,!\\")),
        ('"*"', strong("*")),
        ('"W/"', strong("W/")),
        ('"\xe9"', strong("\xe9")),
        (f'"{A}", W/"{B}"', Condition((EntityTag(A, False), EntityTag(B, True)))),
        # The two leniences.
        (A, strong(A)),
        (f"{A}, {B}", strong(A, B)),
        (f'"{A}-gzip"', strong(A)),
        (f'"{A}--gzip"', strong(A)),
        (f'"{A};gzip"', strong(A)),
        (f'"{A}-br"', strong(A)),
        (f'W/"{A}-gzip"', weak(A)),
        # Nothing else is taken off or put on.
        (f'"{A}-zip"', strong(f"{A}-zip")),
        (f'"{A}-gzip-gzip"', strong(f"{A}-gzip-gzip")),
        ('"abc-gzip"', strong("abc-gzip")),
        (f'"{A.upper()}"', strong(A.upper())),
    ],
)
def test_well_formed_headers_are_read(value: str, expected: Condition) -> None:
    assert parse("If-Match", value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        ",",
        ", ,",
        "abc",
        '"abc',
        'abc"',
        '"a" "b"',
        '"a"b',
        f'{A}"',
        f'"{A}',
        f"'{A}'",
        A[:-1],
        A + "a",
        A.upper(),
        f"{A}-gzip",
        f"W/{A}",
        f'w/"{A}"',
        f'W/ "{A}"',
        f'W"{A}"',
        '"a b"',
        '"a\tb"',
        '"a\x7fb"',
        '"a\nb"',
        f'"{A}"\n',
        "*, *",
        f'*, "{A}"',
        f'"{A}", *',
        f'"{A}"; "{B}"',
        "**",
        '"a""b"',
        f'"{A}",x',
    ],
)
def test_malformed_headers_are_errors(value: str) -> None:
    with pytest.raises(MalformedTags, match="If-Match"):
        parse("If-Match", value)


def test_if_match_compares_strongly_and_if_none_match_weakly() -> None:
    for condition, strongly, weakly in [
        (strong(A), True, True),
        (strong(B, A), True, True),
        (weak(A), False, True),
        (strong(B), False, False),
        (Condition((), any=True), True, True),
    ]:
        assert condition.matches_strongly(A) is strongly
        assert condition.matches_weakly(A) is weakly


OPAQUE = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0xFF).filter(lambda c: c not in '"\x7f'),
    max_size=20,
).filter(lambda t: not any(0x7F < ord(c) < 0x80 for c in t))


@given(st.lists(st.tuples(st.booleans(), OPAQUE), min_size=1), st.sampled_from([",", ", ", " ,, "]))
def test_what_is_written_by_the_grammar_is_read_back(
    tags: list[tuple[bool, str]], separator: str
) -> None:
    value = separator.join(f'{"W/" * is_weak}"{opaque}"' for is_weak, opaque in tags)
    assert parse("If-Match", value).tags == tuple(EntityTag(o, w) for w, o in tags)


GRAMMAR = re.compile(
    r'[ \t,]*(?:(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"|[0-9a-f]{64})'
    r'(?:[ \t]*,[ \t,]*(?:(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"|[0-9a-f]{64}))*[ \t,]*\Z'
)


@settings(max_examples=500)
@given(
    st.lists(
        st.sampled_from(
            ['"', "W/", "*", ",", " ", "\t", "a", A, "\\", "\x7f", "\xe9", ";", "-gzip"]
        ),
        max_size=12,
    ).map("".join)
)
def test_a_header_is_read_if_and_only_if_the_grammar_has_it(value: str) -> None:
    well_formed = value.strip(" \t") == "*" or GRAMMAR.match(value) is not None
    try:
        parse("If-Match", value)
        assert well_formed
    except MalformedTags:
        assert not well_formed
