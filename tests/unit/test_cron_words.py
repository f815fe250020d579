"""What is said of an expression, and that it is what the expression does."""

import re
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cron import describe, parse
from app.errors import InvalidExpression
from tests.support.cron_oracle import expressions, instants
from tests.support.cron_reader import Reader

ALMOST_A_DAY = timedelta(hours=23, minutes=59)

WORDS = """
* * * * *
    Every minute
*/5 * * * *
    Every 5 minutes
*/7 * * * *
    At every 7th minute from 0 through 56 of every hour
*/90 * * * *
    At minute 0 of every hour
0 * * * *
    At minute 0 of every hour
5,35 * * * *
    At minutes 5 and 35 of every hour
0,30 * * * *
    At minutes 0 and 30 of every hour
1/2 * * * *
    At every 2nd minute from 1 through 59 of every hour
5/15 * * * *
    At minutes 5, 20, 35 and 50 of every hour
0-10,30 * * * *
    At minutes 0 through 10 and 30 of every hour
0 0 * * *
    At 00:00 UTC, every day
0 9,17 * * *
    At 09:00 and 17:00 UTC, every day
0,30 9,17 * * *
    At 09:00, 09:30, 17:00 and 17:30 UTC, every day
0 9-17 * * *
    Every hour from 09:00 through 17:00 UTC, every day
30 */2 * * *
    Every 2 hours from 00:30 through 22:30 UTC, every day
23 0-20/2 * * *
    Every 2 hours from 00:23 through 20:23 UTC, every day
0 1-23/3 * * *
    Every 3 hours from 01:00 through 22:00 UTC, every day
*/15 9-17 * * *
    Every 15 minutes from 09:00 through 17:45 UTC, every day
5/15 9-17 * * *
    Every 15 minutes from 09:05 through 17:50 UTC, every day
* 9 * * *
    Every minute from 09:00 through 09:59 UTC, every day
*/10 9 * * *
    At 09:00, 09:10, 09:20, 09:30, 09:40 and 09:50 UTC, every day
*/10 9,12 * * *
    At minutes 0, 10, 20, 30, 40 and 50 of hours 9 and 12 UTC, every day
*/15 9,11 * * *
    At minutes 0, 15, 30 and 45 of hours 9 and 11 UTC, every day
* 9,17 * * *
    At every minute of hours 9 and 17 UTC, every day
0-10 9,12 * * *
    At minutes 0 through 10 of hours 9 and 12 UTC, every day
* */2 * * *
    At every minute of every 2nd hour from 0 through 22 UTC, every day
0-10 9 * * *
    At minutes 0 through 10 of hour 9 UTC, every day
0 9 * * 1-5
    At 09:00 UTC, Monday through Friday
0 9 * * 1
    At 09:00 UTC, on Monday
0 9 * * 6,0
    At 09:00 UTC, on Saturday and Sunday
0 9 * * SAT-SUN
    At 09:00 UTC, on Saturday and Sunday
0 9 * * SUN-TUE
    At 09:00 UTC, on Monday, Tuesday and Sunday
0 9 * * 1,3,5
    At 09:00 UTC, on Monday, Wednesday and Friday
0 9 * * 5-7
    At 09:00 UTC, Friday through Sunday
0 9 * * 1-3,6
    At 09:00 UTC, on Monday through Wednesday and Saturday
0 9 * * SUN-SUN
    At 09:00 UTC, every day
0 9 * * 1#2
    At 09:00 UTC, on the second Monday of the month
0 9 * * 5L
    At 09:00 UTC, on the last Friday of the month
0 9 * * 1-3#L
    At 09:00 UTC, on the last Monday, the last Tuesday and the last Wednesday of the month
0 9 * * MON#1,FRI#L
    At 09:00 UTC, on the first Monday and the last Friday of the month
0 9 * * 3,1#1
    At 09:00 UTC, on Wednesday and on the first Monday of the month
0 9 * * 1,1#1
    At 09:00 UTC, on Monday
0 9 1 * *
    At 09:00 UTC, on day 1 of the month
0 9 1,15 * *
    At 09:00 UTC, on days 1 and 15 of the month
0 9 1-7 * *
    At 09:00 UTC, on days 1 through 7 of the month
0 9 */2 * *
    At 09:00 UTC, on every 2nd day from 1 through 31 of the month
0 9 1-31 * *
    At 09:00 UTC, every day
0 9 L * *
    At 09:00 UTC, on the last day of the month
0 9 L,1 * *
    At 09:00 UTC, on day 1 and the last day of the month
0 9 L,1,15 * *
    At 09:00 UTC, on days 1 and 15 and the last day of the month
0 9 LW * *
    At 09:00 UTC, on the last weekday of the month
0 9 15W * *
    At 09:00 UTC, on the weekday of the month nearest to day 15
0 9 1W,20 * *
    At 09:00 UTC, on day 20 of the month and the weekday of the month nearest to day 1
0 9 31W * *
    At 09:00 UTC, on the weekday of the month nearest to day 31, where there is one
0 9 31W 1 *
    At 09:00 UTC, on the weekday of the month nearest to day 31, in January
0 9 1 * 1
    At 09:00 UTC, on day 1 of the month or on Monday
0 9 1,15 * 1-5
    At 09:00 UTC, on days 1 and 15 of the month or on Monday through Friday
0 9 L * 5L
    At 09:00 UTC, on the last day of the month or on the last Friday of the month
0 9 15W * 3,1#1
    At 09:00 UTC, on the weekday of the month nearest to day 15 or on Wednesday and on the
    first Monday of the month
0 9 */2 * 1
    At 09:00 UTC, on every 2nd day from 1 through 31 of the month or on Monday
0 9 1-31 * 1
    At 09:00 UTC, every day
0 9 13 * 0-6
    At 09:00 UTC, every day
0 9 1 * +MON
    At 09:00 UTC, on day 1 of the month, if it is a Monday
0 9 1-7 * +MON
    At 09:00 UTC, on days 1 through 7 of the month, if it is a Monday
0 9 13 * +5#2
    At 09:00 UTC, on day 13 of the month, if it is the second Friday of the month
0 9 1 * +1-5
    At 09:00 UTC, on day 1 of the month, if it is a Monday, a Tuesday, a Wednesday, a
    Thursday or a Friday
0 9 1,8 * +3,1#1
    At 09:00 UTC, on days 1 and 8 of the month, if it is a Wednesday or the first Monday
    of the month
0 9 1 * +*
    At 09:00 UTC, on day 1 of the month
0 9 * * +1
    At 09:00 UTC, on Monday
0 9 ? * ?
    At 09:00 UTC, every day
0 9 1 1 *
    At 09:00 UTC, on day 1 of the month, in January
0 9 * 1-3 *
    At 09:00 UTC, every day, in January through March
0 9 1 */2 *
    At 09:00 UTC, on day 1 of the month, in January, March, May, July, September and
    November
0 9 * 2 1
    At 09:00 UTC, on Monday, in February
0 9 29 2 *
    At 09:00 UTC, on day 29 of the month, in February
0 9 28,31 2 *
    At 09:00 UTC, on day 28 of the month, in February
0 9 28,31W 2,3 *
    At 09:00 UTC, on day 28 of the month and the weekday of the month nearest to day 31,
    where there is one, in February and March
0 9 31 2 1
    At 09:00 UTC, on Monday, in February
0 9 30W 1,4 *
    At 09:00 UTC, on the weekday of the month nearest to day 30, in January and April
0 9 1-29 2 +1
    At 09:00 UTC, on Monday, in February
*/5 * * * 6,0
    Every 5 minutes, on Saturday and Sunday, in UTC
* * 1 1 *
    Every minute, on day 1 of the month, in January, in UTC
0 9 31 2 *
    Never: at 09:00 UTC, on day 31 of the month, in February, but there is no such day
0 9 31W 4,6 *
    Never: at 09:00 UTC, on the weekday of the month nearest to day 31, where there is
    one, in April and June, but there is no such day
0 9 15 * +1#1
    Never: at 09:00 UTC, on day 15 of the month, if it is the first Monday of the month,
    but there is no such day
"""
CASES = [
    (expression, " ".join(words.split()))
    for expression, words in re.findall(r"^(\S.*)\n((?: .*\n)+)", WORDS, re.MULTILINE)
]


