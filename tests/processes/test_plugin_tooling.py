"""From an empty folder, with the commands alone: a plugin that passes its own tests and builds."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BELLRINGER_DATABASE_URL": "nonsense"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def bellringer(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "app", *arguments, cwd=cwd)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "cache" not in str(path)
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin with two triggers, written by the commands in an empty folder."""
    empty = tmp_path_factory.mktemp("empty")
    written = bellringer("plugin", "new", "acme/shop", cwd=empty)
    assert written.returncode == 0, written.stderr
    folder = empty / "acme-shop"
    for path in ("orders/new", "from-2/import"):
        written = bellringer("trigger", "new", path, cwd=folder)
        assert written.returncode == 0, written.stderr
    return folder


@pytest.fixture
def scaffold(made: Path, tmp_path: Path) -> Path:
    """A copy of that plugin, for one test."""
    return Path(shutil.copytree(made, tmp_path / "acme-shop"))


def test_a_scaffold_passes_its_tests_builds_and_ships_its_manifest(scaffold: Path) -> None:
    tested = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=scaffold)
    assert tested.returncode == 0, tested.stdout
    assert "8 passed" in tested.stdout

    built = bellringer("plugin", "build", cwd=scaffold)
    assert (built.returncode, built.stderr) == (0, "")
    manifest = json.loads((scaffold / "acme_shop/bellringer.json").read_text())
    assert (manifest["plugin"], manifest["version"]) == ("acme/shop", "0.1.0")
    assert [(t["name"], t["label"], t["icon"], t["entry"]) for t in manifest["triggers"]] == [
        (
            "acme/shop/from-2/import",
            "From 2 import",
            "icons/from-2/import.svg",
            "acme_shop.triggers.from-2.import:start",
        ),
        (
            "acme/shop/orders/new",
            "Orders new",
            "icons/orders/new.svg",
            "acme_shop.triggers.orders.new:start",
        ),
    ]
    assert [param["name"] for param in manifest["triggers"][1]["params"]] == ["every", "batch"]

    wheel = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", cwd=scaffold)
    assert wheel.returncode == 0, wheel.stderr
    [file] = (scaffold / "dist").glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        [entry_points] = [n for n in names if n.endswith("entry_points.txt")]
        assert archive.read(entry_points).decode().split() == [
            "[bellringer.plugins]", "acme/shop", "=", "acme_shop",
        ]  # fmt: skip
    for shipped in ("bellringer.json", "icons/orders/new.svg", "triggers/orders/new.py"):
        assert f"acme_shop/{shipped}" in names


def test_a_build_as_json_prints_the_manifest(scaffold: Path) -> None:
    built = bellringer("plugin", "build", str(scaffold), "--json", cwd=ROOT)
    written = (scaffold / "acme_shop/bellringer.json").read_text()
    assert json.loads(built.stdout) == json.loads(written)


def test_nothing_is_overwritten_and_what_is_in_the_way_is_named(scaffold: Path) -> None:
    before = snapshot(scaffold)
    again = bellringer("trigger", "new", "orders/new", cwd=scaffold)
    assert again.returncode == 4
    assert "triggers/orders/new.py" in again.stderr and "test_new.py" in again.stderr
    again = bellringer("plugin", "new", "acme/shop", cwd=scaffold.parent)
    assert again.returncode == 4
    assert "acme-shop/pyproject.toml" in again.stderr
    assert snapshot(scaffold) == before


def test_one_file_in_the_way_is_enough_to_write_none(scaffold: Path) -> None:
    (scaffold / "acme_shop/icons/late.svg").write_text("mine")
    before = snapshot(scaffold)
    refused = bellringer("trigger", "new", "late", cwd=scaffold)
    assert refused.returncode == 4
    assert snapshot(scaffold) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("plugin", "new", "shop"),
        ("plugin", "new", "Acme/shop"),
        ("plugin", "new", "../x"),
        ("plugin", "new", "acme/" + "x" * 96),
        ("trigger", "new", "Orders/new"),
        ("trigger", "new", "../x"),
        ("trigger", "new", "x" * 240),
        ("trigger", "new", "_x"),
        ("trigger", "new", ""),
    ],
)
def test_wrong_names_are_refused_and_nothing_is_written(
    arguments: tuple[str, ...], tmp_path: Path, scaffold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(tmp_path)
    monkeypatch.chdir(scaffold)
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 1
    assert "does not fit" in refused.stderr
    assert snapshot(tmp_path) == before


def test_outside_a_plugin_a_trigger_is_refused_with_the_way_to_one(tmp_path: Path) -> None:
    refused = bellringer("trigger", "new", "orders/new", cwd=tmp_path)
    assert refused.returncode == 1
    assert "'bellringer plugin new' makes a plugin" in refused.stderr


def test_warnings_and_problems_go_to_standard_error(scaffold: Path) -> None:
    file = scaffold / "acme_shop/triggers/orders/new.py"
    source = file.read_text()
    file.write_text(source.replace("    params={", '    tabs=["Gone"],\n    params={'))
    built = bellringer("plugin", "build", cwd=scaffold)
    assert built.returncode == 0
    assert "warning: acme_shop/triggers/orders/new.py: tabs: no param uses 'Gone'." in built.stderr
    file.write_text(source.replace("    params={", "    retry=3,\n    params={"))
    broken = bellringer("plugin", "build", cwd=scaffold)
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "field 'retry': is True or False." in broken.stderr
    assert "Traceback" not in broken.stderr


def test_the_scaffold_is_formatted_and_its_project_can_be_read(scaffold: Path) -> None:
    project = tomllib.loads((scaffold / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["bellringer.plugins"] == {"acme/shop": "acme_shop"}
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    checked = run(str(ruff), "format", "--check", "--no-cache", ".", cwd=scaffold)
    assert checked.returncode == 0, checked.stdout
