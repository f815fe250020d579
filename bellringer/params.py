"""A definition's params: declared by an author, bound to their names, resolved to settings.

A :class:`Declaration` is what an author wrote, unchecked; :func:`bind` makes it a frozen
:class:`~bellringer.param_types.Param` that keeps every rule, or says which it breaks. A value that is None
counts as not given.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from keyword import iskeyword
from typing import Any

from bellringer import checking
from bellringer.errors import Fault, ParamProblem, ParamsInvalid
from bellringer.param_types import TYPES, Param

SETTINGS_TAB = "Settings"
"""The step of the params that name no tab; it comes first."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_TAB_LIMIT = 60


@dataclass(frozen=True, slots=True)
class Declaration:
    """A param as its author wrote it: the type, and the fields, not yet checked."""

    type: str
    fields: Mapping[str, Any]


# --- values ----------------------------------------------------------------------------------------


class ParamValues:
    """The settings of one instance: ``ctx.params.table``, or ``ctx.params["table"]``."""

    __slots__ = ("__values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__values = dict(values)

    def __getattr__(self, name: str) -> Any:
        # Reserved names are no params, and copying asks for some before there are any values.
        if name.startswith(("__", "_ParamValues__")):
            raise AttributeError(name)
        try:
            return self.__values[name]
        except KeyError:
            listed = ", ".join(self.__values) or "none"
            raise AttributeError(f"There is no param {name!r}; there are: {listed}.") from None

    def __getitem__(self, name: str) -> Any:
        return self.__values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.__values)

    def __repr__(self) -> str:
        return f"<params {', '.join(self.__values)}>"


class Params(tuple[Param, ...]):
    """The params of one definition, in order."""

    __slots__ = ()

    def resolve(self, values: Mapping[str, Any]) -> ParamValues:
        """Return the settings that ``values`` make: defaults filled in, None where there is none.

        Raises ParamsInvalid with every value that is wrong, missing or unknown.
        """
        known = {param.name for param in self}
        problems = [
            ParamProblem(str(name), "unknown", "is no param of this trigger.")
            for name in values
            if name not in known
        ]
        settled: dict[str, Any] = {}
        for param in self:
            given = values.get(param.name)
            given = param.default if given is None else given
            if problem := _problem(param, given):
                problems.append(problem)
            else:
                settled[param.name] = None if given is None else param.value(given)
        if problems:
            raise ParamsInvalid(problems)
        return ParamValues(settled)


def _problem(param: Param, given: Any) -> ParamProblem | None:
    if given is None or (param.required and given == ""):
        return ParamProblem(param.name, "required", "is required.") if param.required else None
    if detail := param.fault(given):
        return ParamProblem(param.name, "invalid", detail)
    return None


# --- binding ---------------------------------------------------------------------------------------


def bind_all(declared: object, faults: list[Fault], prefix: str = "params") -> Params:
    """Return the params of a mapping of names to declarations; append what is wrong to ``faults``."""
    if not isinstance(declared, Mapping):
        faults.append(Fault(prefix, "is a mapping of names to param.string() and its like."))
        return Params()
    bound = []
    for name, declaration in declared.items():
        field = f"{prefix}.{name}"
        if rule := _name_fault(name):
            faults.append(Fault(field, rule))
        elif not isinstance(declaration, Declaration):
            faults.append(Fault(field, "is made with param.string() or its like."))
        else:
            own: list[Fault] = []
            param = bind(name, declaration, own)
            faults += [Fault(f"{field}.{f.field}", f.rule) for f in own]
            if param is not None:
                bound.append(param)
    return Params(bound)


def bind(name: str, declaration: Declaration, faults: list[Fault]) -> Param | None:
    """Return the param that a declaration makes, or None after appending what is wrong to ``faults``."""
    kind = TYPES.get(declaration.type)
    if kind is None:
        faults.append(Fault("type", f"is one of {', '.join(TYPES)}."))
        return None
    taken = {f.name: f for f in fields(kind) if f.name != "name"}
    given = {k: v for k, v in declaration.fields.items() if v is not None}
    own = checking.unknown_faults(given, taken)
    required = [f.name for f in taken.values() if f.default is MISSING and f.name != "label"]
    own += checking.required_faults(given, required)
    for field, rule_of in _SHARED_RULES.items():
        if field in given and (rule := rule_of(given[field])):
            own.append(Fault(field, rule))
    if not own:
        label = name.strip("_").replace("_", " ")
        param = kind(**{"name": name, "label": label[:1].upper() + label[1:] or name, **given})
        own += param.faults()
        if not own and param.default is not None and (rule := param.fault(param.default)):
            own.append(Fault("default", rule))
        if not own:
            return param
    faults += own
    return None


_SHARED_RULES: dict[str, Callable[[object], str | None]] = {
    "label": lambda value: checking.line_fault(value, checking.LABEL_LIMIT),
    "description": lambda value: checking.line_fault(value, checking.DESCRIPTION_LIMIT),
    "tab": lambda value: checking.line_fault(value, _TAB_LIMIT),
    "required": checking.flag_fault,
}


def tab_fault(value: object) -> str | None:
    """Return what is wrong with the name of a tab."""
    return _SHARED_RULES["tab"](value)


def _name_fault(name: object) -> str | None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "is a name of up to 63 letters, digits and '_', which does not start with a digit."
    if iskeyword(name):
        return "is a word of Python, so that ctx.params could not be asked for it."
    return checking.reserved_fault(name)
