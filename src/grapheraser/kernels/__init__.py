"""Compiled pieces that several rooms use."""
