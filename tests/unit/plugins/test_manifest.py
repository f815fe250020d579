"""``bellringer.json`` read and written: nothing gets lost, and nothing wrong gets in."""

import copy
import json
from typing import Any

import pytest

from app.errors import PluginInvalid
from app.plugins.manifest import from_document, from_json

TRIGGER: dict[str, Any] = {
    "name": "acme/shop/orders/new",
    "label": "New orders",
    "description": "Each order once.",
    "icon": "icons/orders.svg",
    "permissions": {"integrations": ["database"], "appconfig": True},
    "params": [
        {
            "name": "database", "type": "integration", "label": "Database", "description": None,
            "required": True, "default": None, "tab": "Where", "kind": "database",
            "variants": ["PostgreSQL"],
        },
        {
            "name": "every", "type": "number", "label": "Every", "description": "Seconds.",
            "required": False, "default": 2.5, "tab": None, "min": 1, "max": None,
            "integer": False,
        },
        {
            "name": "mode", "type": "select", "label": "Mode", "description": None,
            "required": False, "default": "a", "tab": None, "options": {"a": "First", "b": "Then"},
        },
        {
            "name": "filter", "type": "json", "label": "Filter", "description": None,
            "required": False, "default": {"a": [1, None]}, "tab": None,
        },
        {
            "name": "region", "type": "appconfig", "label": "Region", "description": None,
            "required": False, "default": None, "tab": None,
        },
    ],
    "tabs": ["Settings", "Where"],
    "retry": True,
    "entry": "acme_shop.triggers.orders.new:start",
}  # fmt: skip

DOCUMENT: dict[str, Any] = {
    "manifest": 1,
    "plugin": "acme/shop",
    "version": "0.1.0",
    "triggers": [TRIGGER],
    "integrations": [
        {
            "kind": "acme/shop/crm",
            "variant": "Acme CRM",
            "label": "Acme CRM",
            "description": None,
            "settings": [
                {
                    "name": "token", "type": "secret", "label": "Token", "description": None,
                    "required": True, "default": None, "tab": None,
                }
            ],
            "entry": "acme_shop.integrations.crm:connect",
        }
    ],
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the document with what stands at ``path`` (``triggers.0.name``) replaced."""
    document = copy.deepcopy(DOCUMENT)
    *outer, last = path.split(".")
    place: Any = document
    for part in outer:
        place = place[int(part)] if part.isdigit() else place[part]
    place[last] = value
    return document


def test_what_was_written_is_read_back() -> None:
    manifest = from_document(DOCUMENT)
    assert manifest.document() == DOCUMENT
    assert from_json(manifest.to_json()) == manifest
    assert manifest.to_json() == from_json(manifest.to_json()).to_json()


def test_values_are_judged_without_the_plugins_code() -> None:
    [trigger] = from_document(DOCUMENT).triggers
    values = trigger.params.resolve({"database": "shop-db"})
    assert (values.every, values.mode, values.filter) == (2.5, "a", {"a": [1, None]})
    assert trigger.entry == "acme_shop.triggers.orders.new:start"


WRONG: list[tuple[str, Any, str]] = [
    ("manifest", 2, "It is no manifest of format 1. Build the plugin with this release."),
    ("plugin", "Acme", "plugin: is scope/name, as in acme/shop: two parts of a-z, 0-9, '_' and "
     "'-', each starting with a letter."),
    ("plugin", "acme/other", "triggers.0.name: starts with acme/other/."),
    ("version", None, "version: is a string."),
    ("version", "", "version: is not blank."),
    ("triggers", {}, "triggers: is a list of objects."),
    ("triggers", [5], "triggers: is a list of objects."),
    ("integrations", None, "integrations: is a list of objects."),
    ("extra", 1, "extra: does not exist. There are manifest, plugin, version, triggers, integrations."),
    ("triggers", [TRIGGER, TRIGGER], "triggers.1.name: is there twice: acme/shop/orders/new."),
    ("triggers.0.label", "", "triggers.0.label: is not blank."),
    ("triggers.0.entry", "orders.py", "triggers.0.entry: is module:name."),
    ("triggers.0.entry", None, "triggers.0.entry: is module:name."),
    ("triggers.0.entry", "os.system('x'):y", "triggers.0.entry: is module:name."),
    ("triggers.0.params", {}, "triggers.0.params: is a list of objects."),
    ("triggers.0.params", [5], "triggers.0.params: is a list of objects, each with a name."),
    ("triggers.0.params.1.type", "js", "triggers.0.params.every.type: is one of string, number, "
     "boolean, select, json, secret, integration, appconfig."),
    ("triggers.0.params.1.type", None, "triggers.0.params.every.type: is one of string, number, "
     "boolean, select, json, secret, integration, appconfig."),
    ("triggers.0.params.1.default", 0, "triggers.0.params.every.default: must be a number of at "
     "least 1."),
    ("triggers.0.params.1.name", "mode", "triggers.0.params.mode: is there twice."),
    ("triggers.0.permissions", {}, "triggers.0.params.database: needs 'database' in "
     "permissions['integrations']."),
    ("integrations.0.kind", "acme/other/crm", "integrations.0.kind: starts with acme/shop/."),
    ("integrations.0.settings.0.type", "appconfig", "integrations.0.settings.token: is no setting "
     "that an integration can have."),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "problem"), WRONG)
def test_a_wrong_manifest_is_refused_with_the_place(path: str, value: Any, problem: str) -> None:
    with pytest.raises(PluginInvalid) as caught:
        from_document(changed(path, value))
    assert caught.value.subject == "bellringer.json"
    assert problem in caught.value.problems


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nul"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(PluginInvalid, match="It is no JSON"):
        from_json(text)


@pytest.mark.parametrize("document", [None, [], 5, "x", {}])
def test_what_is_no_manifest_is_refused(document: object) -> None:
    with pytest.raises(PluginInvalid, match="It is no manifest of format 1"):
        from_json(json.dumps(document))


def test_a_giant_is_not_even_read() -> None:
    with pytest.raises(PluginInvalid, match="larger than 4,194,304 characters"):
        from_json(" " * (4 * 1024 * 1024 + 1))
