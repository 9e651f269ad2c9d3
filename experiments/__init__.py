"""Studies: one YAML each."""
