"""Judges: comparators and critics."""
