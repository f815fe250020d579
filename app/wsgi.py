"""What gunicorn loads: ``gunicorn -c python:app.gunicorn app.wsgi:app``."""

import os
import sys

from flask import Flask

from app.errors import SettingsInvalid
from app.factory import create_app
from app.log_output import configure_logging
from app.settings import load

_APP_LOAD_ERROR = 4
"""By this status gunicorn knows that trying again is of no use."""


def _load_app() -> Flask:
    try:
        settings = load(os.environ)
        configure_logging(settings.log_format, settings.log_level)
        return create_app(settings)
    except SettingsInvalid as error:
        lines = "".join(f"  {problem}\n" for problem in error.problems)
        sys.stderr.write(f"Bellringer does not start, its settings are wrong:\n{lines}")
        sys.stderr.flush()
        sys.exit(_APP_LOAD_ERROR)


app = _load_app()
