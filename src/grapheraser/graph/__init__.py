"""An immutable graph, and requests to remove, add and change parts of it."""

from grapheraser.graph.changes.edit import Edit, edit_of
from grapheraser.graph.changes.parts import AddGraphs, GraphEdges, GraphNodes, Graphs, SetGraphs
from grapheraser.graph.changes.requests import (
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
from grapheraser.graph.changes.updates import (
    AddEdges,
    AddNodes,
    GraphChange,
    SetFeatures,
    SetLabels,
    as_changes,
)
from grapheraser.graph.graph import Graph
from grapheraser.graph.roles import CONTEXT, TEST, TRAIN, UNLABELLED, VALIDATION

__all__ = [
    "CONTEXT",
    "TEST",
    "TRAIN",
    "UNLABELLED",
    "VALIDATION",
    "AddEdges",
    "AddGraphs",
    "AddNodes",
    "Edges",
    "Edit",
    "Features",
    "Graph",
    "GraphChange",
    "GraphEdges",
    "GraphNodes",
    "Graphs",
    "Labels",
    "Nodes",
    "Removal",
    "Request",
    "SetFeatures",
    "SetGraphs",
    "SetLabels",
    "as_changes",
    "as_requests",
    "coalesce",
    "edit_of",
    "in_graph",
    "request_digest",
]
