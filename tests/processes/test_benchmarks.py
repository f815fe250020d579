"""The benchmarks of the definitions run, at a scale that measures nothing."""

import json
import subprocess
import sys

import pytest

from tests.support.alembic_cli import CHECKOUT

KEYS = {"benchmark", "figure", "database", "ours", "baseline", "unit", "ratio", "target"}


@pytest.mark.parametrize("name", ["pages", "replaces", "import_"])
def test_a_smoke_run_prints_a_line_of_json_per_figure(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--scale", "0.001"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"sqlite"} <= {figure["database"] for figure in figures}
    for figure in figures:
        assert set(figure) == KEYS
        assert figure["ours"] > 0
        assert figure["baseline"] > 0
