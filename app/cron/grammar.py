"""The grammar of each of the five fields of a cron expression.

Each ``parse_…`` function takes a field's text and returns its value, or raises :class:`WrongField`.
Values are kept by text, since a few texts (``*``, ``0``, ``1-5``) make up most expressions.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from app.cron.fields import LAST, DaysOfMonth, DaysOfWeek, Hours, Months

MAX_STEP: Final = 65535

_KEPT: Final = 1024
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class WrongField(Exception):
    """``text`` is the piece that is wrong, ``problem`` says why, to be read after the piece."""

    def __init__(self, rule: "Rule", text: str, problem: str) -> None:
        self.rule = rule
        self.text = text
        self.problem = problem
        super().__init__(rule.name, text, problem)


class Rule(NamedTuple):
    """The numbers and names of a field, and a sentence about all that it takes."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    wildcards: tuple[str, ...] = ("*",)
    extras: str = ""

    @property
    def allowed(self) -> str:
        """What the field takes, for people."""
        names = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        stars = " or ".join(self.wildcards)
        return (
            f"{self.low} to {self.high}{names}, {stars}, ranges (a-b), steps (*/s, a-b/s, a/s)"
            f"{self.extras}, and lists of these with commas"
        )


MINUTE = Rule("minute", 0, 59)
HOUR = Rule("hour", 0, 23)
DAY_OF_MONTH = Rule(
    "day of month",
    1,
    31,
    wildcards=("*", "?"),
    extras=", L (the last day), 15W (the weekday nearest to day 15), LW alone (the last weekday)",
)
MONTH = Rule("month", 1, 12, _MONTHS)
DAY_OF_WEEK = Rule(
    "day of week",
    0,
    7,
    _WEEKDAYS,
    wildcards=("*", "?"),
    extras=", 1#2 (the second Monday), 5L or 5#L (the last Friday), a + before the whole field",
)
RULES = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)


# --- parsing --------------------------------------------------------------------------------------


@lru_cache(_KEPT)
def parse_minutes(text: str) -> int:
    """Return the minutes as bits 0 to 59."""
    return _spans(MINUTE, text)


@lru_cache(_KEPT)
def parse_hours(text: str) -> Hours:
    """Return the hours of the day."""
    return Hours(_spans(HOUR, text))


@lru_cache(_KEPT)
def parse_months(text: str) -> Months:
    """Return the months of the year."""
    return Months(_spans(MONTH, text))


@lru_cache(_KEPT)
def parse_days_of_month(text: str) -> DaysOfMonth:
    """Return the days that the month gives."""
    if text.upper() == "LW" and text.isascii():
        return DaysOfMonth(restricted=True, values=0, last_weekday=True)
    values = nearest = 0
    last = False
    for item in _items(DAY_OF_MONTH, text):
        if item in ("L", "l"):
            last = True
        elif item[-1] in "Ww" and _number(item[:-1]) is not None:
            nearest |= 1 << _value(DAY_OF_MONTH, item[:-1], item)
        else:
            values |= _span(DAY_OF_MONTH, item)
    return DaysOfMonth(_is_restricted(text), values, nearest, last)


@lru_cache(_KEPT)
def parse_days_of_week(text: str) -> DaysOfWeek:
    """Return the days that the week gives."""
    body = text.removeprefix("+")
    if not body:
        raise WrongField(DAY_OF_WEEK, text, "has no day after the +")
    turns = [0] * (LAST + 1)
    for item in _items(DAY_OF_WEEK, body):
        span, turn = _turn(DAY_OF_WEEK, item)
        turns[turn] |= _span(DAY_OF_WEEK, span, item)
    every, *turns = (days & 127 | days >> 7 for days in turns)
    return DaysOfWeek(_is_restricted(body), body != text, every, (0, *turns))


def _is_restricted(text: str) -> bool:
    return text not in ("*", "?")


def _items(rule: Rule, text: str) -> list[str]:
    items = text.split(",")
    if "" in items:
        raise WrongField(rule, text, "has nothing on one side of a comma")
    return items


def _spans(rule: Rule, text: str) -> int:
    values = 0
    for item in _items(rule, text):
        values |= _span(rule, item)
    return values


