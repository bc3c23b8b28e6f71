"""Exact unlearning for graph neural networks.

    import grapheraser as ge

    graph = ge.load_dataset("demo")
    eraser = ge.GraphEraser(model="gcn", num_shards=20).fit(graph)
    eraser.score(graph.test_nodes)
    receipt = eraser.unlearn(ge.Nodes([10, 101]))

Names are loaded when they are first used, so that `grapheraser.receipts` can check receipts where
torch is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grapheraser.environment import VERSION

if TYPE_CHECKING:
    from grapheraser.datasets import load_dataset
    from grapheraser.eraser import GraphEraser
    from grapheraser.eraser.recommend import recommend
    from grapheraser.execution import LocalExecutor, ProcessExecutor
    from grapheraser.graph import Edges, Features, Graph, Nodes
    from grapheraser.models import CustomModel, ModelSpec
    from grapheraser.partition import Partition, partition_graph
    from grapheraser.receipts import Receipt

__all__ = [
    "CustomModel",
    "Edges",
    "Features",
    "Graph",
    "GraphEraser",
    "LocalExecutor",
    "ModelSpec",
    "Nodes",
    "Partition",
    "ProcessExecutor",
    "Receipt",
    "load_dataset",
    "partition_graph",
    "recommend",
]
__version__ = VERSION

_HOMES = {
    "datasets": ("load_dataset",),
    "eraser": ("GraphEraser",),
    "eraser.recommend": ("recommend",),
    "execution": ("LocalExecutor", "ProcessExecutor"),
    "graph": ("Edges", "Features", "Graph", "Nodes"),
    "models": ("CustomModel", "ModelSpec"),
    "partition": ("Partition", "partition_graph"),
    "receipts": ("Receipt",),
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
