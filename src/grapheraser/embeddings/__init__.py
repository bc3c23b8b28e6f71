"""Embeddings: rows of nodes that forget, and deltas for what keeps copies of them."""

from grapheraser.embeddings.changes import Changes
from grapheraser.embeddings.embedder import Embedder, NodeRows

__all__ = ["Changes", "Embedder", "NodeRows"]
