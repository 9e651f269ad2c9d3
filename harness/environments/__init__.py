"""Environments: one folder each; found through entry points."""