def _span(rule: Rule, text: str, item: str | None = None) -> int:
    """Return the numbers of ``*``, ``n``, ``a-b`` and their steps; ``item`` is what is blamed."""
    item = item or text
    body, slash, step_text = text.partition("/")
    if body in rule.wildcards:
        first, last = rule.low, rule.high
    else:
        start, dash, end = body.partition("-")
        first = last = _value(rule, start, item)
        if dash:
            last = _value(rule, end, item, ends_range=True)
        elif slash:
            last = rule.high
    if first > last:
        sunday = " (a Sunday that ends a range is 7)" if rule is DAY_OF_WEEK else ""
        raise WrongField(rule, item, f"runs backwards, and ranges do not wrap around{sunday}")
    step = _step(rule, step_text, item) if slash else 1
    return sum(1 << number for number in range(first, last + 1, step))


def _value(rule: Rule, text: str, item: str, *, ends_range: bool = False) -> int:
    number = _number(text)
    if number is None:
        if text.upper() not in rule.names or not text.isascii():
            raise WrongField(rule, item, _why_not(rule, item))
        number = rule.names.index(text.upper()) + (rule is MONTH)
        return 7 if ends_range and rule is DAY_OF_WEEK and number == 0 else number
    if not rule.low <= number <= rule.high:
        raise WrongField(rule, item, "is out of range")
    return number


def _step(rule: Rule, text: str, item: str) -> int:
    step = _number(text)
    if step is None:
        raise WrongField(rule, item, "has no number for a step after the slash")
    if not 1 <= step <= MAX_STEP:
        raise WrongField(rule, item, f"has a step that is not 1 to {MAX_STEP}")
    return step


def _turn(rule: Rule, item: str) -> tuple[str, int]:
    """Split ``1#2`` and ``5L`` into the days and which of the month they are; 0 is each of them."""
    span, mark, turn = item.partition("#")
    if not mark:
        is_last = item[-1] in "Ll" and (item[:-1].isdecimal() or item[:-1].upper() in rule.names)
        return (item[:-1], LAST) if is_last else (item, 0)
    if span in ("", *rule.wildcards):
        raise WrongField(rule, item, "has no day before the #, such as 1#2 for the second Monday")
    if turn in ("L", "l"):
        return span, LAST
    number = _number(turn)
    if number is None or not 1 <= number <= 5:
        raise WrongField(rule, item, "does not have 1 to 5, or L for the last, after the #")
    return span, number


def _number(text: str) -> int | None:
    """Return the number, at most 100,000, that ASCII digits stand for, else None."""
    if not (text.isascii() and text.isdecimal()):
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(MAX_STEP)) else 100_000


# --- explaining -----------------------------------------------------------------------------------

_HINTS: tuple[tuple[re.Pattern[str], tuple[Rule, ...], str], ...] = tuple(
    (re.compile(pattern, re.ASCII | re.IGNORECASE), rules, problem)
    for pattern, rules, problem in (
        (r"[^\x21-\x7e]", RULES, "has a character that means nothing here"),
        (r"\A@", RULES, "is a nickname, and nicknames are not supported"),
        (r"TZ=", RULES, "asks for a time zone, but expressions are always in UTC"),
        (r"\+", (DAY_OF_WEEK,), "has a + that is not the one before the whole field"),
        (r"\+", RULES, "has a +, which only the day of week takes"),
        (r"\?", (DAY_OF_MONTH, DAY_OF_WEEK), "has a ? that does not stand alone"),
        (r"\?", RULES, "has a ?, which only day of month and day of week take"),
        (r"#", RULES, "has a #, which only the day of week takes"),
        (r"\ALW\Z", (DAY_OF_MONTH,), "cannot be in a list"),
        (r"\AL.", (DAY_OF_MONTH,), "adds to L, which stands for the last day alone"),
        (r"L", (DAY_OF_MONTH,), "has an L that does not stand alone"),
        (r"W", (DAY_OF_MONTH,), "has a W that does not follow one number and end there"),
        (r"\AL", (DAY_OF_WEEK,), "has no day before the L, such as 5L for the last Friday"),
        (r"L\Z", (DAY_OF_WEEK,), "has an L after what is not one day: a range takes #L, as 1-5#L"),
        (r"\A[0-9*,/-]*[LW]", RULES, "has an L or W, which the field does not take"),
    )
)
_NAMES = re.compile("|".join((*MONTH.names, *DAY_OF_WEEK.names)), re.ASCII | re.IGNORECASE)


def _why_not(rule: Rule, item: str) -> str:
    name = _NAMES.search(item)
    if name and item.isascii():
        if name[0].upper() in rule.names:
            return "has a name that is joined to something else"
        where = MONTH if name[0].upper() in MONTH.names else DAY_OF_WEEK
        return f"has a name, {name[0]}, that only the {where.name} takes"
    for pattern, rules, problem in _HINTS:
        if rule in rules and pattern.search(item):
            return problem
    return "is not understood"
