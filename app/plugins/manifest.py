"""``bellringer.json``: what a plugin brings, for whoever must know it without running its code.

A manifest that is read keeps the same rules as the definitions that it was built from: it is judged by the
SDK's own checks.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from app.errors import PluginInvalid
from bellringer import checking
from bellringer.definitions import Shape, shape_of
from bellringer.errors import Fault
from bellringer.integrations import IntegrationShape, integration_shape_of
from bellringer.params import Declaration

FILE_NAME = "bellringer.json"
FORMAT = 1
SIZE_LIMIT = 4 * 1024 * 1024
"""Bytes of a manifest that is read."""

T = TypeVar("T")

VERSION_LIMIT = 100
_MODULE = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
_ENTRY = re.compile(rf"{_MODULE}:[^\W\d]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTrigger(Shape):
    """A trigger of a manifest: its shape, and ``entry``, where its code is (``module:name``)."""

    entry: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestIntegration(IntegrationShape):
    """A kind of integration of a manifest: its shape, and ``entry``, where its code is."""

    entry: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that a version of a plugin brings."""

    plugin: str
    version: str
    triggers: tuple[ManifestTrigger, ...]
    integrations: tuple[ManifestIntegration, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the manifest as JSON."""
        return {
            "manifest": FORMAT,
            "plugin": self.plugin,
            "version": self.version,
            "triggers": [{**t.document(), "entry": t.entry} for t in self.triggers],
            "integrations": [{**i.document(), "entry": i.entry} for i in self.integrations],
        }

    def to_json(self) -> str:
        """Return the text of ``bellringer.json``; the same manifest makes the same text."""
        return json.dumps(self.document(), indent=2, ensure_ascii=False) + "\n"


def from_json(text: str) -> Manifest:
    """Return the manifest that a text holds. Raises PluginInvalid with every rule it breaks."""
    if len(text) > SIZE_LIMIT:
        raise PluginInvalid(FILE_NAME, [f"It is larger than {SIZE_LIMIT:,} characters."])
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise PluginInvalid(FILE_NAME, ["It is no JSON."]) from None
    return from_document(document)


def from_document(document: object) -> Manifest:
    """Return the manifest that a JSON document holds. Raises PluginInvalid with every rule it breaks."""
    if not isinstance(document, dict) or document.get("manifest") != FORMAT:
        rule = f"It is no manifest of format {FORMAT}. Build the plugin with this release."
        raise PluginInvalid(FILE_NAME, [rule])
    faults = checking.unknown_faults(document, [*_FIELDS])
    plugin, version = document.get("plugin"), document.get("version")
    if wrong := checking.plugin_fault(plugin):
        faults.append(Fault("plugin", wrong))
    if wrong := checking.line_fault(version, VERSION_LIMIT):
        faults.append(Fault("version", wrong))
    listed = {name: document.get(name) for name in ("triggers", "integrations")}
    faults += [
        Fault(name, "is a list of objects.")
        for name, items in listed.items()
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items)
    ]
    if faults:
        raise PluginInvalid(FILE_NAME, [f"{f.field}: {f.rule}" for f in faults])
    manifest = Manifest(
        str(plugin),
        str(version),
        _each(listed["triggers"], "triggers", trigger_from, faults),
        _each(listed["integrations"], "integrations", integration_from, faults),
    )
    faults += _agreement(manifest)
    if faults:
        raise PluginInvalid(FILE_NAME, [f"{f.field}: {f.rule}" for f in faults])
    return manifest


_FIELDS = ("manifest", "plugin", "version", "triggers", "integrations")


def trigger_from(document: Mapping[str, Any], faults: list[Fault]) -> ManifestTrigger | None:
    """Return the trigger that a JSON object holds, or None after appending what is wrong."""
    given, entry = _given(document, "params", faults)
    shape = shape_of(given, faults)
    if shape is None or faults:
        return None
    kept = {f.name: getattr(shape, f.name) for f in fields(Shape)}
    return ManifestTrigger(**{**kept, "warnings": ()}, entry=entry)


def integration_from(
    document: Mapping[str, Any], faults: list[Fault]
) -> ManifestIntegration | None:
    """Return the integration that a JSON object holds, or None after appending what is wrong."""
    given, entry = _given(document, "settings", faults)
    shape = integration_shape_of(given, faults)
    if shape is None or faults:
        return None
    kept = {f.name: getattr(shape, f.name) for f in fields(IntegrationShape)}
    return ManifestIntegration(**kept, entry=entry)


def _given(
    document: Mapping[str, Any], listed: str, faults: list[Fault]
) -> tuple[dict[str, Any], str]:
    """Return the fields of a definition as an author would give them, and its entry."""
    given = {**document, listed: _declarations(document.get(listed), listed, faults)}
    entry = given.pop("entry", None)
    if not isinstance(entry, str) or not _ENTRY.fullmatch(entry):
        faults.append(Fault("entry", "is module:name."))
    return given, str(entry)


def _each(
    items: Any, field: str, read: Callable[[Any, list[Fault]], T | None], faults: list[Fault]
) -> tuple[T, ...]:
    """Return what is read from each item; append what is wrong, with the item's place."""
    values = []
    for index, item in enumerate(items):
        own: list[Fault] = []
        value = read(item, own)
        faults += [Fault(f"{field}.{index}.{fault.field}", fault.rule) for fault in own]
        if value is not None:
            values.append(value)
    return tuple(values)


def _declarations(listed: object, field: str, faults: list[Fault]) -> dict[str, Declaration]:
    """Return the declarations that a list of a manifest stands for, by name."""
    declared: dict[str, Declaration] = {}
    if not isinstance(listed, list):
        faults.append(Fault(field, "is a list of objects."))
        return declared
    for item in listed:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            faults.append(Fault(field, "is a list of objects, each with a name."))
            continue
        rest = {name: value for name, value in item.items() if name not in ("name", "type")}
        if item["name"] in declared:
            faults.append(Fault(f"{field}.{item['name']}", "is there twice."))
        declared[item["name"]] = Declaration(str(item.get("type")), rest)
    return declared


def _agreement(manifest: Manifest) -> list[Fault]:
    """Return what is wrong with the names of a manifest taken together."""
    faults = []
    named = [(f"triggers.{i}.name", t.name) for i, t in enumerate(manifest.triggers)]
    named += [
        (f"integrations.{i}.kind", f"{x.kind}, {x.variant}")
        for i, x in enumerate(manifest.integrations)
    ]
    seen: set[tuple[str, str]] = set()
    for field, name in named:
        if not name.startswith(manifest.plugin + "/"):
            faults.append(Fault(field, f"starts with {manifest.plugin}/."))
        if (field.split(".")[0], name) in seen:
            faults.append(Fault(field, f"is there twice: {name}."))
        seen.add((field.split(".")[0], name))
    return faults
