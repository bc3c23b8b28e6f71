"""An immutable graph, and requests to remove parts of it."""

from grapheraser.graph.graph import Graph
from grapheraser.graph.requests import (
    Edges,
    Features,
    Nodes,
    Removal,
    Request,
    as_requests,
    coalesce,
    request_digest,
)
from grapheraser.graph.roles import TEST, TRAIN, UNLABELLED

__all__ = [
    "TEST",
    "TRAIN",
    "UNLABELLED",
    "Edges",
    "Features",
    "Graph",
    "Nodes",
    "Removal",
    "Request",
    "as_requests",
    "coalesce",
    "request_digest",
]
