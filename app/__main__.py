"""Lets ``python -m app`` do what ``bellringer`` does."""

from app.cli import main

main(prog_name="bellringer")
