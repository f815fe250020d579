"""Legacy directories to import, and what is in them before and after."""

from collections.abc import Mapping
from pathlib import Path

from app.automations.legacy import ImportReport, import_directory
from app.db import Database
from tests.support.drafts import SteppedClock

GOOD = """\
name = "Nightly"
description = "Cut a build"  # a comment is part of the bytes

[target]
repository = "acme/shop"
ref = "main"
workflow = "release"

[[triggers]]
type = "schedule"
id = "nightly"
enabled = true
expression = "0  3 * * *"

[[triggers]]
type = "api"
id = "press-me"
enabled = true
"""
MINIMAL = 'name = "n"\ntarget = { repository = "acme/shop", ref = "main", workflow = "w" }\n'
STAMP = "automations.imported-20260101T120000Z"


def run(database: Database, directory: Path, **options) -> ImportReport:
    return import_directory(database, directory, SteppedClock(), **options)


def listing(directory: Path) -> Mapping[str, bytes | None]:
    return {
        str(p.relative_to(directory)): p.read_bytes()
        if p.is_file() and not p.is_symlink()
        else None
        for p in sorted(directory.rglob("*"))
    }
