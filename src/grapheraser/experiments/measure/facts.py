"""Kind ``facts``: the size of a data set, with edges counted in both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import KINDS, Kind
from grapheraser.experiments.measure.inputs import graph_of


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of one graph, its test split and its most frequent class."""
    graph = graph_of(config)
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "entries": len(graph.indices),
        "classes": graph.num_classes,
        "features": graph.num_features,
        "train_nodes": len(graph.train_nodes),
        "test_nodes": len(graph.test_nodes),
        "training_edges": graph.training_graph.num_edges,
        "most_frequent": float(np.bincount(graph.y[graph.y >= 0]).max() / graph.num_nodes),
    }


KINDS.add("facts", Kind(measure))
