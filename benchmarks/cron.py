"""How fast cron expressions are, against cronsim and croniter in the same run, on one thread.

Run with ``python -m benchmarks.cron``. Before anything is timed, all answer the same questions and have
to agree: 30 expressions of the kind that people write, at 40 instants over three years.
"""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter

from croniter import croniter
from cronsim import CronSim

from app.cron import parse

EXPRESSIONS = (
    "* * * * *",
    "*/5 * * * *",
    "*/10 * * * *",
    "*/15 * * * *",
    "*/30 * * * *",
    "0 * * * *",
    "30 * * * *",
    "0 */2 * * *",
    "0 */6 * * *",
    "23 0-20/2 * * *",
    "0 0 * * *",
    "0 3 * * *",
    "30 2 * * *",
    "0 0,12 * * *",
    "0 8-18 * * *",
    "*/10 9-17 * * 1-5",
    "0 9-17 * * 1-5",
    "0 9 * * 1-5",
    "0 22 * * 1-5",
    "0 0 * * 0",
    "0 0 * * 1",
    "45 23 * * 6",
    "0 12 * * MON",
    "0 0 1 * *",
    "0 0 15 * *",
    "0 0 1,15 * *",
    "15 14 1 * *",
    "0 6 1 */3 *",
    "0 8 * 1-6 *",
    "0 0 1 1 *",
)
INSTANTS = tuple(
    datetime(2026, 12, 1, 0, 7, 30, tzinfo=UTC) + n * timedelta(days=27, hours=7, minutes=41)
    for n in range(40)
)
ROUNDS = 7

Answers = list[datetime | None]


# --- what is timed: each asks every expression at every instant -----------------------------------


def parsed() -> Callable[[], Answers]:
    expressions = [parse(text) for text in EXPRESSIONS]
    return lambda: [e.next(instant) for e in expressions for instant in INSTANTS]


def parsed_cronsim() -> Callable[[], Answers]:
    iterators = [CronSim(text, INSTANTS[0]) for text in EXPRESSIONS]

    def ask() -> Answers:
        found: Answers = []
        for iterator in iterators:
            for instant in INSTANTS:
                iterator.dt = instant.replace(microsecond=0)
                found.append(next(iterator))
        return found

    return ask


def parsed_croniter() -> Callable[[], Answers]:
    iterators = [croniter(text) for text in EXPRESSIONS]
    return lambda: [i.get_next(datetime, instant) for i in iterators for instant in INSTANTS]


def parsing() -> Callable[[], Answers]:
    # The cache of whole expressions is left out; that of fields is part of what is measured.
    anew = parse.__wrapped__
    return lambda: [anew(text).next(instant) for text in EXPRESSIONS for instant in INSTANTS]


def parsing_cronsim() -> Callable[[], Answers]:
    return lambda: [next(CronSim(text, instant)) for text in EXPRESSIONS for instant in INSTANTS]


# --- figures --------------------------------------------------------------------------------------

FIGURES = (
    ("next, parsed before, against cronsim", parsed, parsed_cronsim, 5),
    ("next, parsed before, against croniter", parsed, parsed_croniter, 14),
    ("parse and next, against cronsim", parsing, parsing_cronsim, 1.5),
)


def fastest(ours: Callable[[], Answers], baseline: Callable[[], Answers]) -> tuple[float, float]:
    """Return the microseconds that one question takes each: the best of rounds that take turns."""
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for which, ask in enumerate((ours, baseline)):
            start = perf_counter()
            answers = ask()
            best[which] = min(best[which], (perf_counter() - start) / len(answers) * 1e6)
    return best[0], best[1]


def figures() -> Iterator[dict[str, object]]:
    """Yield each figure, or raise ``AssertionError`` if the answers are not the same."""
    for name, ours, baseline, target in FIGURES:
        ask, ask_baseline = ours(), baseline()
        if ask() != ask_baseline():
            raise AssertionError(f"{name}: the answers differ, so their times say nothing")
        ours_us, baseline_us = fastest(ask, ask_baseline)
        yield {
            "benchmark": "cron",
            "figure": name,
            "ratio": round(baseline_us / ours_us, 2),
            "target": f">= {target}",
            "ours_us": round(ours_us, 3),
            "baseline_us": round(baseline_us, 3),
        }


def main() -> None:
    for figure in figures():
        sys.stdout.write(json.dumps(figure) + "\n")


if __name__ == "__main__":
    main()
