"""The task of whole graphs: a collection whose graphs, nodes and edges can be forgotten."""

from grapheraser.graphs.collection import Collection
from grapheraser.graphs.eraser import CollectionEraser

__all__ = ["Collection", "CollectionEraser"]
