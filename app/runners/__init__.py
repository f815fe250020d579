"""Carrying one run out: bring the repository, start the workflow, watch over it, keep its log."""
