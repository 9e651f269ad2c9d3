"""Reports: one file a table or figure, from what was tracked."""
