"""Training of judges: data, recipes, artefacts, diagnostics."""
