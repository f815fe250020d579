"""The alembic command, as an operator runs it from a checkout."""

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def alembic(
    url: str, *arguments: str, directory: Path = CHECKOUT
) -> subprocess.CompletedProcess[str]:
    """Run ``alembic`` for ``url`` and return what came of it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BELLRINGER_")}
    return subprocess.run(
        [str(Path(sys.executable).with_name("alembic")), *arguments],
        cwd=directory,
        env={**environment, "BELLRINGER_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def alembic_output(url: str, *arguments: str) -> str:
    """Run ``alembic``, which must succeed, and return its standard output."""
    done = alembic(url, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout
