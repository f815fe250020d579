"""The roof: the one place where the parts of the server are put together."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Flask

from app import api
from app.api.limiting import RateLimiter
from app.api.metrics import Metrics
from app.api.services import Services
from app.auth.tokens import TokenStore
from app.automations.store import AutomationStore
from app.clock import Clock, SystemClock
from app.db import Database, open_database
from app.runs.ledger import RunLedger
from app.runs.logs import RunLogs
from app.settings import Settings

_STATIC = Path(__file__).parent / "api" / "static"


class _Server(Flask):
    """A Flask whose views and hooks are all plain functions, so that it need not look each time."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return func


def create_app(
    settings: Settings, *, database: Database | None = None, clock: Clock | None = None
) -> Flask:
    """Return the WSGI application.

    It opens no connection and starts no thread, so that a server may fork after it. Raises
    SettingsInvalid for a database URL that is none.
    """
    clock = clock or SystemClock()
    database = database or open_database(settings)
    app = _Server("bellringer", static_folder=str(_STATIC), static_url_path="/static")
    services = Services(
        database=database,
        clock=clock,
        automations=AutomationStore(database),
        runs=RunLedger(database, max_attempts=settings.run_attempts),
        logs=RunLogs(database),
        tokens=TokenStore(
            database,
            admin_token=settings.admin_token,
            cache_seconds=settings.token_cache,
            clock=clock,
        ),
        metrics=Metrics(),
        limiter=RateLimiter(settings.rate_limit, clock) if settings.rate_limit else None,
    )
    api.mount(app, services)
    return app
