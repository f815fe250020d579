"""A second reading of the cron grammar, slow and plain, that shares no code with ``app.cron``.

It answers one question, whether a valid expression is due at a minute, straight from the text, and
it makes valid expressions for the property tests.
"""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from hypothesis import strategies as st

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


def numbers(text: str, low: int, high: int, names: list[str] | None = None) -> set[int]:
    """Return the numbers of a comma list of ``*``, ``n``, ``a-b`` and their steps."""
    found: set[int] = set()
    for item in text.upper().split(","):
        body, _, step = item.partition("/")
        start, _, end = body.partition("-")
        if body in ("*", "?"):
            first, last = low, high
        else:
            first = last = number(start, low, names)
            if end:
                last = 7 if end == "SUN" else number(end, low, names)
            elif step:
                last = high
        found |= set(range(first, last + 1)[:: int(step or 1)])
    return found


def number(text: str, low: int, names: list[str] | None) -> int:
    return names.index(text) + low if names and text in names else int(text)


def in_month(day: date) -> list[date]:
    length = monthrange(day.year, day.month)[1]
    return [day.replace(day=n) for n in range(1, length + 1)]


def by_day_of_month(text: str, day: date) -> bool:
    month = in_month(day)
    workdays = [d for d in month if d.isoweekday() <= 5]
    for item in text.upper().split(","):
        if item == "L":
            days = month[-1:]
        elif item == "LW":
            days = workdays[-1:]
        elif item.endswith("W"):
            target = int(item[:-1])
            near = sorted(workdays, key=lambda d: abs(d.day - target))
            days = near[:1] if target <= len(month) else []
        else:
            days = [d for d in month if d.day in numbers(item, 1, 31)]
        if day in days:
            return True
    return False


def by_day_of_week(text: str, day: date) -> bool:
    month = in_month(day)
    for item in text.upper().split(","):
        span, _, turn = item.partition("#")
        if item.endswith("L") and "#" not in item:
            span, turn = item[:-1], "L"
        wanted = {n % 7 for n in numbers(span, 0, 7, WEEKDAYS)}
        if day.isoweekday() % 7 not in wanted:
            continue
        same = [d for d in month if d.isoweekday() == day.isoweekday()]
        if not turn or (same[-1:] if turn == "L" else same[int(turn) - 1 : int(turn)]) == [day]:
            return True
    return False


@dataclass
class Oracle:
    """One expression, read naively."""

    expression: str

    def __post_init__(self) -> None:
        minute, hour, self.dom, month, self.dow = self.expression.split()
        self.minutes = numbers(minute, 0, 59)
        self.hours = numbers(hour, 0, 23)
        self.months = numbers(month, 1, 12, MONTHS)

    def is_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        dow = self.dow.removeprefix("+")
        by_month, by_week = by_day_of_month(self.dom, day), by_day_of_week(dow, day)
        if self.dow.startswith("+") or self.dom in "*?" or dow in "*?":
            return by_month and by_week
        return by_month or by_week

    def is_due(self, moment: datetime) -> bool:
        in_time = moment.minute in self.minutes and moment.hour in self.hours
        return in_time and self.is_day(moment.date())

    def due_on(self, day: date) -> list[datetime]:
        if not self.is_day(day):
            return []
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        times = sorted((h, m) for h in self.hours for m in self.minutes)
        return [midnight + timedelta(hours=h, minutes=m) for h, m in times]


# --- strategies ----------------------------------------------------------------------------------


def spans(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    plain = st.integers(low, high).map(str)
    step = st.one_of(st.integers(1, 12), st.sampled_from([1, 2, 5, 15, 30, 90, 65535]))
    span = st.tuples(st.integers(low, high), st.integers(low, high)).map(
        lambda pair: f"{min(pair)}-{max(pair)}"
    )
    options = [plain, span]
    options.append(
        st.tuples(st.one_of(st.just("*"), plain, span), step).map("{0[0]}/{0[1]}".format)
    )
    if names:
        name = st.sampled_from([*names, *(n.lower() for n in names), *(n.title() for n in names)])
        options += [name, st.tuples(st.just(names[0]), name).map("-".join)]
        options.append(st.tuples(name, step).map("{0[0]}/{0[1]}".format))
    return st.one_of(options)


def lists(item: st.SearchStrategy[str], *wholes: str) -> st.SearchStrategy[str]:
    listed = st.lists(item, min_size=1, max_size=4).map(",".join)
    return st.one_of(st.sampled_from(wholes), item, listed)


def days_of_week() -> st.SearchStrategy[str]:
    every = spans(0, 7, tuple(WEEKDAYS))
    # A bare name or number may have L; any of them may have #.
    single = st.one_of(st.integers(0, 7).map(str), st.sampled_from(WEEKDAYS))
    turn = st.tuples(every, st.sampled_from("12345L")).map("#".join)
    field = lists(st.one_of(every, turn, single.map("{}L".format)), "*", "?")
    return st.tuples(st.sampled_from(["", "", "+"]), field).map("".join)


def days_of_month() -> st.SearchStrategy[str]:
    nearest = st.integers(1, 31).map("{}W".format)
    items = st.one_of(spans(1, 31), nearest, st.just("L"))
    return st.one_of(lists(items, "*", "?"), st.just("LW"))


def expressions() -> st.SearchStrategy[str]:
    """Valid expressions of every form that the grammar has."""
    return st.tuples(
        lists(spans(0, 59), "*", "0", "*/15"),
        lists(spans(0, 23), "*", "0", "9"),
        days_of_month(),
        lists(spans(1, 12, tuple(MONTHS)), "*", "*", "2"),
        days_of_week(),
    ).map(" ".join)


def instants() -> st.SearchStrategy[datetime]:
    return st.datetimes(datetime(1900, 1, 1), datetime(2500, 1, 1), timezones=st.just(UTC))
