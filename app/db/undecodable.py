"""Reads rows whose text is not UTF-8, which only SQLite ever stores."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, Select
from sqlalchemy.exc import OperationalError


def rows_of(
    connection: Connection, query: Select[Any], parameters: Mapping[str, object] | None = None
) -> Sequence[Row[Any]]:
    """Return the rows; bytes that are no UTF-8 come as lone surrogates, for the domain to refuse."""
    try:
        return connection.execute(query, parameters).all()
    except OperationalError as error:
        if connection.dialect.name != "sqlite" or "decode to UTF-8" not in str(error.orig):
            raise
    driver: Any = connection.connection.driver_connection
    driver.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    try:
        return connection.execute(query, parameters).all()
    finally:
        driver.text_factory = str
