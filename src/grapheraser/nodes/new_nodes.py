"""Predicting nodes that are not in the graph, without keeping anything of them.

Each is judged as if it alone were a test node of the graph, under the id that follows the largest
one; so the answer about a node is the same whatever others are asked about with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.engines.graph_checks import check_features, check_new_weights
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import TEST, AddNodes, Edit, Graph, edit_of
from grapheraser.graph.changes.edit import edited_pages
from grapheraser.graph.changes.updates import edges_both_ways
from grapheraser.graph.encoding import encoded, filled, given_rows

_OWNER = "predict_new"


def predict_proba_new(
    now: Snapshot,
    x: ArrayLike | sp.sparray | Mapping[str, Any],
    neighbours: Sequence[ArrayLike],
    edge_weight: Sequence[ArrayLike] | None = None,
    edge_attr: Sequence[ArrayLike] | None = None,
) -> NDArray[Any]:
    """Posteriors, or numbers, ``[m, num_classes]`` of m nodes that are not in the graph.

    Args:
        now: the snapshot that is asked.
        x: their features ``[m, num_features]``; or a table, where the graph was made of one.
        neighbours: of each of them the ids of its neighbours, all of them in the graph.
        edge_weight: of each of them one number for each neighbour, where edges have weights.
        edge_attr: likewise one row for each neighbour, where edges have features.
    """
    graph = now.state.graph
    if graph.types is not None:
        raise GraphError(f"{_OWNER} is for graphs without types.", hint="update adds nodes.")
    rows: Any = encoded(graph.encoding, given_rows(x))
    if graph.encoding is not None and rows.ndim == 2 and rows.shape[1] == graph.num_features:
        rows, _ = filled(graph.encoding, rows, graph.means)
    if rows.ndim != 2:
        raise ParameterError(
            f"'x' of {_OWNER} must have one row per node. Got shape {list(rows.shape)}."
        )
    rows = rows.tocsr() if hasattr(rows, "tocsr") else rows
    count = rows.shape[0]
    near = _one_each("neighbours", neighbours, count)
    carried = {"edge_weight": edge_weight, "edge_attr": edge_attr}
    given = {
        name: [None] * count if parts is None else _one_each(name, parts, count)
        for name, parts in carried.items()
    }
    node = _free_id(graph)
    # All of them are checked before the first is judged.
    edits = [
        _checked(now, node, rows[[at]], near[at], *(given[name][at] for name in carried))
        for at in range(count)
    ]
    numbers = graph.label_kind.is_numbers
    out = np.empty((count, graph.num_classes), dtype=np.float64 if numbers else np.float32)
    for at, edit in enumerate(edits):
        out[at] = _judged(now, node, edit)
    return out


def _checked(now: Snapshot, node: int, x: Any, near: Any, weight: Any, attr: Any) -> Edit:
    """The edit that adds one test node."""
    graph = now.state.graph
    edges = edges_both_ways(graph.edge_kind, node, near, weight, attr)
    edit = edit_of(graph, AddNodes([node], x, **edges), relearn=False)
    check_new_weights(now.settings.training.model, graph, edit.entries.values)
    return replace(edit, role=np.full(1, TEST, dtype=np.int8))


def _judged(now: Snapshot, node: int, edit: Edit) -> NDArray[Any]:
    """The posterior of the node that an edit adds."""
    state, graph = now.state, now.state.graph
    pages = edited_pages(graph.pages, edit)
    longer = graph.with_pages(pages, sharded=int(graph.context == "all"))
    check_features(longer, edit.nodes)
    ensemble = replace(state.ensemble, graph=longer)
    return state.aggregator.predict_proba(ensemble, longer.positions([node]))[0]


def _free_id(graph: Graph) -> int:
    """The id that follows the largest one; the smallest free one where there is none."""
    if graph.num_nodes == 0:
        return 0
    (last,) = graph.ids_at(np.array([graph.num_nodes - 1])).tolist()
    if last < 2**63 - 1:
        return int(last) + 1
    gaps = np.flatnonzero(graph.ids != np.arange(graph.num_nodes))
    return int(gaps[0])


def _one_each(name: str, parts: Any, count: int) -> list[Any]:
    """A list of so many parts."""
    try:
        found = list(parts)
    except TypeError:
        found = []
    if len(found) != count or any(np.ndim(part) == 0 for part in found):
        raise ParameterError(
            f"'{name}' of {_OWNER} must be a list for each of {count} nodes. Got {parts!r}.",
            hint="the neighbours of one node are a list in the list: [[3, 17]].",
        )
    return found
