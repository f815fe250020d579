"""Cron expressions: parsed, evaluated and put in words, in UTC. Nothing else reads them.

``parse`` gives an :class:`Expression`, which knows when it is due; the grammar: ``docs/cron.md``.
"""

from app.cron.expression import Expression
from app.cron.parser import canonical, parse
from app.cron.words import describe

__all__ = ["Expression", "canonical", "describe", "parse"]
