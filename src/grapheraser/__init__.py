"""Exact unlearning for graph neural networks.

    import grapheraser as ge

    graph = ge.load_dataset("demo")
    eraser = ge.GraphEraser(model="gcn", num_shards=20).fit(graph)
    eraser.score(graph.test_nodes)
    receipt = eraser.unlearn(ge.Nodes([10, 101]))

Public is what `__all__` names, and the modules `errors` and `receipts`; all else is internal.
Names are loaded when they are first used, so that `grapheraser.receipts` can check receipts where
torch is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapheraser.environment import VERSION

if TYPE_CHECKING:
    from grapheraser.aggregation import Aggregator, Change, Ensemble, Explanation, FittedAggregator
    from grapheraser.datasets import generate_graph, load_dataset
    from grapheraser.embeddings import Changes, Embedder, NodeRows
    from grapheraser.engines import EarlyStopping, Training
    from grapheraser.eraser.plan import Plan
    from grapheraser.eraser.verify import Verification
    from grapheraser.execution import Executor, LocalExecutor, ProcessExecutor, RayExecutor
    from grapheraser.graph import (
        AddEdges,
        AddGraphs,
        AddNodes,
        Edges,
        Features,
        Graph,
        GraphEdges,
        GraphNodes,
        Graphs,
        Labels,
        Nodes,
        SetFeatures,
        SetGraphs,
        SetLabels,
    )
    from grapheraser.graph.changes.sides import (
        AddInteractions,
        AddItems,
        AddUsers,
        Interactions,
        Items,
        Users,
    )
    from grapheraser.graphs import Alike, Collection, CollectionEraser, GraphExplanation, SmallGraph
    from grapheraser.links import LinkEraser
    from grapheraser.links.facts.answers import FactReasons, FactRule, FactScore
    from grapheraser.links.metrics import LinkScore
    from grapheraser.links.rank import Ranked
    from grapheraser.models import CustomModel, ModelSpec
    from grapheraser.nodes import GraphEraser
    from grapheraser.nodes.recommend import recommend
    from grapheraser.partition import (
        Assignment,
        Partition,
        Partitioner,
        check_partitioner,
        partition_graph,
    )
    from grapheraser.receipts import Receipt
    from grapheraser.recommendation import Recommender
    from grapheraser.recommendation.answers import Reason, RecommendationReasons
    from grapheraser.recommendation.metrics import RecommendationScore
    from grapheraser.service.client import Client

__all__ = [
    "AddEdges",
    "AddGraphs",
    "AddInteractions",
    "AddItems",
    "AddNodes",
    "AddUsers",
    "Aggregator",
    "Alike",
    "Assignment",
    "Change",
    "Changes",
    "Client",
    "Collection",
    "CollectionEraser",
    "CustomModel",
    "EarlyStopping",
    "Edges",
    "Embedder",
    "Ensemble",
    "Executor",
    "Explanation",
    "FactReasons",
    "FactRule",
    "FactScore",
    "Features",
    "FittedAggregator",
    "Graph",
    "GraphEdges",
    "GraphEraser",
    "GraphExplanation",
    "GraphNodes",
    "Graphs",
    "Interactions",
    "Items",
    "Labels",
    "LinkEraser",
    "LinkScore",
    "LocalExecutor",
    "ModelSpec",
    "NodeRows",
    "Nodes",
    "Partition",
    "Partitioner",
    "Plan",
    "ProcessExecutor",
    "Ranked",
    "RayExecutor",
    "Reason",
    "Receipt",
    "RecommendationReasons",
    "RecommendationScore",
    "Recommender",
    "SetFeatures",
    "SetGraphs",
    "SetLabels",
    "SmallGraph",
    "Training",
    "Users",
    "Verification",
    "check_partitioner",
    "generate_graph",
    "load_dataset",
    "partition_graph",
    "recommend",
]
__version__ = VERSION

# Where each public name is defined.
_HOMES = {
    "aggregation": (
        "Aggregator",
        "Change",
        "Ensemble",
        "Explanation",
        "FittedAggregator",
    ),
    "datasets": (
        "generate_graph",
        "load_dataset",
    ),
    "embeddings": ("Changes", "Embedder", "NodeRows"),
    "engines": (
        "EarlyStopping",
        "Training",
    ),
    "eraser.plan": ("Plan",),
    "eraser.verify": ("Verification",),
    "execution": (
        "Executor",
        "LocalExecutor",
        "ProcessExecutor",
        "RayExecutor",
    ),
    "graph": (
        "AddEdges",
        "AddGraphs",
        "AddNodes",
        "Edges",
        "Features",
        "Graph",
        "GraphEdges",
        "GraphNodes",
        "Graphs",
        "Labels",
        "Nodes",
        "SetFeatures",
        "SetGraphs",
        "SetLabels",
    ),
    "graphs": ("Alike", "Collection", "CollectionEraser", "GraphExplanation", "SmallGraph"),
    "graph.changes.sides": (
        "AddInteractions",
        "AddItems",
        "AddUsers",
        "Interactions",
        "Items",
        "Users",
    ),
    "links": ("LinkEraser",),
    "links.facts.answers": ("FactReasons", "FactRule", "FactScore"),
    "links.metrics": ("LinkScore",),
    "links.rank": ("Ranked",),
    "nodes": ("GraphEraser",),
    "nodes.recommend": ("recommend",),
    "models": (
        "CustomModel",
        "ModelSpec",
    ),
    "partition": (
        "Assignment",
        "Partition",
        "Partitioner",
        "check_partitioner",
        "partition_graph",
    ),
    "receipts": ("Receipt",),
    "recommendation": ("Recommender",),
    "recommendation.answers": ("Reason", "RecommendationReasons"),
    "recommendation.metrics": ("RecommendationScore",),
    "service.client": ("Client",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'grapheraser' has no attribute '{name}'")
    value = getattr(import_module(f"grapheraser.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
