"""What a cron expression does, in plain English.

The words come from the values that fire it. So what is equal in effect reads the same however it is
written, days that its months do not have are left out, and what never fires is called that.
"""

from collections.abc import Sequence
from itertools import pairwise

from app.cron.expression import Expression
from app.cron.fields import DaysOfMonth, DaysOfWeek, numbers
from app.cron.parser import parse
from app.cron.years import LONGEST

_JANUARY_TO_JUNE = ("January", "February", "March", "April", "May", "June")
_JULY_TO_DECEMBER = ("July", "August", "September", "October", "November", "December")
_MONTHS = ("", *_JANUARY_TO_JUNE, *_JULY_TO_DECEMBER)
_WEEK = ("", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TURNS = ("", "first", "second", "third", "fourth", "fifth", "last")

_ALL_MINUTES = (1 << 60) - 1
_ALL_HOURS = (1 << 24) - 1
_ALL_WEEKDAYS = (1 << 7) - 1
_SHORTEST_MONTH = 28
_MOST_LISTED = 6


def describe(expression: Expression | str) -> str:
    """Return the schedule as a phrase, such as "At 09:00 UTC, Monday through Friday".

    Raises :class:`~app.errors.InvalidExpression` for a text that is no expression.
    """
    if isinstance(expression, str):
        expression = parse(expression)
    time = _time(expression.minutes, expression.hours.values)
    days = _days(expression) or ("every day" if "UTC" in time else "")
    phrase = ", ".join(filter(None, (time, days, _months(expression))))
    if phrase != time and "UTC" not in time:
        phrase += ", in UTC"
    if not expression.ever_fires:
        return f"Never: {phrase[0].lower()}{phrase[1:]}, but there is no such day"
    return phrase


# --- time of day ----------------------------------------------------------------------------------


def _time(minute_bits: int, hour_bits: int) -> str:
    minutes, hours = list(numbers(minute_bits)), list(numbers(hour_bits))
    step, hour_step = _step(minutes), _step(hours)
    is_even = step > 0 and minutes[0] < step and step * len(minutes) == 60
    pace = "Every minute" if step == 1 else f"Every {step} minutes"
    of_minutes = "every minute" if minute_bits == _ALL_MINUTES else _counted(minutes, "minute")
    if hour_bits == _ALL_HOURS:
        return pace if is_even and minutes[0] == 0 else f"At {of_minutes} of every hour"
    if len(minutes) * len(hours) <= _MOST_LISTED:
        times = [f"{hour:02}:{minute:02}" for hour in hours for minute in minutes]
        return f"At {_listed(times)} UTC"
    span = f"from {hours[0]:02}:{minutes[0]:02} through {hours[-1]:02}:{minutes[-1]:02} UTC"
    if is_even and hours[-1] - hours[0] == len(hours) - 1:
        return f"{pace} {span}"
    if len(minutes) == 1 and hour_step:
        return f"Every hour {span}" if hour_step == 1 else f"Every {hour_step} hours {span}"
    return f"At {of_minutes} of {_counted(hours, 'hour')} UTC"


# --- days -----------------------------------------------------------------------------------------


def _days(expression: Expression) -> str:
    lengths = [LONGEST[month] for month in numbers(expression.months.values)]
    possible = (2 << max(lengths)) - 2 if expression.ever_fires else -1
    shared = _SHORTEST_MONTH if min(lengths) < 30 else min(lengths)
    of_month, of_week = expression.days_of_month, expression.days_of_week
    any_date = of_month.values & possible == possible
    any_weekday = of_week.values == _ALL_WEEKDAYS
    dates = _dates(of_month, possible, shared)
    if not expression.days_must_agree:
        if any_date or any_weekday:
            return ""
        return f"on {dates} or {_on_weekdays(of_week)}" if dates else _weekdays(of_week)
    if any_date:
        return "" if any_weekday else _weekdays(of_week)
    return f"on {dates}" if any_weekday else f"on {dates}, if it is {_a_weekday(of_week)}"


def _months(expression: Expression) -> str:
    months = list(numbers(expression.months.values))
    return f"in {_listed(_runs(months, _MONTHS))}" if len(months) < 12 else ""


def _dates(of_month: DaysOfMonth, possible: int, shared: int) -> str:
    """Return those that are ``possible``; all of the months have days 1 to ``shared``."""
    fixed = []
    if of_month.values & possible:
        fixed.append(_counted(list(numbers(of_month.values & possible)), "day"))
    if of_month.last:
        fixed.append("the last day")
    if of_month.last_weekday:
        fixed.append("the last weekday")
    parts = [f"{_listed(fixed)} of the month"] if fixed else []
    for day in numbers(of_month.nearest & possible):
        some = ", where there is one" if day > shared else ""
        parts.append(f"the weekday of the month nearest to day {day}{some}")
    return _listed(parts)


def _weekdays(of_week: DaysOfWeek) -> str:
    """Return "Monday through Friday" where that is all there is, else what stands after "on"."""
    days = _week(of_week.values)
    runs = _runs(days, _WEEK)
    if len(days) > 2 and len(runs) == 1 and not any(of_week.turns):
        return runs[0]
    return _on_weekdays(of_week)


def _on_weekdays(of_week: DaysOfWeek) -> str:
    parts = []
    if of_week.values:
        parts.append(f"on {_listed(_runs(_week(of_week.values), _WEEK))}")
    if turns := _turns(of_week):
        parts.append(f"on {_listed(turns)} of the month")
    return _listed(parts)


def _a_weekday(of_week: DaysOfWeek) -> str:
    parts = [f"a {_WEEK[day]}" for day in _week(of_week.values)]
    if turns := _turns(of_week):
        parts.append(f"{_listed(turns, 'or')} of the month")
    return _listed(parts, "or")


def _turns(of_week: DaysOfWeek) -> list[str]:
    return [
        f"the {turn} {_WEEK[day]}"
        for turn, days in zip(_TURNS, of_week.turns, strict=True)
        for day in _week(days & ~of_week.values)
    ]


def _week(days: int) -> list[int]:
    """Return the days from Monday, 1, to Sunday, 7."""
    return list(numbers(days & ~1 | (days & 1) << 7))


# --- lists ----------------------------------------------------------------------------------------


def _counted(values: Sequence[int], noun: str) -> str:
    """Return "day 1", "days 1, 2 and 15 through 20" or "every 2nd day from 1 through 31"."""
    step = _step(values)
    if step > 1 and len(values) > _MOST_LISTED:
        ordinal = {2: "2nd", 3: "3rd"}.get(step, f"{step}th")
        return f"every {ordinal} {noun} from {values[0]} through {values[-1]}"
    return f"{noun}{'s' * (len(values) > 1)} {_listed(_runs(values, range(60)))}"


def _step(values: Sequence[int]) -> int:
    """Return the distance that all neighbours have, or 0 if it varies or there are less than 3."""
    steps = {after - before for before, after in pairwise(values)}
    return steps.pop() if len(steps) == 1 and len(values) > 2 else 0


def _runs(values: Sequence[int], names: Sequence[object]) -> list[str]:
    """Return the names, with "a through b" for three or more in a row."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return [
        text
        for run in runs
        for text in (
            [f"{names[run[0]]} through {names[run[-1]]}"]
            if len(run) > 2
            else [str(names[value]) for value in run]
        )
    ]


def _listed(parts: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
