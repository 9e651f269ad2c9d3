"""Methods: when and how to step in; one file each."""
