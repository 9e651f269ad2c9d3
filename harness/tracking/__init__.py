"""Tracking: MLflow as a first-class sink that can be rebuilt from the ledger at any time.

`sync` writes, `from_mlflow` and `from_ledger` read the same `Tracked` back, `start_ui` shows it. Nothing here is
imported before it is used; MLflow itself costs a second.
"""
