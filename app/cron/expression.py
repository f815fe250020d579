"""A parsed cron expression: when it is due, in UTC, to the minute.

A day is the 1,440 bits of its minutes, a year the 366 bits of its days. So the next, the last and
the number of occurrences are a few operations on integers, however rare or frequent they are.
"""

from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, datetime

from app.cron import years
from app.cron.fields import DaysOfMonth, DaysOfWeek, Hours, Months
from app.cron.years import CYCLE, DAYS_BEFORE_MONTH, KIND_OF_YEAR, MONTH_AND_DAY, DaySet

_FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)
_LAST_INSTANT = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Expression:
    """What :func:`app.cron.parse` returns. Two are equal when their canonical texts are.

    All instants are aware; those of another zone are converted, and those without one raise
    ``ValueError``. Answers are in UTC, with no seconds, in the years 1 to 9999.
    """

    source: str
    minutes: int = field(repr=False, compare=False)
    hours: Hours = field(repr=False, compare=False)
    days_of_month: DaysOfMonth = field(repr=False, compare=False)
    months: Months = field(repr=False, compare=False)
    days_of_week: DaysOfWeek = field(repr=False, compare=False)
    _minutes_of_day: int = field(init=False, repr=False, compare=False)
    _days: DaySet = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Minutes take 60 bits and hours are 60 bits apart, so nothing is carried in the product.
        object.__setattr__(self, "_minutes_of_day", self.minutes * self.hours.starts)
        combine = years.intersection if self.days_must_agree else years.either
        days = combine(self.days_of_month.days, self.days_of_week.days)
        object.__setattr__(self, "_days", years.intersection(days, self.months.days))

    @property
    def days_must_agree(self) -> bool:
        """Whether a day has to match both day fields, of which an unrestricted one matches any."""
        of_month, of_week = self.days_of_month, self.days_of_week
        return of_week.required or not (of_month.restricted and of_week.restricted)

    @property
    def ever_fires(self) -> bool:
        """Whether it is due on any day of the 400 years after which the calendar repeats."""
        return any(self._days)

    def matches(self, instant: datetime) -> bool:
        """Say whether it is due at exactly ``instant``, which has no seconds then."""
        instant = _in_utc(instant)
        return (
            not (instant.second or instant.microsecond)
            and self._last(instant, _minute(instant) + 1) == instant
        )

    def next(self, after: datetime) -> datetime | None:
        """Return the first occurrence later than ``after``, or None if there is none."""
        if after.tzinfo is not UTC:
            after = _in_utc(after)
        year = after.year
        kind = KIND_OF_YEAR[year % CYCLE]
        days = self._days[kind]
        day = DAYS_BEFORE_MONTH[kind][after.month] + after.day
        minutes = self._minutes_of_day
        if days >> day & 1:
            elapsed = after.hour * 60 + after.minute + 1
            if rest := minutes >> elapsed:
                return _instant(year, kind, day, elapsed + _lowest(rest))
        day += 1
        days >>= day
        if not days:
            day = 0
            last_year = min(year + CYCLE, MAXYEAR)
            while not days:
                if year == last_year:
                    return None
                year += 1
                kind = KIND_OF_YEAR[year % CYCLE]
                days = self._days[kind]
        return _instant(year, kind, day + _lowest(days), _lowest(minutes))

    def previous(self, before: datetime) -> datetime | None:
        """Return the last occurrence earlier than ``before``, or None if there is none."""
        before = _in_utc(before)
        has_seconds = before.second > 0 or before.microsecond > 0
        return self._last(before, _minute(before) + has_seconds)

    def count_between(self, after: datetime, until: datetime) -> int:
        """Return how many occurrences there are with ``after < occurrence <= until``."""
        after, until = _in_utc(after), _in_utc(until)
        if after >= until:
            return 0
        whole_years = (
            self._days[KIND_OF_YEAR[year % CYCLE]].bit_count()
            for year in range(after.year, until.year)
        )
        a_day = self._minutes_of_day.bit_count()
        return sum(whole_years) * a_day + self._rank(until) - self._rank(after)

    def latest_between(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """Return the last ``limit`` of what :meth:`count_between` counts, oldest first."""
        after, until = _in_utc(after), _in_utc(until)
        found: list[datetime] = []
        due = self._last(until, _minute(until) + 1)
        while due is not None and due > after and len(found) < limit:
            found.append(due)
            due = self._last(due, _minute(due))
        return found[::-1]

    def _last(self, moment: datetime, elapsed: int) -> datetime | None:
        """Return the last occurrence before the first ``elapsed`` minutes of that day are over."""
        year = moment.year
        kind, day = _day(moment)
        days = self._days[kind]
        minutes = self._minutes_of_day
        if days >> day & 1 and (rest := minutes & (1 << elapsed) - 1):
            return _instant(year, kind, day, _highest(rest))
        days &= (1 << day) - 1
        first_year = max(year - CYCLE, MINYEAR)
        while not days:
            if year == first_year:
                return None
            year -= 1
            kind = KIND_OF_YEAR[year % CYCLE]
            days = self._days[kind]
        return _instant(year, kind, _highest(days), _highest(minutes))

    def _rank(self, moment: datetime) -> int:
        """Return how many occurrences of its year are not later than ``moment``."""
        kind, day = _day(moment)
        days = self._days[kind]
        rank = (days & (1 << day) - 1).bit_count() * self._minutes_of_day.bit_count()
        if days >> day & 1:
            rank += (self._minutes_of_day & (2 << _minute(moment)) - 1).bit_count()
        return rank


def _in_utc(instant: datetime) -> datetime:
    if instant.tzinfo is UTC:
        return instant
    if instant.utcoffset() is None:
        raise ValueError(f"{instant!r} has no time zone, so it is no instant")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        return _FIRST_INSTANT if instant.year == MINYEAR else _LAST_INSTANT


def _day(moment: datetime) -> tuple[int, int]:
    kind = KIND_OF_YEAR[moment.year % CYCLE]
    return kind, DAYS_BEFORE_MONTH[kind][moment.month] + moment.day


def _minute(moment: datetime) -> int:
    return moment.hour * 60 + moment.minute


def _instant(year: int, kind: int, day: int, minute: int) -> datetime:
    month, day = MONTH_AND_DAY[kind][day]
    return datetime(year, month, day, minute // 60, minute % 60, 0, 0, UTC)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _highest(bits: int) -> int:
    return bits.bit_length() - 1
