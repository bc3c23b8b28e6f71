"""Ranking: the most likely new links of one node.

Candidates come from two places: the nodes two steps away (in a bipartite graph three), through a
bounded number of neighbours in each step; and the nodes whose features, smoothed over two steps,
are closest in angle, found by an index of all nodes. Each candidate is then judged as any pair is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.checks import whole
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.graph import Graph
from grapheraser.graph.ids import one_id
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import label_at, locate
from grapheraser.links.adjacency import linked, thinned
from grapheraser.links.answers import fitted_links, log_odds
from grapheraser.links.model import probabilities
from grapheraser.links.pair_features import key_of
from grapheraser.seeding import keyed_hash

# Neighbours that a step goes on through, and how many of each.
_MAX_NODES_PER_STEP, _MAX_NEIGHBOURS = 64, 64
# Candidates by features, for each one that is wanted, and at least.
_CANDIDATES_PER_ANSWER, _MIN_CANDIDATES = 4, 100


@dataclass(frozen=True)
class Ranked:
    """The most likely new links of a node, best first.

    Attributes:
        node: its id, or its name where nodes have names.
        nodes: of the other ends, likewise.
        probabilities: of each link.
        candidates: how many pairs were judged.
    """

    node: int | str
    nodes: NDArray[Any]
    probabilities: NDArray[np.float32]
    candidates: int

    def to_dict(self) -> dict[str, Any]:
        found = zip(self.nodes.tolist(), self.probabilities.tolist(), strict=True)
        links = [{"node": node, "probability": round(p, 6)} for node, p in found]
        return {"node": self.node, "links": links, "candidates": self.candidates}


def rank(now: Snapshot, node: int | str, top: int = 10) -> Ranked:
    """The links of a node that are not there, by falling probability; equal ones by id.

    In a directed graph, those out of the node.

    A node that is linked to all others, or a graph of one node, has no candidates: the result is
    empty.
    """
    top = whole("top", "LinkEraser.rank", top, 1)
    node = one_id(node, "node", "LinkEraser.rank")
    graph = now.state.graph
    (place,) = graph.places([node])
    fitted = fitted_links(now)
    sides, index = fitted.rule.sides, fitted.index_of(now.state.ensemble)
    near = _steps_away(graph, node, 3 if sides else 2, now.settings.seed)
    alike = index.alike(
        graph, node, max(_MIN_CANDIDATES, _CANDIDATES_PER_ANSWER * top), sides=sides
    )
    candidates = np.unique(np.concatenate([near, alike]))
    candidates = candidates[_allowed(graph.table, place, candidates, sides)]
    pairs = np.stack([np.full(len(candidates), node), candidates], axis=1).astype(np.int64)
    odds = log_odds(now, pairs)
    best = np.lexsort((candidates, -odds))[:top]
    others = candidates[best]
    if not graph.named:
        return Ranked(node, others, probabilities(odds[best]), len(candidates))
    (name,), called = graph.names_of([node]), graph.names_of(others)
    return Ranked(name, called, probabilities(odds[best]), len(candidates))


def _steps_away(graph: Graph, node: int, steps: int, seed: int) -> NDArray[np.int64]:
    """Sorted ids of nodes that are so many steps away, or fewer."""
    key = key_of(seed)
    reached = np.array([node], dtype=np.int64)
    for _ in range(steps):
        if len(reached) > _MAX_NODES_PER_STEP:
            hashes = keyed_hash(reached, int(key))
            reached = reached[np.lexsort((reached, hashes))[:_MAX_NODES_PER_STEP]]
        reached = np.unique(_around(graph.table, reached, key))
    return reached


@compiled
def _around(table, nodes, key):  # type: ignore[no-untyped-def]
    """Ids of neighbours of some nodes, a bounded number of each; some more than once."""
    near = np.empty(_MAX_NEIGHBOURS, dtype=np.int64)
    out, end = np.empty(len(nodes) * _MAX_NEIGHBOURS, dtype=np.int64), 0
    for node in nodes:
        count = thinned(table, locate(table, node), key, -1, near)
        out[end : end + count] = near[:count]
        end += count
    return out[:end].copy()


@compiled
def _allowed(table, place, candidates, sides):  # type: ignore[no-untyped-def]
    """Mask candidates that are neither the node itself nor linked to it, nor on its side."""
    out = np.zeros(len(candidates), dtype=np.bool_)
    for i in range(len(candidates)):
        other = locate(table, candidates[i])
        out[i] = other != place and not linked(table, place, candidates[i])
        if sides:
            out[i] &= label_at(table, other) != label_at(table, place)
    return out
