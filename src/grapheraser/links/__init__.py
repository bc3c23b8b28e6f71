"""Links: predict, rank and forget edges; the sibling of the eraser for link prediction."""

from grapheraser.links.eraser import LinkEraser
from grapheraser.links.graph import link_graph

__all__ = ["LinkEraser", "link_graph"]
