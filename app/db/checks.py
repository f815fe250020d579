"""CHECK conditions that say the same on SQLite, PostgreSQL and MariaDB.

SQLite gets GLOB, since a CHECK with REGEXP breaks every shell that lacks the function. PostgreSQL and
MariaDB get the *negated* class: ``REGEXP '^[a-z]*$'`` would accept a trailing newline on MariaDB.

Migrations are built from these, so a condition here never changes its meaning: a new rule is a new
function, and a changed CHECK gets a new name.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Integer, and_, column, func, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler


class _OnText(ColumnElement[Any]):
    """Something that SQL says of one text column."""

    inherit_cache = False

    def __init__(self, column_name: str, characters: str = "") -> None:
        self.column: ColumnElement[str] = column(column_name)
        self.characters = characters


class _Length(_OnText):
    """The number of characters, not of bytes."""

    type = Integer()


class _Only(_OnText):
    """True if every character is one of the class ``characters``."""

    type = Boolean()


class _Starts(_OnText):
    """True if the first character is one of the class ``characters``."""

    type = Boolean()


@compiles(_Length)
def _length(element: _Length, compiler: SQLCompiler, **kw: Any) -> str:
    name = "length" if compiler.dialect.name == "sqlite" else "char_length"
    return f"{name}({compiler.process(element.column, **kw)})"


@compiles(_Only)
def _only(element: _Only, compiler: SQLCompiler, **kw: Any) -> str:
    text = compiler.process(element.column, **kw)
    match compiler.dialect.name:
        case "sqlite":
            return f"{text} NOT GLOB '*[^{element.characters}]*'"
        case "postgresql":
            return f"{text} !~ '[^{element.characters}]'"
        case _:
            return f"{text} NOT REGEXP '(?-i)[^{element.characters}]'"


@compiles(_Starts)
def _starts(element: _Starts, compiler: SQLCompiler, **kw: Any) -> str:
    text = compiler.process(element.column, **kw)
    match compiler.dialect.name:
        case "sqlite":
            return f"substr({text}, 1, 1) GLOB '[{element.characters}]'"
        case "postgresql":
            return f"{text} ~ '^[{element.characters}]'"
        case _:
            return f"{text} REGEXP '(?-i)^[{element.characters}]'"


def length(column_name: str, at_least: int, at_most: int) -> ColumnElement[bool]:
    """Hold the column between ``at_least`` and ``at_most`` characters."""
    return _Length(column_name).between(at_least, at_most)


def length_is(column_name: str, exactly: int) -> ColumnElement[bool]:
    """Hold the column at ``exactly`` so many characters."""
    return _Length(column_name) == exactly


def at_most(column_name: str, characters: int) -> ColumnElement[bool]:
    """Hold the column at or below ``characters`` characters."""
    return _Length(column_name) <= characters


def only(column_name: str, characters: str) -> ColumnElement[bool]:
    """Allow only characters of the class, written as between the brackets of a pattern."""
    return _Only(column_name, characters)


def starts(column_name: str, characters: str) -> ColumnElement[bool]:
    """Demand a first character of the class, written as between the brackets of a pattern."""
    return _Starts(column_name, characters)


def not_blank(column_name: str) -> ColumnElement[bool]:
    """Demand something besides spaces. SQL's trim knows no other white space."""
    return func.length(func.trim(column(column_name))) > 0


def flag(column_name: str) -> ColumnElement[bool]:
    """Hold the column at 0 or 1."""
    return column(column_name).in_([0, 1])


def one_of(column_name: str, values: Sequence[str]) -> ColumnElement[bool]:
    """Hold the column at one of ``values``."""
    return column(column_name).in_(list(values))


def between(column_name: str, low: int, high: int) -> ColumnElement[bool]:
    """Hold a number between ``low`` and ``high``, both included."""
    return column(column_name).between(low, high)


def at_least(column_name: str, low: int) -> ColumnElement[bool]:
    """Hold a number at or above ``low``."""
    return column(column_name) >= low


def together(first: str, second: str) -> ColumnElement[bool]:
    """Demand that two columns are NULL both or neither."""
    one: ColumnElement[object] = column(first)
    other: ColumnElement[object] = column(second)
    return or_(and_(one.is_(None), other.is_(None)), and_(one.is_not(None), other.is_not(None)))
