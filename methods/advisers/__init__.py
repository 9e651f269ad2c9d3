"""Advisers: separate language models that write free-form feedback (Asym-AC)."""
