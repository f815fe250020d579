"""Reads a definition from a document, as JSON or TOML gave it, and says everything that is wrong.

Shape and rules are judged in one tolerant pass, so that all errors of a document come together; the
API and the legacy import both read through here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.automations import values
from app.automations.values import Draft, ScheduleTrigger, Target, judge
from app.errors import InvalidInput, Violation

_TARGET_RULES: Mapping[str, values.Rule] = {
    "repository": values.repository_fault,
    "ref": values.ref_fault,
    "workflow": values.workflow_fault,
}
_TRIGGER_FIELDS: Mapping[str, frozenset[str]] = {
    "api": frozenset({"type", "id", "enabled"}),
    "schedule": frozenset({"type", "id", "enabled", "expression"}),
}


def read_draft(document: object, *, enabled_required: bool = False) -> Draft:
    """Return the draft that ``document`` describes.

    A trigger's ``enabled`` may be left out, meaning true, unless ``enabled_required``. Raises
    InvalidInput with every violation, each with a JSON pointer into the document.
    """
    violations = list(_document_violations(document, enabled_required))
    if violations:
        raise InvalidInput(violations)
    assert isinstance(document, Mapping)
    triggers = document.get("triggers", [])
    target = document["target"]
    return Draft(
        name=document["name"],
        description=document.get("description"),
        target=Target(target["repository"], target["ref"], target["workflow"]),
        api_enabled=any(t["type"] == "api" and t.get("enabled", True) for t in triggers),
        schedules=tuple(
            ScheduleTrigger(t["id"], t.get("enabled", True), t["expression"])
            for t in triggers
            if t["type"] == "schedule"
        ),
    )


def _document_violations(document: object, enabled_required: bool) -> Iterator[Violation]:
    if not isinstance(document, Mapping):
        yield Violation("", "type", "An automation is an object.")
        return
    yield from _unknown(document, {"name", "description", "target", "triggers"}, "")
    yield from _field(document, "name", "", values.name_fault)
    if document.get("description") is not None:
        yield from judge("/description", document["description"], values.description_fault)
    yield from _target_violations(document)
    if "triggers" in document:
        yield from _triggers_violations(document["triggers"], enabled_required)


def _target_violations(document: Mapping[str, Any]) -> Iterator[Violation]:
    if "target" not in document:
        yield _missing("/target", "target")
        return
    target = document["target"]
    if not isinstance(target, Mapping):
        yield Violation("/target", "type", "A target is an object.")
        return
    yield from _unknown(target, set(_TARGET_RULES), "/target")
    for name, rule in _TARGET_RULES.items():
        yield from _field(target, name, "/target", rule)


def _triggers_violations(triggers: object, enabled_required: bool) -> Iterator[Violation]:
    if not isinstance(triggers, list):
        yield Violation("/triggers", "type", "Triggers are a list.")
        return
    schedules: list[tuple[str, str]] = []
    api_pointers: list[str] = []
    api_ids: set[str] = set()
    for index, trigger in enumerate(triggers):
        pointer = f"/triggers/{index}"
        yield from _trigger_violations(trigger, pointer, enabled_required)
        match trigger:
            case {"type": "api", **rest}:
                api_pointers.append(pointer)
                if rest.get("enabled", True) is True:
                    api_ids.add(values.API_TRIGGER_ID)
                    if isinstance(api_id := rest.get("id"), str):
                        api_ids.add(api_id)
            case {"type": "schedule", "id": str(trigger_id)}:
                schedules.append((trigger_id, f"{pointer}/id"))
    for pointer in api_pointers[1:]:
        yield Violation(pointer, "duplicate-api", "An automation has at most one API trigger.")
    yield from values.duplicate_ids(schedules, api_ids)


def _trigger_violations(
    trigger: object, pointer: str, enabled_required: bool
) -> Iterator[Violation]:
    if not isinstance(trigger, Mapping):
        yield Violation(pointer, "type", "A trigger is an object.")
        return
    if "type" not in trigger:
        yield _missing(f"{pointer}/type", "type")
        return
    kind = trigger["type"]
    if not isinstance(kind, str) or kind not in _TRIGGER_FIELDS:
        known = ", ".join(repr(k) for k in _TRIGGER_FIELDS)
        yield Violation(f"{pointer}/type", "unknown-type", f"A trigger's type is one of {known}.")
        return
    yield from _unknown(trigger, _TRIGGER_FIELDS[kind], pointer)
    yield from _field(trigger, "id", pointer, values.trigger_id_fault)
    if "enabled" in trigger:
        if not isinstance(trigger["enabled"], bool):
            yield Violation(f"{pointer}/enabled", "type", "This is true or false.")
    elif enabled_required:
        yield _missing(f"{pointer}/enabled", "enabled")
    if kind == "schedule":
        yield from _field(trigger, "expression", pointer, values.expression_fault)


def _field(
    document: Mapping[str, Any], name: str, pointer: str, rule: values.Rule
) -> Iterator[Violation]:
    if name in document:
        yield from judge(f"{pointer}/{name}", document[name], rule)
    else:
        yield _missing(f"{pointer}/{name}", name)


def _missing(pointer: str, name: str) -> Violation:
    return Violation(pointer, "required", f"The field {name!r} is required.")


def _unknown(
    document: Mapping[str, Any], known: set[str] | frozenset[str], pointer: str
) -> Iterator[Violation]:
    for name in document:
        if name not in known:
            token = str(name).replace("~", "~0").replace("/", "~1")
            listed = ", ".join(sorted(known))
            yield Violation(
                f"{pointer}/{token}", "unknown-field", f"There is no such field; known: {listed}."
            )
