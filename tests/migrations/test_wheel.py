"""The wheel brings its migrations along: no checkout is needed to migrate."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from app.db.migrating import head
from tests.support.alembic_cli import CHECKOUT


def test_an_installed_wheel_migrates_without_a_checkout(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(installed)
    for file in (CHECKOUT / "alembic").rglob("*.py*"):
        if "__pycache__" not in file.parts:
            assert f"app/migrations/{file.relative_to(CHECKOUT / 'alembic')}" in names
    assert {"bellringer/__init__.py", "bellringer/py.typed"} <= set(names)
    assert not any(name.startswith(("alembic/", "tests/")) for name in names)
    program = (
        "import app; from app.db import Database; from app.db.migrating import current, migrate;"
        "d = Database('sqlite:///new/x.db'); migrate(d); print(app.__file__, current(d))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(installed / "app" / "__init__.py"), head()]
