"""An immutable graph, and requests to remove parts of it."""

from grapheraser.graph.graph import Graph
from grapheraser.graph.requests import (
    Edges,
    Features,
    Labels,
    Nodes,
    Removal,
    Request,
    as_requests,
    coalesce,
    in_graph,
    request_digest,
)
from grapheraser.graph.roles import CONTEXT, TEST, TRAIN, UNLABELLED, VALIDATION

__all__ = [
    "CONTEXT",
    "TEST",
    "TRAIN",
    "UNLABELLED",
    "VALIDATION",
    "Edges",
    "Features",
    "Graph",
    "Labels",
    "Nodes",
    "Removal",
    "Request",
    "as_requests",
    "coalesce",
    "in_graph",
    "request_digest",
]
