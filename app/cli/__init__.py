"""The command line: ``bellringer``. One file per group of commands, loaded when it is asked for."""

from app.cli.main import main

__all__ = ["main"]
