"""What the fields of a cron expression mean: numbers as bits, and the days that they name."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from app.cron import years
from app.cron.years import DaySet

LAST: Final = 6
"""Index of the last turn of a weekday in :attr:`DaysOfWeek.turns`, after the first to the fifth."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Bits 0 to 23 of ``values``; ``starts`` has them at the minute of the day they begin at."""

    values: int
    starts: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts = sum(1 << 60 * hour for hour in numbers(self.values))
        object.__setattr__(self, "starts", starts)


@dataclass(frozen=True, slots=True)
class Months:
    """Bits 1 to 12 of ``values``, and the days of those months."""

    values: int
    days: DaySet = field(init=False, repr=False)

    def __post_init__(self) -> None:
        days = years.union(years.MONTH[month] for month in numbers(self.values))
        object.__setattr__(self, "days", days)


@dataclass(frozen=True, slots=True)
class DaysOfMonth:
    """Bits 1 to 31 of ``values``, and of ``nearest`` for those that stand for a weekday near by."""

    restricted: bool
    values: int
    nearest: int = 0
    last: bool = False
    last_weekday: bool = False
    days: DaySet = field(init=False, repr=False)

    def __post_init__(self) -> None:
        def named(values: int) -> DaySet:
            return years.union(years.DAY_OF_MONTH[day] for day in numbers(values))

        sets = [named(self.values)]
        if self.nearest:
            sets.append(years.nearest_weekday(named(self.nearest)))
        if self.last:
            sets.append(years.LAST_DAY)
        if self.last_weekday:
            sets.append(years.nearest_weekday(years.LAST_DAY))
        object.__setattr__(self, "days", years.union(sets))


@dataclass(frozen=True, slots=True)
class DaysOfWeek:
    """Bits 0 (Sunday) to 6 of ``values`` for each such day, of ``turns[n]`` for the month's n-th.

    ``required`` is the leading ``+``: the day of month must match too.
    """

    restricted: bool
    required: bool
    values: int
    turns: tuple[int, ...]
    days: DaySet = field(init=False, repr=False)

    def __post_init__(self) -> None:
        def named(values: int) -> DaySet:
            return years.union(years.WEEKDAY[day] for day in numbers(values))

        turns = zip((*years.WEEK, years.LAST_WEEK), self.turns, strict=True)
        sets = [years.intersection(week, named(days)) for week, days in turns if days]
        object.__setattr__(self, "days", years.union([named(self.values), *sets]))


def numbers(values: int) -> Iterator[int]:
    """Yield the bits that are set, lowest first."""
    while values:
        lowest = values & -values
        yield lowest.bit_length() - 1
        values ^= lowest
