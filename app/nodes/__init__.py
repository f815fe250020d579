"""Nodes: the processes of Bellringer that are at work, as the database sees them."""
