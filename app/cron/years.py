"""The Gregorian calendar as sets of days: one integer a year, one bit a day.

A year is one of fourteen kinds, by the weekday of its 1 January and by whether it is a leap year,
and the kinds repeat every 400 years. So fourteen integers say which days a cron field means in any
year, sets of days combine with ``&`` and ``|``, and the next day is the lowest bit that is left.

Bit *n* stands for the *n*-th day of the year; bit 0 is never set.
"""

from calendar import isleap
from collections.abc import Callable, Iterable
from datetime import date
from typing import TypeAlias

DaySet: TypeAlias = tuple[int, ...]
"""Days in each of the fourteen kinds of year."""

CYCLE = 400
"""Years after which the calendar repeats, weekdays included."""

LONGEST = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""By month: the most days it can have."""


def weekday(day: date) -> int:
    """Return the day of the week as cron counts it: Sunday is 0, Saturday is 6."""
    return day.isoweekday() % 7


_KIND_BY_TRAITS = {(leap, first): 7 * leap + first for leap in (False, True) for first in range(7)}

KIND_OF_YEAR = bytes(
    _KIND_BY_TRAITS[isleap(year), weekday(date(year, 1, 1))] for year in range(CYCLE, 2 * CYCLE)
)
"""By the year modulo 400: its kind, which is the index into a :data:`DaySet`."""


def _calendar(year: int) -> tuple[date, ...]:
    start = date(year, 1, 1).toordinal()
    return tuple(date.fromordinal(start + n) for n in range(365 + isleap(year)))


_CALENDARS = tuple(
    _calendar(CYCLE + KIND_OF_YEAR.index(kind)) for kind in range(len(_KIND_BY_TRAITS))
)

MONTH_AND_DAY = tuple(
    ((0, 0), *((day.month, day.day) for day in calendar)) for calendar in _CALENDARS
)
"""By kind and bit: month and day of the month."""

DAYS_BEFORE_MONTH = tuple(
    (0, *(dates.index((month, 1)) - 1 for month in range(1, 13))) for dates in MONTH_AND_DAY
)
"""By kind and month: how many days of the year come before it."""


def _sets_by(key: Callable[[date], int], keys: int) -> tuple[DaySet, ...]:
    sets = [[0] * len(_CALENDARS) for _ in range(keys)]
    for kind, calendar in enumerate(_CALENDARS):
        for bit, day in enumerate(calendar, start=1):
            sets[key(day)][kind] |= 1 << bit
    return tuple(map(tuple, sets))


DAY_OF_MONTH = _sets_by(lambda day: day.day, 32)
"""By day of the month, 1 to 31."""

MONTH = _sets_by(lambda day: day.month, 13)
"""By month, 1 to 12."""

WEEKDAY = _sets_by(weekday, 7)
"""By day of the week, 0 (Sunday) to 6."""


def intersection(one: DaySet, other: DaySet) -> DaySet:
    """Return the days that are in both."""
    return tuple([a & b for a, b in zip(one, other, strict=True)])


def either(one: DaySet, other: DaySet) -> DaySet:
    """Return the days that are in one of the two."""
    return tuple([a | b for a, b in zip(one, other, strict=True)])


def union(sets: Iterable[DaySet]) -> DaySet:
    """Return the days that are in any of ``sets``."""
    found = NO_DAY
    for days in sets:
        found = either(found, days)
    return found


NO_DAY: DaySet = (0,) * len(_CALENDARS)
EVERY_DAY = union(MONTH)

# The days before each first of a month: without that before 1 January, and with 31 December.
LAST_DAY: DaySet = tuple(
    (firsts >> 1) & ~1 | 1 << len(calendar)
    for firsts, calendar in zip(DAY_OF_MONTH[1], _CALENDARS, strict=True)
)
"""The last day of each month."""

LAST_WEEK: DaySet = tuple(sum(last >> back for back in range(7)) for last in LAST_DAY)
"""The last seven days of each month, in which each day of the week has its last turn."""

WEEK = (NO_DAY, *(union(DAY_OF_MONTH[7 * n - 6 : 7 * n + 1]) for n in range(1, 6)))
"""By *n*, 1 to 5: the days of a month in which each day of the week has its *n*-th turn."""


def nearest_weekday(days: DaySet) -> DaySet:
    """Move each day that is no Monday to Friday to the nearest one of the same month."""
    saturdays = intersection(days, WEEKDAY[6])
    sundays = intersection(days, WEEKDAY[0])
    return tuple(
        day & ~saturday & ~sunday
        | (saturday & ~first) >> 1
        | (saturday & first) << 2
        | (sunday & ~last) << 1
        | (sunday & last) >> 2
        for day, saturday, sunday, first, last in zip(
            days, saturdays, sundays, DAY_OF_MONTH[1], LAST_DAY, strict=True
        )
    )
