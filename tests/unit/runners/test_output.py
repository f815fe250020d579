"""What becomes of the bytes that a run writes."""

from collections.abc import Sequence

import pytest

from app.clock import SystemClock
from app.runners.output import CUT_MARK, FULL_MARK, LINE_BYTES, RUN_BYTES, RUN_LINES, Output
from app.runners.redaction import Redactor
from app.runners.values import LogLine


class Collected:
    def __init__(self, *secrets: str) -> None:
        self.lines: list[LogLine] = []
        self.output = Output(self._take, SystemClock(), Redactor(secrets))

    def _take(self, lines: Sequence[LogLine]) -> None:
        self.lines += lines

    def texts(self, *pieces: bytes) -> list[str]:
        for piece in pieces:
            self.output.feed("stdout", piece)
        self.output.finish()
        return [line.text for line in self.lines]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"o", b"n", b"e\ntw", b"o\n"], ["one", "two"]),
        ([b"no newline at the end"], ["no newline at the end"]),
        ([b"one\r\ntwo\r", b"\n"], ["one", "two"]),
        ([b"10%\r20%\n"], ["10%\r20%"]),
        ([b"\n\n"], ["", ""]),
        ([b""], []),
        ([b"a\0b\0\n"], ["ab"]),
        ([b"\xff\xfe ok\n"], ["\ufffd\ufffd ok"]),
        (["ü".encode()[:1], "ü".encode()[1:] + b"\n"], ["ü"]),
    ],
)
def test_bytes_become_lines(pieces: list[bytes], expected: list[str]) -> None:
    assert Collected().texts(*pieces) == expected


def test_streams_are_kept_apart() -> None:
    collected = Collected()
    collected.output.feed("stdout", b"from ")
    collected.output.feed("stderr", b"error\n")
    collected.output.feed("stdout", b"out\n")
    assert [(line.stream, line.text) for line in collected.lines] == [
        ("stderr", "error"),
        ("stdout", "from out"),
    ]


def test_a_line_that_just_fits_is_whole() -> None:
    assert Collected().texts(b"x" * LINE_BYTES + b"\nnext\n") == ["x" * LINE_BYTES, "next"]


@pytest.mark.parametrize("piece", [b"x", "€".encode(), b"\xff"])
def test_a_long_line_is_cut_with_a_mark_and_the_next_is_whole(piece: bytes) -> None:
    long, following = Collected().texts(*[piece * 1000] * 1000, b"\nnext\n")
    assert long.endswith(CUT_MARK)
    assert LINE_BYTES - 3 <= len(long.encode()) <= LINE_BYTES
    assert following == "next"


def test_what_is_past_the_limit_is_dropped_after_one_line_that_says_so() -> None:
    collected = Collected()
    line = b"y" * 1023 + b"\n"
    texts = collected.texts(*[line * 64] * 160)
    assert texts.count(FULL_MARK) == 1 and texts[-1] == FULL_MARK
    assert len(texts) - 1 == RUN_BYTES // 1024
    assert collected.lines[-1].stream == "system"


def test_the_runner_still_speaks_when_the_log_is_full() -> None:
    collected = Collected()
    collected.texts(*[b"y" * 1023 + b"\n"] * 5000)
    collected.output.say("The end.")
    assert collected.lines[-1].text == "The end."


def test_memory_stays_bounded_on_a_line_without_end() -> None:
    collected = Collected()
    for _ in range(64):
        collected.output.feed("stdout", b"z" * 65536)
    assert len(collected.output._partial["stdout"].kept) <= LINE_BYTES + 1


@pytest.mark.parametrize("split", range(1, 12))
def test_a_secret_is_masked_wherever_the_pieces_part(split: int) -> None:
    text = b"a s3cr3t-t0k b\n"
    assert Collected("s3cr3t-t0k").texts(text[:split], text[split:]) == ["a *** b"]


def test_a_secret_with_a_nul_in_it_is_masked() -> None:
    assert Collected("s3cr3t").texts(b"s3c\0r3t\n") == ["***"]


def test_a_secret_is_masked_as_it_is_sent_too() -> None:
    encoded = b"eC1hY2Nlc3MtdG9rZW46dDBrM24="
    assert Collected("x-access-token:t0k3n").texts(encoded + b"\n") == ["***"]


@pytest.mark.parametrize("offset", range(-105, 4, 6))
def test_a_secret_across_the_cut_leaves_no_part(offset: int) -> None:
    # Longer than the mark, which would hide a shorter one.
    secret = "QWERTYUIOP" * 10
    text = b"x" * (LINE_BYTES + offset) + secret.encode() + b"x" * 50 + b"\n"
    (line,) = Collected(secret).texts(text)
    assert "Q" not in line


def test_masking_shortens_no_line_so_far_that_a_part_comes_in() -> None:
    secret = "QWERTYUIOP" * 10
    text = (secret + "." * 60).encode() * 120
    for shift in range(0, 160, 7):
        (line,) = Collected(secret).texts(b"-" * shift + text + b"\n")
        assert "Q" not in line


def test_a_message_names_no_user_of_an_address() -> None:
    message = Redactor(["t0k3n"]).message("fatal: https://me:t0k3n@git.example.org/a: t0k3n")
    assert message == "fatal: https://***@git.example.org/a: ***"


def test_a_log_ends_after_so_many_lines_however_short() -> None:
    collected = Collected()
    texts = collected.texts(b"\n" * (RUN_LINES + 10), b"more\n")
    assert len(texts) == RUN_LINES + 1
    assert texts[-1] == FULL_MARK
