"""Keeping secrets out of what leaves: log lines and messages."""

import base64
import re
from collections.abc import Iterable

MASK = "***"
_USERINFO = re.compile(r"(?<=://)[^/\s@]+@")


class Redactor:
    """Replaces known secrets wherever they stand.

    It guards against accidents, not against code that means to give a secret away: that could
    encode it in ways that nobody can list.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {secret for secret in secrets if secret}
        encoded = {base64.b64encode(secret.encode()).decode() for secret in known}
        self._secrets = tuple(
            sorted((secret.encode() for secret in known | encoded), key=len, reverse=True)
        )

    @property
    def longest(self) -> int:
        """The length of the longest secret in bytes."""
        return max(map(len, self._secrets), default=0)

    def line(self, raw: bytes) -> bytes:
        """Return ``raw`` with every secret masked."""
        for secret in self._secrets:
            raw = raw.replace(secret, MASK.encode())
        return raw

    def safe_cut(self, raw: bytes, length: int) -> int:
        """Return where to cut ``raw`` so that ``length`` is kept at most and no secret in part."""
        for secret in self._secrets:
            start = raw.find(secret, max(0, length - len(secret) + 1), length + len(secret) - 1)
            if 0 <= start < length:
                length = start
        return length

    def message(self, text: str) -> str:
        """Return ``text`` with every secret masked, and what stands before ``@`` in addresses."""
        return _USERINFO.sub(f"{MASK}@", self.line(text.encode()).decode("utf-8", "replace"))
