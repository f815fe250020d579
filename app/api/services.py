"""What the views work with, put together by the factory and handed to the application once."""

from dataclasses import dataclass

from flask import current_app

from app.api.limiting import RateLimiter
from app.api.metrics import Metrics
from app.auth.tokens import TokenStore
from app.automations.store import AutomationStore
from app.clock import Clock
from app.db import Database
from app.runs.ledger import RunLedger
from app.runs.logs import RunLogs

_KEY = "bellringer"


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of one application. Everything is safe from any thread."""

    database: Database
    clock: Clock
    automations: AutomationStore
    runs: RunLedger
    logs: RunLogs
    tokens: TokenStore
    metrics: Metrics
    limiter: RateLimiter | None


def install(services: Services) -> None:
    """Make ``services`` those of the application at hand."""
    current_app.extensions[_KEY] = services


def services() -> Services:
    """Return the parts of the application that answers this request."""
    found: Services = current_app.extensions[_KEY]
    return found
