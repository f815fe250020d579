"""Scheduling: claims each occurrence of each cron expression exactly once, on however many nodes."""
