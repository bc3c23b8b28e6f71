"""Kinds of cells: one module per subject. Importing this package registers all of them."""

from grapheraser_lab.measure import attack, f1, links, partition, requests

__all__ = ["attack", "f1", "links", "partition", "requests"]
