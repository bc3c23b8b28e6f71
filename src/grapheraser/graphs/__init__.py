"""The task of whole graphs: a collection whose graphs, nodes and edges can be forgotten."""

from grapheraser.graphs.collection import Collection
from grapheraser.graphs.encoding import SmallGraph
from grapheraser.graphs.eraser import CollectionEraser
from grapheraser.graphs.explain import Alike, GraphExplanation

__all__ = ["Alike", "Collection", "CollectionEraser", "GraphExplanation", "SmallGraph"]
