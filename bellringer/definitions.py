"""What a trigger is: ``@trigger``, and the frozen definition that it makes of a function.

All rules are checked when the author's file loads, and all that are broken come in one DefinitionError
that names the trigger and the fields. What depends on where the file lies is the build's to check.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NoReturn, Required, TypedDict, Unpack

from bellringer import checking
from bellringer.errors import DefinitionError, Fault
from bellringer.param_types import AppConfig, Integration
from bellringer.params import (
    SETTINGS_TAB,
    Declaration,
    Params,
    bind_all,
    tab_fault,
)

ICON_SUFFIXES = (".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp")


class PermissionFields(TypedDict, total=False):
    """What a trigger may ask for: kinds of integrations, and every app config value."""

    integrations: Sequence[str]
    appconfig: bool


class TriggerFields(TypedDict, total=False):
    """The fields of ``@trigger``; docs/event-triggers.md says what each is for."""

    name: Required[str]
    label: Required[str]
    icon: Required[str]
    description: str
    permissions: PermissionFields
    params: Mapping[str, Declaration]
    tabs: Sequence[str]
    retry: bool


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a trigger may reach beyond its own: integrations of these kinds, all of app config."""

    integrations: tuple[str, ...] = ()
    appconfig: bool = False

    def document(self) -> dict[str, Any]:
        """Return the permissions as JSON."""
        return {"integrations": list(self.integrations), "appconfig": self.appconfig}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All of a trigger but its code: what an author declared and a manifest holds.

    ``tabs`` are the steps in order, those of the params and no other; ``warnings`` say what the author may
    not have meant.
    """

    name: str
    label: str
    icon: str
    description: str | None
    permissions: Permissions
    params: Params
    tabs: tuple[str, ...]
    retry: bool
    warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the shape as JSON, its warnings left out."""
        return {
            "name": self.name,
            "label": self.label,
            "description": self.description,
            "icon": self.icon,
            "permissions": self.permissions.document(),
            "params": [param.document() for param in self.params],
            "tabs": list(self.tabs),
            "retry": self.retry,
        }


@dataclass(frozen=True, slots=True, eq=False)
class TriggerDefinition:
    """A trigger: its shape, and ``start``, which starts an instance and returns its stop function.

    ``module`` is the name of the module that defines it.
    """

    shape: Shape
    start: Callable[[Any], Any]
    module: str

    @property
    def function(self) -> Callable[[Any], Any]:
        """The decorated function."""
        return self.start

    @property
    def name(self) -> str:
        """The trigger's kind, as in ``acme/shop/orders/new``."""
        return self.shape.name

    @property
    def params(self) -> Params:
        """The trigger's params; ``params.resolve(values)`` makes what ``ctx.params`` is."""
        return self.shape.params


def trigger(
    *misplaced: NoReturn, **fields: Unpack[TriggerFields]
) -> Callable[[Callable[[Any], Any]], TriggerDefinition]:
    """Declare the trigger of a file; the decorated function, async or plain, is its ``start``.

    ``start(ctx)`` opens the source, or starts a loop in the background, and returns the function that
    stops what it started. It must not wait for the first event. One trigger to a file.

    Raises DefinitionError with every rule that is broken.
    """
    if misplaced:
        rule = 'is given by name, as in @trigger(name="acme/shop/orders/new", …).'
        raise DefinitionError("trigger", [Fault("name", rule)])

    def define(start: Callable[[Any], Any]) -> TriggerDefinition:
        faults: list[Fault] = []
        shape = shape_of(fields, faults)
        wrong = checking.callable_faults("start", start, "ctx")
        home = sys._getframe(1).f_globals
        faults += wrong or checking.alone_faults(start, home, TriggerDefinition, "trigger")
        if shape is None or faults:
            named = fields.get("name")
            known = (
                repr(named) if named else f"without a name, of {checking.function_name(start)}()"
            )
            raise DefinitionError(f"trigger {known}", faults)
        return TriggerDefinition(shape, start, home.get("__name__", ""))

    return define