def test_the_table_is_read_whole():
    assert len(CASES) > 80
    assert all(parse(expression) for expression, _ in CASES)


@pytest.mark.parametrize(("expression", "words"), CASES)
def test_words_for(expression, words):
    assert describe(expression) == words
    assert describe(parse(expression)) == words


def differences(text: str, moment: datetime) -> list[datetime]:
    """Return instants around ``moment`` at which words and evaluator disagree."""
    expression = parse(text)
    reader = Reader(describe(expression))
    due = expression.next(moment) or moment
    around = [moment.replace(second=0, microsecond=0), due, expression.previous(moment) or due]
    around += [t + timedelta(minutes=m) for t in around[:] for m in (1, -1, 60, -60)]
    around += [t + timedelta(days=d) for t in (due, moment) for d in range(-40, 41)]
    around += [due.replace(minute=m, hour=h) for m in range(0, 60, 7) for h in range(24)]
    around = [t.replace(second=0, microsecond=0) for t in around]
    return [t for t in around if reader.is_due(t) != expression.matches(t)]


@given(expressions(), instants())
def test_the_words_taken_at_their_word_are_what_fires(text, moment):
    expression = parse(text)
    if expression.ever_fires:
        assert differences(text, moment) == []
    else:
        assert describe(expression).startswith("Never: ")
        assert expression.next(moment) is None


