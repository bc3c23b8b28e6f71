"""Features that training can't work with: finite, but so large that sums of squares overflow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph import Graph
from grapheraser.kernels.paged import feature_rows

# Far beyond what any feature should be; float32 ends at 3.4e38, and kernels square sums of these.
LARGEST_FEATURE = 1e12
_AT_A_TIME = 2**16


def check_all_features(graph: Graph) -> None:
    """Refuse a graph with features beyond `LARGEST_FEATURE`."""
    for start in range(0, graph.num_nodes, _AT_A_TIME):
        positions = np.arange(start, min(start + _AT_A_TIME, graph.num_nodes), dtype=np.int64)
        check_features(graph, graph.ids_at(positions))


def check_features(graph: Graph, nodes: NDArray[np.int64]) -> None:
    """Refuse features of some nodes (ids) beyond `LARGEST_FEATURE`."""
    ends, _, values = feature_rows(graph.table, graph.places(nodes))
    if not len(values) or max(-values.min(), values.max()) <= LARGEST_FEATURE:
        return
    first = int(np.flatnonzero(np.abs(values) > LARGEST_FEATURE)[0])
    node = nodes[np.searchsorted(ends, first, side="right") - 1]
    raise GraphError(
        f"features must be at most {LARGEST_FEATURE:g} in magnitude, or training overflows "
        f"(found {values[first]:g} at node {node}).",
        hint="scale the columns, for instance to mean 0 and deviation 1.",
    )
