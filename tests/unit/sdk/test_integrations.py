"""``@integration``: the kinds that a plugin brings."""

from typing import Any

import pytest

from bellringer import DefinitionError, IntegrationDefinition, integration, param

FIELDS: dict[str, Any] = {"kind": "acme/shop/crm", "label": "Acme CRM"}
KIND_RULE = "is the plugin's name and a name of its own, as in acme/shop/crm."


async def connect(settings: Any) -> None: ...


def define(opener: Any = connect, **changes: Any) -> IntegrationDefinition:
    fields = {name: value for name, value in {**FIELDS, **changes}.items() if value is not ...}
    definition: IntegrationDefinition = integration(**fields)(opener)
    return definition


def test_an_integration_says_what_it_is() -> None:
    definition = define(settings={"url": param.string(required=True), "token": param.secret()})
    assert definition.open is connect
    document = definition.shape.document()
    assert [setting["name"] for setting in document.pop("settings")] == ["url", "token"]
    assert document == {
        "kind": "acme/shop/crm", "variant": "Acme CRM", "label": "Acme CRM", "description": None,
    }  # fmt: skip


def test_a_variant_may_have_a_name_of_its_own() -> None:
    assert define(variant="Cloud").shape.variant == "Cloud"


@pytest.mark.parametrize(
    ("changes", "field", "rule"),
    [
        ({"kind": ...}, "kind", "is required."),
        ({"label": ...}, "label", "is required."),
        ({"kind": "database"}, "kind", KIND_RULE),
        ({"kind": "acme/shop"}, "kind", KIND_RULE),
        ({"kind": "acme/shop/" + "x" * 54}, "kind", KIND_RULE),
        ({"variant": "any"}, "variant", "'all', 'any' and names that start with '__' are reserved."),
        ({"variant": ""}, "variant", "is not blank."),
        ({"description": ""}, "description", "is not blank."),
        ({"settings": []}, "settings", "is a mapping of names to param.string() and its like."),
        ({"settings": {"a": param.number(min="x")}}, "settings.a.min",
         "is a finite number of at most 9007199254740991 either way."),
        ({"settings": {"a": param.appconfig()}}, "settings.a",
         "is no setting that an integration can have."),
        ({"settings": {"a": param.integration(kind="kv")}}, "settings.a",
         "is no setting that an integration can have."),
        ({"close": print}, "close",
         "does not exist. There are kind, label, variant, description, settings."),
        ({"opener": lambda: None}, "open", "takes one argument: settings."),
    ],
)  # fmt: skip
def test_a_wrong_field_names_itself_and_the_rule(
    changes: dict[str, Any], field: str, rule: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        define(**changes)
    [fault] = caught.value.faults
    assert (fault.field, fault.rule) == (field, rule)
    assert caught.value.subject.startswith("integration ")


def test_a_decorator_without_its_fields_says_so() -> None:
    with pytest.raises(DefinitionError, match="is given by name"):
        integration(connect)  # type: ignore[arg-type]
