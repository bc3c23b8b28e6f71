"""Attacks that only studies make; those of `grapheraser audit` are in `grapheraser.audit`."""
