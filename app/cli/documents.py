"""Reads what a command is to send, and refuses here what JSON has no form for."""

import json
import tomllib
from collections.abc import Callable
from typing import Any


def read_json(text: str) -> Any:
    """Return the value that ``text`` is the JSON of. Raises ValueError with a sentence."""
    return _sendable(json.loads, text)


def read_toml(text: str) -> Any:
    """Return the table that ``text`` is the TOML of. Raises ValueError with a sentence."""
    return _sendable(tomllib.loads, text)


def _sendable(parse: Callable[[str], Any], text: str) -> Any:
    try:
        value = parse(text)
        json.dumps(value, allow_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except TypeError as error:
        # Dates and times, which only TOML has.
        raise ValueError(str(error)) from None
    return value
