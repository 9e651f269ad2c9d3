"""Tracking: sinks that can be rebuilt from the ledger."""
