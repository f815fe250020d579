"""Ratios against a baseline in the same run; each prints one JSON line per figure."""
