"""From the text of a cron expression to what it means, or to an error that says what to write."""

import re
from functools import lru_cache
from typing import Final

from app.cron import grammar
from app.cron.expression import Expression
from app.cron.grammar import WrongField
from app.errors import InvalidExpression

_KEPT: Final = 2048
_SHOWN: Final = 60

# What Rust's char::is_whitespace takes. Python's own white space also has U+001C to U+001F.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACES = re.compile(f"[{_SPACE}]+")

_FIVE: Final = "It takes five: minute, hour, day of month, month, day of week (0 9 * * 1-5)."
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def canonical(expression: str) -> str:
    """Return the text with one space for each run of white space, and none at its ends.

    It says nothing about whether the expression is valid.
    """
    return _SPACES.sub(" ", expression).strip(" ")


@lru_cache(_KEPT)
def parse(expression: str) -> Expression:
    """Return what the expression means, or raise :class:`~app.errors.InvalidExpression`.

    One that never fires is valid. What was asked for lately is kept, by its text.
    """
    source = canonical(expression)
    texts = source.split(" ")
    if len(texts) != 5:
        raise InvalidExpression(expression, "expression", source, _miscounted(source, texts))
    minute, hour, day_of_month, month, day_of_week = texts
    try:
        return Expression(
            source,
            grammar.parse_minutes(minute),
            grammar.parse_hours(hour),
            grammar.parse_days_of_month(day_of_month),
            grammar.parse_months(month),
            grammar.parse_days_of_week(day_of_week),
        )
    except WrongField as wrong:
        name, allowed = wrong.rule.name, wrong.rule.allowed
        detail = f"The {name} {_shown(wrong.text)} {wrong.problem}. Allowed are {allowed}."
        raise InvalidExpression(expression, name, wrong.text, detail) from None


def _miscounted(source: str, texts: list[str]) -> str:
    if not source:
        return f"The expression is empty. {_FIVE}"
    if texts[0].startswith("@"):
        return _nickname(texts[0])
    if texts[0].upper().startswith(("TZ=", "CRON_TZ=")):
        return f"The expression {_shown(source)} asks for a time zone, but all are in UTC. {_FIVE}"
    count = f"{len(texts)} fields" if len(texts) > 1 else "one field"
    more = " Seconds and years are not supported." if len(texts) in (6, 7) else ""
    return f"The expression {_shown(source)} has {count}.{more} {_FIVE}"


def _nickname(text: str) -> str:
    meant = _NICKNAMES.get(text.lower())
    way_out = f"Write '{meant}' for it." if meant else _FIVE
    return (
        f"The expression {_shown(text)} is a nickname, and nicknames are not supported. {way_out}"
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
