"""A place to try a runner at: a source, its options, and what came of the run."""

import secrets
import threading
from collections.abc import Sequence
from pathlib import Path

from app.clock import SystemClock
from app.runners.child import Timing
from app.runners.git import GitAccess
from app.runners.process import ProcessRunner, RunnerOptions
from app.runners.stopping import Stop
from app.runners.values import LogLine, Outcome, RunTask
from tests.support.repositories import SourceRepository
from tests.support.runner_host import task
from tests.support.waiting import processes_with


class Bench:
    """A runner, a source, and what came of the run."""

    def __init__(self, place: Path, source: SourceRepository, access: GitAccess) -> None:
        self.place = place
        self.source = source
        self.options = RunnerOptions(
            place / "data",
            access,
            SystemClock(),
            timing=Timing(lease=10.0, grace=0.5, linger=0.2),
            git_timeout=60,
        )
        self.lines: list[LogLine] = []
        self.stop = Stop()
        self.commits: list[str] = []
        # An argument that no other process on the machine has.
        self.mark = f"1000.{secrets.randbelow(10**9):09}"

    def script(self, text: str, name: str = "w.sh") -> str:
        return self.source.commit(
            {f".bellringer/workflows/{name}": text.replace("MARK", self.mark)}
        )

    def run(self, changed: RunTask | None = None) -> Outcome:
        return ProcessRunner(self.options).run(
            changed or task(), log=self._log, stop=self.stop, on_commit=self.commits.append
        )

    def run_in_thread(
        self, changed: RunTask | None = None
    ) -> tuple[threading.Thread, list[Outcome]]:
        outcomes: list[Outcome] = []
        thread = threading.Thread(target=lambda: outcomes.append(self.run(changed)))
        thread.start()
        return thread, outcomes

    def texts(self, stream: str = "stdout") -> list[str]:
        return [line.text for line in self.lines if line.stream == stream]

    def marked(self) -> set[int]:
        return processes_with(self.mark)

    def left(self) -> list[Path]:
        return list((self.place / "data/trees").iterdir())

    def _log(self, lines: Sequence[LogLine]) -> None:
        self.lines += lines
