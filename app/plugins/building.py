"""``bellringer plugin build``: every check of a plugin, then its manifest.

The author's files are loaded in child processes, one for each, so that a file that hangs, crashes or exits
is named and harms nothing else.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import bellringer
from app.errors import PluginInvalid
from app.plugins import icons
from app.plugins.manifest import (
    FILE_NAME,
    Manifest,
    ManifestTrigger,
    from_document,
    integration_from,
    trigger_from,
)
from app.plugins.projects import Project, find_project
from bellringer import checking
from bellringer.errors import Fault
from bellringer.loading import COMMAND

LOAD_LIMIT = 20.0
"""Seconds that one file may take to load."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Built:
    """A build that went well: the manifest, where it was written, and what to look at."""

    manifest: Manifest
    path: Path
    warnings: tuple[str, ...]


def build(directory: Path, load_limit: float = LOAD_LIMIT) -> Built:
    """Check the plugin in ``directory`` and write its manifest.

    Raises PluginInvalid with everything that is wrong; then nothing is written.
    """
    project = find_project(directory)
    problems: list[str] = []
    warnings: list[str] = []
    triggers = _gather(project, "trigger", trigger_from, load_limit, problems, warnings)
    integrations = _gather(project, "integration", integration_from, load_limit, problems, warnings)
    copies = {}
    listed = []
    for file, trigger in triggers:
        path = _trigger_path(project, file)
        expected = f"{project.plugin}/{path}"
        if trigger.name != expected:
            problems.append(
                f"{project.shown(file)}: the name is {trigger.name!r}, but the file's place makes it "
                f"{expected!r}. Change one of the two."
            )
        try:
            shipped = icons.shipped_as(project, trigger.icon, path)
            copies[shipped] = icons.check(project, trigger.icon)
            listed.append(replace(trigger, icon=shipped))
        except icons.IconRefused as refused:
            problems.append(f"{project.shown(file)}: {refused}")
    problems += _duplicates(project, triggers)
    if problems:
        raise PluginInvalid(str(project.root), problems)
    if not triggers and not integrations:
        warnings.append("The plugin brings no trigger yet. 'bellringer trigger new' makes one.")
    brought = Manifest(
        project.plugin, project.version, tuple(listed), tuple(i for _, i in integrations)
    )
    # Read back, so that what is written is what an installation accepts.
    manifest = from_document(json.loads(brought.to_json()))
    for shipped, source in copies.items():
        icons.bring(project, source, shipped)
    target = project.directory / FILE_NAME
    _write_whole(target, manifest.to_json())
    return Built(manifest, target, tuple(warnings))


def _gather(
    project: Project,
    noun: str,
    read: Callable[[Any, list[Fault]], T | None],
    load_limit: float,
    problems: list[str],
    warnings: list[str],
) -> list[tuple[Path, T]]:
    """Load every file of a noun; return each with what it defines, in the order of their paths."""
    files = []
    for file in project.files(f"{noun}s"):
        if fault := _place_fault(project, noun, file):
            problems.append(f"{project.shown(file)}: {fault}")
        else:
            files.append(file)
    with ThreadPoolExecutor(max_workers=2) as pool:
        reports = list(pool.map(lambda file: _load(project, noun, file, load_limit), files))
    gathered = []
    for file, report in zip(files, reports, strict=True):
        shown = project.shown(file)
        if "error" in report:
            problems += [f"{shown}: {line}" for line in str(report["error"]).splitlines()]
            continue
        faults: list[Fault] = []
        value = read({**report["document"], "entry": report["entry"]}, faults)
        problems += [f"{shown}: {fault.field}: {fault.rule}" for fault in faults]
        warnings += [f"{shown}: {warning}" for warning in report["warnings"]]
        if value is not None:
            gathered.append((file, value))
    return gathered


def _place_fault(project: Project, noun: str, file: Path) -> str | None:
    """Return what is wrong with where a file lies, which decides its trigger's name."""
    if any(file.with_suffix("").rglob("*.py")):
        return (
            f"Python can't tell it from the folder {file.stem}/ beside it. Move it into the folder."
        )
    path = file.relative_to(project.directory / f"{noun}s").with_suffix("").as_posix()
    if rule := checking.path_fault(path):
        return f"The path {path} {rule}"
    if noun == "trigger" and (rule := checking.name_fault(f"{project.plugin}/{path}")):
        return f"The name {project.plugin}/{path} {rule}"
    return None


def _load(project: Project, noun: str, file: Path, limit: float) -> dict[str, Any]:
    """Return what a child process reports of one file: see ``bellringer.loading.report``."""
    sdk = str(Path(bellringer.__file__).parents[1])
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "report.json")
        arguments = (str(project.source), project.module(file), noun, str(target))
        child = subprocess.Popen(
            [sys.executable, "-B", "-P", "-c", COMMAND, sdk, *arguments],
            cwd=project.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            # The whole group: the file may have started processes of its own.
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return {"error": f"It did not load within {limit:g} s."}
        try:
            report = json.loads(target.read_text("utf-8"))
        except (OSError, ValueError):
            return {"error": f"It ended its process while loading (exit code {code})."}
        return report if isinstance(report, dict) else {"error": "It spoiled its own report."}


def _trigger_path(project: Project, file: Path) -> str:
    return file.relative_to(project.directory / "triggers").with_suffix("").as_posix()


def _duplicates(project: Project, triggers: list[tuple[Path, ManifestTrigger]]) -> list[str]:
    """Return a sentence for each name that two files use."""
    first: dict[str, Path] = {}
    found = []
    for file, trigger in triggers:
        other = first.setdefault(trigger.name, file)
        if other is not file:
            found.append(
                f"{project.shown(file)}: the name {trigger.name!r} is that of "
                f"{project.shown(other)} too."
            )
    return found


def _write_whole(target: Path, text: str) -> None:
    """Write a file so that nobody reads half of it."""
    written = target.with_name(target.name + ".new")
    written.write_text(text, "utf-8")
    written.replace(target)
