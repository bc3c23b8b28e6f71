"""Attacks on a run: what can be learned about data that was forgotten."""
