"""How an author declares params: ``param.string(label="Table", required=True)``.

Each takes ``label`` (made from the name if left out), ``description``, ``required``, ``default``
and ``tab``, and what its own class in ``bellringer.param_types`` says. The rules are checked when the
definition is made, so that an error can name the trigger and the param.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict, Unpack

from bellringer.params import Declaration


class _Shared(TypedDict, total=False):
    label: str
    description: str
    required: bool
    tab: str


class _String(_Shared, total=False):
    default: str


class _Number(_Shared, total=False):
    default: float
    min: float
    max: float
    integer: bool


class _Boolean(_Shared, total=False):
    default: bool


class _Select(_Shared, total=False):
    default: str
    options: Required[Sequence[str] | Mapping[str, str]]


class _Json(_Shared, total=False):
    default: Any


class _Integration(_Shared, total=False):
    default: str
    kind: Required[str]
    variants: Sequence[str]


def string(**fields: Unpack[_String]) -> Declaration:
    """A text."""
    return Declaration("string", fields)


def number(**fields: Unpack[_Number]) -> Declaration:
    """A number from ``min`` to ``max``; with ``integer``, a whole one."""
    return Declaration("number", fields)


def boolean(**fields: Unpack[_Boolean]) -> Declaration:
    """A switch."""
    return Declaration("boolean", fields)


def select(**fields: Unpack[_Select]) -> Declaration:
    """One of ``options``: a list of values, or a mapping of values to what people read."""
    return Declaration("select", fields)


def json(**fields: Unpack[_Json]) -> Declaration:
    """Any JSON value but null."""
    return Declaration("json", fields)


def secret(**fields: Unpack[_String]) -> Declaration:
    """A secret: what is stored is ``cfg:KEY``, the name of an app config value."""
    return Declaration("secret", fields)


def integration(**fields: Unpack[_Integration]) -> Declaration:
    """The id of an integration of ``kind``, and of one of its ``variants`` if they are listed."""
    return Declaration("integration", fields)


def appconfig(**fields: Unpack[_String]) -> Declaration:
    """The key of an app config value."""
    return Declaration("appconfig", fields)
