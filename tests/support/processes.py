"""Small programs of a few lines, run in processes of their own."""

import subprocess
import sys
from collections.abc import Sequence

from tests.support.alembic_cli import CHECKOUT


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start ``program`` with the checkout on its path; whoever starts it waits for it."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outputs(processes: Sequence[subprocess.Popen[str]], seconds: float = 60) -> list[str]:
    """Let all go on at once, by an end of their input, and return what each printed.

    Each must succeed, and says ``ready`` first where it waits for the others.
    """
    try:
        printed = []
        for process in processes:
            out, errors = process.communicate(timeout=seconds)
            assert process.returncode == 0, errors
            printed.append(out.strip())
        return printed
    finally:
        for process in processes:
            process.kill()


def release(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Wait until each has said ``ready``, then let them go on together."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
