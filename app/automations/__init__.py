"""Automations: the definitions that Bellringer keeps, their revisions, and the store that guards them."""
