"""Runs: the ledger of every firing, from the moment it was asked for to its end, and their logs."""
