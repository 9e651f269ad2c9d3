"""Figures: one file a figure; drawn without a display and without pyplot's global state."""
