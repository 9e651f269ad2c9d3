"""Benchmarks of the harness itself; run from the repository root, such as `python -m benchmarks.endpoint`."""
