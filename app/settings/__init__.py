"""Every setting, read once into a frozen value.

Whoever needs one is handed it; nothing else reads the environment.
"""

from app.settings.loading import PREFIX, RUN_ENV_PREFIX, load
from app.settings.table import About, Settings, default_of, table

__all__ = ["PREFIX", "RUN_ENV_PREFIX", "About", "Settings", "default_of", "load", "table"]
