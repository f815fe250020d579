"""What the tests of the definitions share."""

from pathlib import Path

import pytest


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "home" / "automations"
    made.mkdir(parents=True)
    return made
