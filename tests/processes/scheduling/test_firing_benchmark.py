"""The benchmark of firing runs, and prints each of its figures with its target."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_small_run_prints_every_figure_as_one_json_line() -> None:
    command = [
        *(sys.executable, "-m", "benchmarks.firing"),
        *("--scale", "0.001", "--database", "sqlite", "--only", "claims"),
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, text=True)
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["figure"] for line in lines] == [
        "one-expression",
        "500-expressions",
        "reconcile",
    ]
    for line in lines:
        assert line["benchmark"] == "firing" and line["database"] == "sqlite"
        assert line["ours"] > 0 and line["target"] > 0
