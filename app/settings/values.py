"""How the value of a setting is read from text; each reader raises ValueError with what it expects.

The messages never repeat the text, which may be a secret.
"""

import re
from collections.abc import Callable
from pathlib import Path

from app.database_url import normalize_url


def number(low: float, high: float, unit: str) -> Callable[[str], float]:
    """Read a number between ``low`` and ``high``, both included."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise ValueError(f"expected {unit} from {low:g} to {high:g}")
        return value

    return read


def integer(low: int, high: int, what: str = "a whole number") -> Callable[[str], int]:
    """Read a whole number between ``low`` and ``high``, both included."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise ValueError(f"expected {what} from {low} to {high}")
        return int(text)

    return read


def choice(*allowed: str) -> Callable[[str], str]:
    """Read one of ``allowed``."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return text

    return read


def matching(pattern: str, expected: str) -> Callable[[str], str]:
    """Read text that matches ``pattern`` as a whole; ``expected`` says it in words."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {expected}")
        return text

    return read


def seconds(low: float, high: float) -> Callable[[str], float]:
    """Read a length of time."""
    return number(low, high, "seconds")


def path(text: str) -> Path:
    """Read the path of a file or directory."""
    if not text or "\0" in text:
        raise ValueError("expected a path")
    return Path(text)


def address(text: str) -> str:
    """Read where to listen: ``host:port``, the host an IPv6 address in brackets if it is one."""
    host, _, port = text.rpartition(":")
    known_host = re.fullmatch(r"\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+", host)
    if not known_host or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65_535:
        raise ValueError("expected host:port, the port at most 65535")
    return text


def database_url(text: str) -> str:
    """Read a URL of a database that Bellringer knows."""
    normalize_url(text)
    return text
