"""What a cell measures: one module per subject. Importing this package registers all kinds."""

from grapheraser_lab.measure import attack, f1, links, partition, requests

__all__ = ["attack", "f1", "links", "partition", "requests"]
