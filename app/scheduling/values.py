"""What scheduling speaks of: what is due, what was claimed of it, and what was missed."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

AHEAD = timedelta(seconds=1)
"""How far an instant may lie beyond the database's clock and still be claimed."""

ON_TIME = timedelta(seconds=20)
"""Up to this age a claim is simply late, and no catching up. It is longer than the servers need to end
the transaction of a node that was stopped in the middle of a claim."""

MISSED_KEPT = 100
"""How many missed occurrences of one expression are written down at a time: the last ones."""


@dataclass(frozen=True, slots=True)
class Due:
    """An occurrence that asks to be claimed.

    ``since`` is the instant from which this node has known the expression. It is None as the node
    starts: what was due before then is found out from the tables alone.
    """

    expression: str
    due_at: datetime
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Fired:
    """An occurrence that this node claimed, and how many runs it started."""

    expression: str
    due_at: datetime
    runs: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Occurrences of one expression that nobody claimed in time: ``count`` from ``first`` to ``last``.

    ``kept`` are the last of them, oldest first.
    """

    expression: str
    first: datetime
    last: datetime
    count: int
    kept: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of one claim at ``now``, the database's clock.

    ``early`` lies beyond that clock and was left alone. What is in none of these belongs to others.
    """

    now: datetime
    fired: tuple[Fired, ...] = ()
    gaps: tuple[Gap, ...] = ()
    early: tuple[Due, ...] = ()
    overtaken: int = field(default=0, compare=False)
    """How often the claim was made again since another node had changed the picture."""

    @property
    def missed(self) -> int:
        """How many occurrences were missed in all."""
        return sum(gap.count for gap in self.gaps)
