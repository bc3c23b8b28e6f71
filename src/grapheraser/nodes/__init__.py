"""Classes of nodes: the task of the paper."""

from grapheraser.nodes.eraser import GraphEraser

__all__ = ["GraphEraser"]
