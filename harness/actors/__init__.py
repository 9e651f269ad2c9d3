"""Actors: frozen policies; simulated ones say so."""
