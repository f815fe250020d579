"""What one held run has to tell the ledger, kept while the database can't take it."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import structlog

from app.clock import Clock
from app.errors import DatabaseUnavailable
from app.runners.values import LogLine
from app.runs.ledger import Held, RunLedger, Verdict
from app.runs.logs import NewLine, RunLogs

log = structlog.get_logger()

BATCH = 500
"""Lines that one INSERT takes."""
TRIES = 10
"""How often a batch is offered that the database refuses for a reason of its own."""


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """How much of a log waits for the database at most (one batch of the runner's may go beyond), and
    how many seconds a run that writes faster than the database waits for room before lines are dropped.
    """

    lines: int = 20_000
    characters: int = 4 * 1024 * 1024
    patience: float = 2.0


class RunRecord:
    """The commit, the lines and the verdict of one attempt, on their way into the ledger.

    The runner's thread calls :meth:`log` and :meth:`commit`, which neither fail nor wait for long;
    :meth:`flush` and :meth:`finish` may raise DatabaseUnavailable, and then nothing is lost.
    """

    def __init__(
        self,
        worker: str,
        held: Held,
        ledger: RunLedger,
        logs: RunLogs,
        clock: Clock,
        *,
        limits: RecordLimits | None = None,
        on_drop: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.held = held
        self.lost = False
        """True once the ledger said that the run is not this worker's any more."""
        self._worker = worker
        self._ledger = ledger
        self._logs = logs
        self._clock = clock
        self._limits = limits or RecordLimits()
        self._on_drop = on_drop
        self._writing = threading.Lock()
        self._room = threading.Condition()
        self._waiting: deque[NewLine] = deque()
        self._characters = 0
        self._dropped = 0
        self._away = False
        self._failures = 0
        self._after: int | None = None
        self._commit: str | None = None

    def log(self, lines: Sequence[LogLine]) -> None:
        """Take lines of the run; they are dropped, and counted, if there is no room for them."""
        with self._room:
            if not self._has_room():
                self._room.wait_for(self._may_go_on, self._limits.patience)
            if self.lost:
                return
            if not self._has_room():
                self._dropped += len(lines)
                self._on_drop(len(lines))
                return
            self._say_what_was_dropped()
            for line in lines:
                self._add(NewLine(line.stream, line.time, line.text))

    def commit(self, commit_hash: str) -> None:
        """Take the hash of the commit that is being run."""
        self._commit = commit_hash

    def lose(self) -> None:
        """Forget everything: the run is not this worker's any more."""
        with self._room:
            self.lost = True
            self._waiting.clear()
            self._characters = 0
            self._room.notify_all()

    def flush(self) -> None:
        """Write what waits. Raises DatabaseUnavailable."""
        with self._writing:
            try:
                self._write_commit()
                while not self.lost and (batch := self._next_batch()):
                    self._write(batch)
            except DatabaseUnavailable:
                with self._room:
                    self._away = True
                    self._room.notify_all()
                raise
            self._away = False

    def finish(self, verdict: Verdict) -> bool:
        """Write what waits and then how the run ended; False if it is not this worker's any more.

        Raises DatabaseUnavailable.
        """
        with self._room:
            self._say_what_was_dropped()
        self.flush()
        return not self.lost and self._ledger.finish(self._worker, self.held, verdict)

    # --- lines, under the lock of _room -------------------------------------------------------------

    def _has_room(self) -> bool:
        limits = self._limits
        return len(self._waiting) < limits.lines and self._characters < limits.characters

    def _may_go_on(self) -> bool:
        return self._has_room() or self._away or self.lost

    def _say_what_was_dropped(self) -> None:
        if self._dropped:
            text = f"Lines missing here, as the database could not take them: {self._dropped:,}."
            self._dropped = 0
            self._add(NewLine("system", self._clock.now(), text))

    def _add(self, line: NewLine) -> None:
        self._waiting.append(line)
        self._characters += len(line.text)

    # --- writing, under the lock of _writing --------------------------------------------------------

    def _write_commit(self) -> None:
        commit = self._commit
        if commit is None or self.lost:
            return
        if not self._ledger.record_commit(self._worker, self.held, commit):
            self.lose()
        self._commit = None

    def _next_batch(self) -> list[NewLine]:
        with self._room:
            return list(islice(self._waiting, BATCH))

    def _write(self, batch: list[NewLine]) -> None:
        run_id, attempt = self.held.run_id, self.held.attempt
        try:
            last = self._logs.append(run_id, self._worker, attempt, batch, after=self._after)
        except DatabaseUnavailable:
            raise
        except Exception as error:
            self._failures += 1
            if self._failures < TRIES:
                raise DatabaseUnavailable(f"it refused lines ({type(error).__name__})") from error
            log.exception("log-lines-refused", run=run_id, lines=len(batch))
            self._on_drop(len(batch))
            with self._room:
                self._dropped += len(batch)
                self._remove(batch)
            return
        self._failures = 0
        if last is None:
            self.lose()
            return
        self._after = last
        with self._room:
            self._remove(batch)

    def _remove(self, batch: list[NewLine]) -> None:
        if self.lost:
            return
        for _ in batch:
            self._characters -= len(self._waiting.popleft().text)
        self._room.notify_all()