def shape_of(fields: Mapping[str, Any], faults: list[Fault]) -> Shape | None:
    """Return the shape that the fields make, or None after appending all that is wrong to ``faults``."""
    own = [
        Fault("stop", "does not exist: an instance's clean-up is the function that start returns.")
        for name in fields
        if name == "stop"
    ]
    named = [name for name in fields if name != "stop"]
    own += checking.unknown_faults(named, TriggerFields.__annotations__)
    own += checking.required_faults(fields, ("name", "label", "icon"))
    for name, rule_of in _RULES.items():
        if fields.get(name) is not None and (rule := rule_of(fields[name])):
            own.append(Fault(name, rule))
    permissions = _permissions(_or_default(fields, "permissions", {}), own)
    params = bind_all(_or_default(fields, "params", {}), own)
    own += _ungranted(params, permissions)
    warnings: list[str] = []
    tabs = _tabs(_or_default(fields, "tabs", ()), params, own, warnings, "tabs" in fields)
    if own:
        faults += own
        return None
    return Shape(
        name=fields["name"],
        label=fields["label"],
        icon=fields["icon"],
        description=fields.get("description"),
        permissions=permissions,
        params=params,
        tabs=tabs,
        retry=_or_default(fields, "retry", False),
        warnings=tuple(warnings),
    )


def icon_fault(value: object) -> str | None:
    """Return what is wrong with an icon's path; whether the file is there is the build's to check."""
    if not isinstance(value, str):
        return "is a path, as in icons/orders.svg."
    path = PurePosixPath(value)
    if path.is_absolute() or "\\" in value or "\0" in value:
        return "is a path relative to the plugin's package, with '/', as in icons/orders.svg."
    if path.suffix not in ICON_SUFFIXES:
        return f"ends in one of {', '.join(ICON_SUFFIXES)}."
    return None


_RULES: dict[str, Callable[[object], str | None]] = {
    "name": checking.name_fault,
    "label": lambda value: checking.line_fault(value, checking.LABEL_LIMIT),
    "description": lambda value: checking.line_fault(value, checking.DESCRIPTION_LIMIT),
    "icon": icon_fault,
    "retry": checking.flag_fault,
}


def _or_default(fields: Mapping[str, Any], name: str, default: Any) -> Any:
    value = fields.get(name)
    return default if value is None else value


def _permissions(given: object, faults: list[Fault]) -> Permissions:
    if not isinstance(given, Mapping):
        example = '{"integrations": ["database"], "appconfig": True}'
        faults.append(Fault("permissions", f"is a mapping, as in {example}."))
        return Permissions()
    own = checking.unknown_faults(given, PermissionFields.__annotations__, "permissions.")
    kinds, appconfig = given.get("integrations", []), given.get("appconfig", False)
    if not isinstance(kinds, list | tuple):
        own.append(Fault("permissions.integrations", "is a list of kinds."))
        kinds = []
    for kind in kinds:
        if rule := checking.kind_fault(kind):
            own.append(Fault("permissions.integrations", f"each {rule}"))
    if not own and len(set(kinds)) < len(kinds):
        own.append(Fault("permissions.integrations", "names each kind once."))
    if wrong := checking.flag_fault(appconfig):
        own.append(Fault("permissions.appconfig", wrong))
    faults += own
    return Permissions() if own else Permissions(tuple(kinds), appconfig)


def _ungranted(params: Params, permissions: Permissions) -> list[Fault]:
    faults = []
    for param in params:
        field = f"params.{param.name}"
        if isinstance(param, Integration) and param.kind not in permissions.integrations:
            rule = f"needs {param.kind!r} in permissions['integrations']."
            faults.append(Fault(field, rule))
        if isinstance(param, AppConfig) and not permissions.appconfig:
            faults.append(Fault(field, "needs permissions['appconfig'] to be True."))
    return faults


def _tabs(
    given: object, params: Params, faults: list[Fault], warnings: list[str], listed: bool
) -> tuple[str, ...]:
    """Return the steps in order: Settings if a param is in it, those listed, then those left out."""
    if not isinstance(given, list | tuple):
        faults.append(Fault("tabs", "is a list of names."))
        return ()
    for tab in given:
        if rule := tab_fault(tab):
            faults.append(Fault("tabs", f"each tab {rule}"))
            return ()
    if len(set(given)) < len(given):
        faults.append(Fault("tabs", "names each tab once."))
        return ()
    used = list(dict.fromkeys(param.tab or SETTINGS_TAB for param in params))
    if SETTINGS_TAB in given[1:]:
        warnings.append(f"tabs: {SETTINGS_TAB!r} always comes first.")
    for tab in given:
        if tab not in used:
            warnings.append(f"tabs: no param uses {tab!r}.")
    for tab in used:
        if listed and tab not in given and tab != SETTINGS_TAB:
            warnings.append(f"tabs: {tab!r} is used by a param but not listed; it comes last.")
    ordered = [tab for tab in given if tab in used]
    ordered += [tab for tab in used if tab not in given]
    return tuple(sorted(ordered, key=lambda tab: tab != SETTINGS_TAB))
