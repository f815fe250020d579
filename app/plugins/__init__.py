"""Plugins: what they are on disk, and the manifest that says what they bring."""
