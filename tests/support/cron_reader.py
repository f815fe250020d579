"""Reads the English of ``app.cron.describe`` back, so that tests can hold it against what fires.

It knows the phrases and nothing of cron: a description that says something else than the evaluator
does, or says it in words that are not these, is found out.
"""

import re
from calendar import month_name, monthrange
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

MONTHS = list(month_name)[1:]
WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
TURNS = ["first", "second", "third", "fourth", "fifth", "last"]

ANY_WEEKDAY = "|".join(WEEK)
ANY_MONTH = "|".join(MONTHS)
CLOCK = r"\d\d:\d\d"
PACED = re.compile(rf"Every (?:(\d+) )?(minute|hour)s?(?: from ({CLOCK}) through ({CLOCK}) UTC)?")
LISTED = re.compile(rf"At ({CLOCK}(?:(?:, | and ){CLOCK})*) UTC")
COUNTED = re.compile(r"At (.*?) of (every hour|.*? UTC)")
IN_MONTHS = re.compile(rf"(?:, )?in ((?:{ANY_MONTH})[^()]*)$")
NEAREST = re.compile(r"the weekday of the month nearest to day (\d+)(?:, where there is one)?")
TURN = re.compile(rf"the ({'|'.join(TURNS)}) ({ANY_WEEKDAY})")


def days_in_month(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def terms(text: str, names: list[str]) -> set[int]:
    """Return the positions in ``names`` that a list such as "a, c through e and g" has."""
    found: set[int] = set()
    for term in re.split(", | and ", text):
        first, _, last = term.partition(" through ")
        found |= set(range(names.index(first), names.index(last or first) + 1))
    return found


def counted(text: str, noun: str) -> set[int]:
    if text == f"every {noun}":
        return set(range(60))
    if step := re.fullmatch(rf"every (\d+)\w\w {noun} from (\d+) through (\d+)", text):
        every, first, last = map(int, step.groups())
        return set(range(first, last + 1, every))
    numbers = re.fullmatch(rf"{noun}s? (.*)", text)
    assert numbers, text
    return terms(numbers[1], [str(n) for n in range(60)])


@dataclass
class Reader:
    """A description, taken at its word."""

    text: str
    times: set[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        matches = (p.match(self.text) for p in (PACED, LISTED, COUNTED))
        match = next(filter(None, matches), None)
        assert match, self.text
        self.times = self.read_times(match)
        rest = self.text[match.end() :].removesuffix(", in UTC").removeprefix(", ")
        assert ("UTC" in match[0]) != self.text.endswith(", in UTC") or not rest
        months = IN_MONTHS.search(rest)
        self.months = {n + 1 for n in terms(months[1], MONTHS)} if months else set(range(1, 13))
        days = rest[: months.start()] if months else rest
        self.dates, _, self.condition = days.partition(", if it is ")

    @staticmethod
    def read_times(match: re.Match[str]) -> set[tuple[int, int]]:
        if match.re is LISTED:
            texts = re.findall(CLOCK, match[1])
            return {(int(t[:2]), int(t[3:])) for t in texts}
        if match.re is COUNTED:
            every, hours = match[2] == "every hour", match[2].removesuffix(" UTC")
            in_hours = set(range(24)) if every else counted(hours, "hour")
            return {(h, m) for h in in_hours for m in counted(match[1], "minute")}
        step = timedelta(**{f"{match[2]}s": int(match[1] or 1)})
        moment = datetime.strptime(match[3] or "00:00", "%H:%M")
        last = datetime.strptime(match[4] or "23:59", "%H:%M")
        found = set()
        while moment <= last:
            found.add((moment.hour, moment.minute))
            moment += step
        return found

    def is_due(self, moment: datetime) -> bool:
        in_time = (moment.hour, moment.minute) in self.times and moment.month in self.months
        return in_time and self.is_day(moment.date())

    def is_day(self, day: date) -> bool:
        if self.dates in ("", "every day"):
            return True
        if self.condition and not self.is_weekday(self.condition, day):
            return False
        return any(
            self.is_weekday(part, day) if re.search(ANY_WEEKDAY, part) else self.is_date(part, day)
            for part in re.split(r" or on | and on |^on ", self.dates)
            if part
        )

    @staticmethod
    def is_weekday(text: str, day: date) -> bool:
        name, turn = WEEK[day.weekday()], (day.day + 6) // 7
        for which, weekday in TURN.findall(text):
            is_last = day.day + 7 > days_in_month(day)
            if weekday == name and (is_last if which == "last" else which == TURNS[turn - 1]):
                return True
        plain = re.findall(rf"({ANY_WEEKDAY})(?: through ({ANY_WEEKDAY}))?", TURN.sub("", text))
        return any(
            WEEK.index(first) <= day.weekday() <= WEEK.index(last or first) for first, last in plain
        )

    @staticmethod
    def is_date(text: str, day: date) -> bool:
        length = days_in_month(day)
        workdays = [n for n in range(1, length + 1) if day.replace(day=n).weekday() < 5]
        for target in map(int, NEAREST.findall(text)):
            if target <= length and day.day == min(workdays, key=lambda n: abs(n - target)):
                return True
        fixed = NEAREST.sub("", text)
        if "the last day" in fixed and day.day == length:
            return True
        if "the last weekday" in fixed and day.day == workdays[-1]:
            return True
        days = re.match(r"((?:every|days?) .*?)(?: and the last day)? of the month", fixed)
        return bool(days) and day.day in counted(days[1], "day")
