"""Kinds of integrations that a plugin brings: ``@integration`` and what its function returns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Required, TypedDict, Unpack

from bellringer import checking
from bellringer.errors import DefinitionError, Fault
from bellringer.param_types import AppConfig, Integration
from bellringer.params import Declaration, Params, bind_all


class IntegrationFields(TypedDict, total=False):
    """The fields of ``@integration``: the kind, its variant, what people read, and the settings."""

    kind: Required[str]
    label: Required[str]
    variant: str
    description: str
    settings: Mapping[str, Declaration]


@dataclass(frozen=True, slots=True)
class Client:
    """An open client: what triggers use, how it is closed, and the variant's own client, if another.

    ``close`` may be async or plain.
    """

    client: Any
    close: Callable[[], object]
    raw: Any = None


@dataclass(frozen=True, slots=True)
class IntegrationDefinition:
    """A kind of integration: ``open(settings)`` connects and returns a Client.

    Secret settings reach ``open`` as the values that their keys stand for.
    """

    kind: str
    variant: str
    label: str
    description: str | None
    settings: Params
    open: Callable[[Any], Any]

    def document(self) -> dict[str, Any]:
        """Return all of it but the code as JSON."""
        return {
            "kind": self.kind,
            "variant": self.variant,
            "label": self.label,
            "description": self.description,
            "settings": [param.document() for param in self.settings],
        }


def integration(
    *misplaced: NoReturn, **fields: Unpack[IntegrationFields]
) -> Callable[[Callable[[Any], Any]], IntegrationDefinition]:
    """Declare the integration of a file; the decorated function, async or plain, opens it.

    The kind is the plugin's name and a name of its own, as in ``acme/shop/crm``; the variant is the
    label unless given. One integration to a file. Raises DefinitionError with every rule that is broken.
    """
    if misplaced:
        rule = 'is given by name, as in @integration(kind="acme/shop/crm", …).'
        raise DefinitionError("integration", [Fault("kind", rule)])

    def define(opener: Callable[[Any], Any]) -> IntegrationDefinition:
        faults: list[Fault] = []
        definition = definition_of(fields, opener, faults)
        wrong = checking.callable_faults("open", opener, "settings")
        faults += wrong or checking.alone_faults(
            opener, IntegrationDefinition, "open", "integration"
        )
        if definition is None or faults:
            named = fields.get("kind")
            known = (
                repr(named) if named else f"without a kind, of {checking.function_name(opener)}()"
            )
            raise DefinitionError(f"integration {known}", faults)
        return definition

    return define


def definition_of(
    fields: Mapping[str, Any], opener: Callable[[Any], Any], faults: list[Fault]
) -> IntegrationDefinition | None:
    """Return the definition, or None after appending all that is wrong to ``faults``."""
    own = checking.unknown_faults(fields, IntegrationFields.__annotations__)
    own += checking.required_faults(fields, ("kind", "label"))
    for name, rule_of in _RULES.items():
        if fields.get(name) is not None and (rule := rule_of(fields[name])):
            own.append(Fault(name, rule))
    given = fields.get("settings")
    settings = bind_all({} if given is None else given, own, "settings")
    own += [
        Fault(f"settings.{setting.name}", "is no setting that an integration can have.")
        for setting in settings
        if isinstance(setting, Integration | AppConfig)
    ]
    if own:
        faults += own
        return None
    return IntegrationDefinition(
        kind=fields["kind"],
        variant=fields.get("variant") or fields["label"],
        label=fields["label"],
        description=fields.get("description"),
        settings=settings,
        open=opener,
    )


def _kind_fault(value: object) -> str | None:
    fault = checking.kind_fault(value) or checking.name_fault(value)
    return fault and "is the plugin's name and a name of its own, as in acme/shop/crm."


def _variant_fault(value: object) -> str | None:
    fault = checking.line_fault(value, checking.KIND_LIMIT)
    return fault or checking.reserved_fault(str(value))


_RULES: dict[str, Callable[[object], str | None]] = {
    "kind": _kind_fault,
    "variant": _variant_fault,
    "label": lambda value: checking.line_fault(value, checking.KIND_LIMIT),
    "description": lambda value: checking.line_fault(value, checking.DESCRIPTION_LIMIT),
}
