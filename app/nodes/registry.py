"""Keeps one row per live process, so that people and other nodes see who is at work."""

import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import PackageNotFoundError, version

from sqlalchemy import Connection, delete, insert, select, update

from app.db import Database
from app.nodes.models import nodes

FORGOTTEN_AFTER = timedelta(days=1)
"""How long the row of a node that fell silent is kept for people to see."""


@dataclass(frozen=True, slots=True)
class Node:
    """A process as its row has it; ``problem`` is what hinders it now, or None."""

    id: str
    role: str
    host: str
    pid: int
    version: str
    worker_group: str | None
    started_at: datetime
    heartbeat_at: datetime
    problem: str | None


def release() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("bellringer")
    except PackageNotFoundError:
        return "0+unknown"


def new_node_id(role: str) -> str:
    """Return an id for this process that no other process has had."""
    return f"{role}-{os.getpid()}-{secrets.token_hex(8)}"


class NodeRegistry:
    """Reads and writes the rows of nodes. Every method may raise DatabaseUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(self, node_id: str, role: str, worker_group: str | None = None) -> None:
        """Write this process down, and take away rows of nodes that have been silent for a day."""

        def work(connection: Connection) -> None:
            now = self._database.now(connection)
            connection.execute(delete(nodes).where(nodes.c.heartbeat_at < now - FORGOTTEN_AFTER))
            connection.execute(
                insert(nodes).values(
                    id=node_id,
                    role=role,
                    host=socket.gethostname()[:255],
                    pid=os.getpid(),
                    version=release(),
                    worker_group=worker_group,
                    started_at=now,
                    heartbeat_at=now,
                )
            )

        self._database.write(work)

    def beat(self, node_id: str, problem: str | None = None) -> bool:
        """Say that the node is alive, and what hinders it; False if its row is gone."""
        return self._database.write(
            lambda c: (
                c.execute(
                    update(nodes)
                    .where(nodes.c.id == node_id)
                    .values(heartbeat_at=self._database.now(c), problem=problem)
                ).rowcount
                == 1
            )
        )

    def remove(self, node_id: str) -> None:
        """Take the node's row away, as its process ends in order."""
        self._database.write(lambda c: c.execute(delete(nodes).where(nodes.c.id == node_id)))

    def list(self) -> Sequence[Node]:
        """Return all nodes, by role and start."""
        query = select(nodes).order_by(nodes.c.role, nodes.c.started_at, nodes.c.id)
        return self._database.read(lambda c: [Node(**row._mapping) for row in c.execute(query)])
