"""API tokens: made, listed, revoked, and recognised when a request brings one.

A token is 256 random bits behind a prefix that scanners for leaked secrets can know it by. The database
has its SHA-256 only, so that whoever reads the table can't use it.
"""

import hashlib
import hmac
import re
import secrets
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, insert, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from app.auth.models import ROLES, api_tokens
from app.clock import Clock, SystemClock
from app.db import Database
from app.errors import InvalidInput, NotFound, Violation

PREFIX = "bell_"
NAME_LIMIT = 200
ADMIN_ACTOR = "admin"
"""Whom history names for what was done with the token of the settings."""

_SHAPE = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}")
_USE_NOTED_EVERY = timedelta(minutes=1)
_CACHED_AT_MOST = 1024

_table = api_tokens


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a request: the name that history keeps, a role, and the token's id if it has one."""

    actor: str
    role: str
    token_id: str | None = None

    def may(self, role: str) -> bool:
        """Tell whether this one's role holds ``role``."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token, which is never the token itself. Instants are aware and in UTC."""

    id: str
    name: str
    role: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made: ``token`` itself, to be shown this once, and what is stored about it."""

    token: str
    about: Token


@dataclass(frozen=True, slots=True)
class _Known:
    """A token that was looked up: whose it is, until when it is good, and until when to believe that."""

    principal: Principal
    expires_at: datetime | None
    believed_until: float


class TokenStore:
    """Keeps API tokens.

    A token that was looked up is believed for ``cache_seconds``, so that most requests cost no query; a
    revocation in another process takes at most that long to be noticed here. ``admin_token`` is accepted
    besides those in the database.
    """

    def __init__(
        self,
        database: Database,
        *,
        admin_token: str | None = None,
        cache_seconds: float = 5.0,
        clock: Clock | None = None,
    ) -> None:
        self._database = database
        self._admin_hash = None if admin_token is None else _hash(admin_token)
        self._cache_seconds = cache_seconds
        self._clock = clock or SystemClock()
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def create(
        self, name: str, role: str, created_by: str, expires_at: datetime | None = None
    ) -> NewToken:
        """Make a token. Raises InvalidInput and DatabaseUnavailable."""
        now = self._clock.now()
        if violations := list(violations_of(name, role, expires_at, now)):
            raise InvalidInput(violations)
        secret = PREFIX + secrets.token_urlsafe(32)
        about = Token(secrets.token_hex(8), name, role, now, created_by, expires_at, None)
        row = {
            "id": about.id,
            "name": name,
            "role": role,
            "token_hash": _hash(secret),
            "created_at": now,
            "created_by": created_by,
            "expires_at": expires_at,
        }
        self._database.write(lambda c: c.execute(insert(_table).values(row)))
        return NewToken(secret, about)

    def list(self) -> Sequence[Token]:
        """Return all tokens, the oldest first. Raises DatabaseUnavailable."""
        query = select(*_SHOWN).order_by(_table.c.created_at, _table.c.id)
        return self._database.read(lambda c: [Token(*row) for row in c.execute(query)])

    def revoke(self, token_id: str) -> None:
        """Make a token worthless, here at once. Raises NotFound and DatabaseUnavailable."""

        def work(connection: Connection) -> None:
            gone = connection.execute(delete(_table).where(_table.c.id == token_id)).rowcount
            if not gone:
                raise NotFound("token", token_id)

        self._database.write(work)
        with self._lock:
            for key in [k for k, v in self._known.items() if v.principal.token_id == token_id]:
                del self._known[key]

    def verify(self, secret: str) -> Principal | None:
        """Return whose token ``secret`` is, or None if it is nobody's or has expired.

        Raises DatabaseUnavailable.
        """
        hashed = _hash(secret)
        if self._admin_hash is not None and hmac.compare_digest(hashed, self._admin_hash):
            return Principal(ADMIN_ACTOR, "admin")
        known = self._known.get(hashed)
        if known is None or self._clock.monotonic() >= known.believed_until:
            known = self._look_up(hashed) if _SHAPE.fullmatch(secret) else None
        if known is None or _has_expired(known.expires_at, self._clock.now()):
            return None
        return known.principal

    def _look_up(self, hashed: str) -> _Known | None:
        query = select(*_SHOWN, _table.c.token_hash).where(_table.c.token_hash == hashed)
        row = self._database.read(lambda c: c.execute(query).one_or_none())
        if row is None or not hmac.compare_digest(row.token_hash, hashed):
            with self._lock:
                self._known.pop(hashed, None)
            return None
        principal = Principal(f"token:{row.name}", row.role, row.id)
        known = _Known(principal, row.expires_at, self._clock.monotonic() + self._cache_seconds)
        with self._lock:
            if len(self._known) >= _CACHED_AT_MOST:
                self._known.clear()
            self._known[hashed] = known
        self._note_use(row.id, row.last_used_at)
        return known

    def _note_use(self, token_id: str, last_used_at: datetime | None) -> None:
        """Write down that the token is in use, unless that was done lately or would have to wait."""
        now = self._clock.now()
        if last_used_at is not None and now - last_used_at < _USE_NOTED_EVERY:
            return
        unnoted = or_(
            _table.c.last_used_at.is_(None), _table.c.last_used_at <= now - _USE_NOTED_EVERY
        )
        statement = update(_table).where(_table.c.id == token_id, unnoted).values(last_used_at=now)
        try:
            # One statement and no second try: nobody's request waits for this.
            with self._database.writer.connect() as connection:
                connection.execute(statement)
                connection.commit()
        except SQLAlchemyError:
            return


_SHOWN = (
    _table.c.id,
    _table.c.name,
    _table.c.role,
    _table.c.created_at,
    _table.c.created_by,
    _table.c.expires_at,
    _table.c.last_used_at,
)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _has_expired(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is not None and expires_at <= now


def violations_of(
    name: str, role: str, expires_at: datetime | None, now: datetime
) -> Iterator[Violation]:
    if not name.strip() or len(name) > NAME_LIMIT:
        yield Violation("/name", "invalid", f"A token's name has 1 to {NAME_LIMIT} characters.")
    elif any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        yield Violation("/name", "invalid", "A token's name holds no control characters.")
    if role not in ROLES:
        yield Violation("/role", "unknown-role", f"A role is one of {', '.join(ROLES)}.")
    if _has_expired(expires_at, now):
        yield Violation("/expires_at", "invalid", "A token expires in the future.")
