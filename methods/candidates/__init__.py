"""Candidate sources: mu(.|s), one file each."""
