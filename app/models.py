"""All tables together, for the migrations to compare with; nothing else needs them in one place."""

from app.auth.models import api_tokens
from app.automations.models import automations
from app.db.naming import metadata
from app.nodes.models import nodes
from app.runs.models import runs
from app.scheduling.models import schedule_occurrences

__all__ = ["api_tokens", "automations", "metadata", "nodes", "runs", "schedule_occurrences"]
