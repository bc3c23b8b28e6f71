"""The demonstration: the first impression."""
