"""Bellringer: automations kept in SQL and rung on time."""
