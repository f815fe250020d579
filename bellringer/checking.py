"""Rules that more than one kind of definition keeps: texts, names, functions, unknown fields."""

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Protocol, TypeGuard

from bellringer.errors import Fault

NAME_LIMIT = 248
"""Characters of a trigger's name: it is stored as ``plugin:<name>`` in 255."""

LABEL_LIMIT = 100
DESCRIPTION_LIMIT = 500
KIND_LIMIT = 63

SAFE_INTEGER = 2**53 - 1
"""The largest integer that every reader of JSON keeps."""

_SEGMENT = re.compile(r"[a-z0-9][a-z0-9_-]*")
_PLUGIN_SEGMENT = re.compile(r"[a-z][a-z0-9_-]*")
_PLUGIN_LIMIT = 100
_RESERVED = frozenset({"all", "any"})


def required_faults(fields: Mapping[str, object], required: Iterable[str]) -> list[Fault]:
    """Return a fault for each required field that is left out."""
    return [Fault(name, "is required.") for name in required if fields.get(name) is None]


def unknown_faults(fields: Iterable[str], known: Collection[str], prefix: str = "") -> list[Fault]:
    """Return a fault for each field that does not exist, with the nearest that does."""
    faults = []
    for name in fields:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
            faults.append(Fault(f"{prefix}{name}", f"does not exist. {hint}"))
    return faults


def line_fault(value: object, limit: int) -> str | None:
    """Return what is wrong with a text that is shown on one line."""
    if not isinstance(value, str):
        return "is a string."
    if not value.strip():
        return "is not blank."
    if len(value) > limit:
        return f"has at most {limit} characters; this one has {len(value):,}."
    if not value.isprintable():
        return "is one line, without control characters."
    return None


def flag_fault(value: object) -> str | None:
    """Return what is wrong with a switch."""
    return None if isinstance(value, bool) else "is True or False."


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a number that JSON can hold: no bool, finite, no giant integer."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= SAFE_INTEGER


def plugin_fault(value: object) -> str | None:
    """Return what is wrong with a plugin's name."""
    if not isinstance(value, str):
        return "is a string."
    parts = value.split("/")
    if len(parts) != 2 or not all(_PLUGIN_SEGMENT.fullmatch(part) for part in parts):
        return (
            "is scope/name, as in acme/shop: two parts of a-z, 0-9, '_' and '-', "
            "each starting with a letter."
        )
    if len(value) > _PLUGIN_LIMIT:
        return f"has at most {_PLUGIN_LIMIT} characters; this one has {len(value):,}."
    return None


def name_fault(value: object) -> str | None:
    """Return what is wrong with a trigger's name."""
    if not isinstance(value, str):
        return "is a string."
    plugin, path = "/".join(value.split("/")[:2]), value.split("/")[2:]
    if plugin_fault(plugin) or not path or not all(_SEGMENT.fullmatch(part) for part in path):
        return (
            "is the plugin's name and the file's path under triggers/, as in "
            "acme/shop/orders/new: parts of a-z, 0-9, '_' and '-', all lowercase."
        )
    if len(value) > NAME_LIMIT:
        return f"has at most {NAME_LIMIT} characters; this one has {len(value):,}."
    return None


def path_fault(value: str) -> str | None:
    """Return what is wrong with a trigger's path under ``triggers/``, as in ``orders/new``."""
    if all(_SEGMENT.fullmatch(part) for part in value.split("/")):
        return None
    return "has parts of a-z, 0-9, '_' and '-' between slashes, as in orders/new, all lowercase."


def kind_fault(value: object) -> str | None:
    """Return what is wrong with the kind of an integration."""
    if not isinstance(value, str):
        return "is a string."
    if len(value) > KIND_LIMIT or not all(_SEGMENT.fullmatch(part) for part in value.split("/")):
        return (
            "is a kind such as 'database', or one that a plugin brings, such as 'acme/shop/crm'; "
            f"at most {KIND_LIMIT} characters."
        )
    return None


def reserved_fault(name: str) -> str | None:
    """Return what is wrong with a name of a param or a variant that Bellringer keeps for itself."""
    if name in _RESERVED or name.startswith("__"):
        return "'all', 'any' and names that start with '__' are reserved."
    return None


def callable_faults(field: str, fn: object, argument: str) -> list[Fault]:
    """Return what is wrong with a function, async or plain, that is called with one argument."""
    if not callable(fn):
        return [Fault(field, "is a function, async or plain.")]
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        return [Fault(field, "is a function that returns; this one yields.")]
    try:
        inspect.signature(fn).bind(object())
    except (TypeError, ValueError):
        return [Fault(field, f"takes one argument: {argument}.")]
    return []


class Defined(Protocol):
    """A definition: the module that made it, and the author's function."""

    @property
    def module(self) -> str:
        """The name of the module in which the decorator stands."""

    @property
    def function(self) -> Callable[..., Any]:
        """The decorated function."""


def alone_faults(
    fn: object, home: Mapping[str, Any], kind: type[Defined], noun: str
) -> list[Fault]:
    """Return a fault if the module with the globals ``home`` has a definition of this ``kind`` already.

    The same lines run again (a module that is loaded anew) are no second definition.
    """
    for name, other in list(home.items()):
        is_here = isinstance(other, kind) and other.module == home.get("__name__")
        if is_here and _place(other.function) != _place(fn):
            rule = f"defines a {noun} already: {name}. Put each into a file of its own."
            return [Fault("file", rule)]
    return []


def function_name(fn: object) -> str:
    """Return what people call a function."""
    return str(getattr(fn, "__qualname__", type(fn).__qualname__))


def _place(fn: object) -> tuple[str, int]:
    code = getattr(fn, "__code__", None)
    return (code.co_name, code.co_firstlineno) if code else (function_name(fn), id(fn))