@given(
    st.sampled_from(["*", "*/2", "*/7", "*/15", "*/30", "5/15", "1/2", "0", "59", "0,1", "5-9"]),
    st.one_of(
        st.just("*"),
        st.lists(st.integers(0, 23), min_size=1, max_size=5).map(lambda h: ",".join(map(str, h))),
    ),
)
def test_the_words_for_a_time_of_day_are_that_time(minute, hour):
    expression = parse(f"{minute} {hour} * * *")
    midnight = datetime.fromisoformat("2027-01-01T00:00Z")
    due = expression.latest_between(midnight - timedelta(minutes=1), midnight + ALMOST_A_DAY, 1440)
    assert Reader(describe(expression)).times == {(t.hour, t.minute) for t in due}


@pytest.mark.parametrize("expression", [e for e, words in CASES if not words.startswith("Never")])
def test_the_words_of_the_table_are_what_fires(expression):
    for month in range(1, 25):
        moment = datetime.fromisoformat("2027-01-01T00:00Z") + timedelta(days=31 * month)
        assert differences(expression, moment) == []


@given(expressions())
def test_never_is_said_of_what_never_fires_and_of_nothing_else(text):
    expression = parse(text)
    assert describe(expression).startswith("Never: ") == (not expression.ever_fires)


@pytest.mark.parametrize(
    ("expression", "joint"),
    [
        ("0 0 1 * MON", " or on "),
        ("0 0 1 * +MON", ", if it is "),
        ("0 0 */2 * MON", " or on "),
        ("0 0 */2 * +MON", ", if it is "),
        ("0 0 L * 1#1", " or on "),
        ("0 0 L * +1#L", ", if it is "),
        ("0 0 * * MON", None),
        ("0 0 * * +MON", None),
        ("0 0 ? * +MON", None),
        ("0 0 1 * ?", None),
        ("0 0 1 * +?", None),
    ],
)
def test_either_and_both_days_are_told_apart(expression, joint):
    words = describe(expression)
    assert [part for part in (" or on ", ", if it is ") if part in words] == (
        [joint] if joint else []
    )


def test_a_text_that_is_no_expression_is_refused():
    with pytest.raises(InvalidExpression, match="nicknames are not supported"):
        describe("@daily")
