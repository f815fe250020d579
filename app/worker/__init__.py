"""The worker: takes queued runs from the ledger and carries them out."""
