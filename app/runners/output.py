"""Turning what a run writes into lines of its log, as it comes and within limits."""

from collections.abc import Callable, Sequence
from typing import Literal

from app.clock import Clock
from app.runners.redaction import Redactor
from app.runners.values import LogLine, Stream

LINE_BYTES = 16 * 1024
RUN_BYTES = 4 * 1024 * 1024
RUN_LINES = 100_000
CUT_MARK = " … [cut: a line holds 16 KiB at most]"
FULL_MARK = (
    "The log ends here: a run may write 4 MiB in 100,000 lines. "
    "What follows is dropped, the run goes on."
)

Log = Callable[[Sequence[LogLine]], None]


class Output:
    """Collects the two streams of one run and hands their lines to ``log``, a batch at a time.

    Lines end with ``\\n`` or ``\\r\\n``. NUL is removed, invalid UTF-8 replaced, secrets masked. A
    line is cut at 16 KiB of UTF-8, mark included. After 4 MiB (a line counts its newline) or 100,000
    lines one ``system`` line says so and the rest is dropped; the runner's own ``system`` lines still
    come through.
    """

    def __init__(self, log: Log, clock: Clock, redactor: Redactor) -> None:
        self._log = log
        self._clock = clock
        self._redactor = redactor
        self._left = RUN_BYTES
        self._lines_left = RUN_LINES
        self._full = False
        self._partial: dict[Literal["stdout", "stderr"], _Partial] = {
            "stdout": _Partial(LINE_BYTES + redactor.longest),
            "stderr": _Partial(LINE_BYTES + redactor.longest),
        }

    def feed(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        """Take a piece of ``stream`` as it was read."""
        if not self._full:
            self._hand_on(stream, self._partial[stream].feed(data.replace(b"\0", b"")))

    def finish(self) -> None:
        """Hand on what has no newline at its end."""
        for stream, partial in self._partial.items():
            if partial.kept and not self._full:
                self._hand_on(stream, [partial.take()])

    def say(self, text: str) -> None:
        """Add a line of the runner's own."""
        self._log([LogLine("system", self._redactor.message(text), self._clock.now())])

    def _hand_on(self, stream: Stream, raw_lines: Sequence[bytes]) -> None:
        now = self._clock.now()
        lines = []
        for raw in raw_lines:
            text = self._text(raw)
            size = len(text.encode()) + 1
            if size > self._left or not self._lines_left:
                self._full = True
                lines.append(LogLine("system", FULL_MARK, now))
                break
            self._left -= size
            self._lines_left -= 1
            lines.append(LogLine(stream, text, now))
        if lines:
            self._log(lines)

    def _text(self, raw: bytes) -> str:
        cut = len(raw) > LINE_BYTES
        kept = raw[: self._redactor.safe_cut(raw, LINE_BYTES)] if cut else raw
        text = self._redactor.line(kept).decode("utf-8", "replace")
        encoded = text.encode()
        if not cut and len(encoded) <= LINE_BYTES:
            return text
        room = LINE_BYTES - len(CUT_MARK.encode())
        return encoded[:room].decode("utf-8", "ignore") + CUT_MARK


class _Partial:
    """A line in the making; what is past ``limit`` of it is dropped as it comes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.kept = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines.append(self.take())
        self._add(rest)
        return lines

    def take(self) -> bytes:
        line = bytes(self.kept)
        self.kept.clear()
        return line.removesuffix(b"\r")

    def _add(self, piece: bytes) -> None:
        # One byte more than the limit tells a line that was cut from one that just fits.
        self.kept += piece[: max(0, self._limit + 1 - len(self.kept))]
