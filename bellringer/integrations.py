"""Kinds of integrations that a plugin brings: ``@integration`` and what its function returns."""

import sys
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationShape:
    """All of a kind of integration but its code: what an author declared and a manifest holds."""

    kind: str
    variant: str
    label: str
    description: str | None
    settings: Params

    def document(self) -> dict[str, Any]:
        """Return the shape as JSON."""
        return {
            "kind": self.kind,
            "variant": self.variant,
            "label": self.label,
            "description": self.description,
            "settings": [param.document() for param in self.settings],
        }


@dataclass(frozen=True, slots=True, eq=False)
class IntegrationDefinition:
    """A kind of integration: its shape, and ``open(settings)``, which connects and returns a Client.

    Secret settings reach ``open`` as the values that their keys stand for. ``module`` is the name of the
    module that defines it.
    """

    shape: IntegrationShape
    open: Callable[[Any], Any]
    module: str

    @property
    def function(self) -> Callable[[Any], Any]:
        """The decorated function."""
        return self.open

    @property
    def settings(self) -> Params:
        """The settings that a configured integration has."""
        return self.shape.settings


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
        home = sys._getframe(1).f_globals
        shape = integration_shape_of(fields, faults)
        wrong = checking.callable_faults("open", opener, "settings")
        faults += wrong or checking.alone_faults(opener, home, IntegrationDefinition, "integration")
        if shape is None or faults:
            named = fields.get("kind")
            known = (
                repr(named) if named else f"without a kind, of {checking.function_name(opener)}()"
            )
            raise DefinitionError(f"integration {known}", faults)
        return IntegrationDefinition(shape, opener, home.get("__name__", ""))

    return define


def integration_shape_of(fields: Mapping[str, Any], faults: list[Fault]) -> IntegrationShape | None:
    """Return the shape that the fields make, or None after appending all that is wrong to ``faults``."""
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
    return IntegrationShape(
        kind=fields["kind"],
        variant=fields.get("variant") or fields["label"],
        label=fields["label"],
        description=fields.get("description"),
        settings=settings,
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
