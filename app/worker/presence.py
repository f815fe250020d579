"""The worker's row among the nodes: that it is alive, and what hinders it."""

import threading

from app.clock import Clock, format_instant
from app.nodes.registry import NodeRegistry

SHOWN_FOR = 300.0
"""Seconds for which a hindrance is shown after it was last met."""


class Presence:
    """Keeps one node's row. :meth:`beat` and :meth:`leave` may raise DatabaseUnavailable."""

    def __init__(
        self, nodes: NodeRegistry, node_id: str, role: str, group: str | None, clock: Clock
    ) -> None:
        self._nodes = nodes
        self._id = node_id
        self._role = role
        self._group = group
        self._clock = clock
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._met = 0.0

    def hindered(self, reason: str) -> None:
        """Note that the database could not be worked with just now."""
        when = format_instant(self._clock.now().replace(microsecond=0))
        with self._lock:
            self._problem = f"The database could not be worked with at {when}: {reason}"
            self._met = self._clock.monotonic()

    def beat(self) -> None:
        """Say that the node is alive; register it first, or again if its row was taken away."""
        if not self._nodes.beat(self._id, self._shown()):
            self._nodes.register(self._id, self._role, self._group)

    def leave(self) -> None:
        """Take the row away, as the process ends in order."""
        self._nodes.remove(self._id)

    def _shown(self) -> str | None:
        with self._lock:
            recent = self._clock.monotonic() - self._met < SHOWN_FOR
            return self._problem if recent else None
