"""Weights of steps that are learned: by how well each tells edges from other pairs.

Learned anew with every request, from pairs that keyed hashes choose. They are weights of the whole
embedding, so that a request may move every row; fixed weights, the default, never do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.embeddings.votes import Tally
from grapheraser.graph import Graph
from grapheraser.seeding import derive, keyed_hash

# Nodes to learn from at the most.
_SAMPLE = 1024
# Weights are multiples of this, so that most requests leave them as they are.
_GRID = 1 / 8
MAX_SHARE = 1.0
_UNIT = 2.0**16


def learned_weights(tally: Tally, graph: Graph, seed: int, depth: int) -> NDArray[np.float64]:
    """Return the weight of each step, at most 1: the root of how far it separates pairs.

    Of the sampled nodes each is paired with its neighbour of the smallest hash, and with the next
    sampled node. A step separates them by the difference of the mean cosines over their variance.
    """
    ids = graph.ids
    order = np.argsort(keyed_hash(ids, derive(seed, "embeddings", "sample")), kind="stable")
    sample = ids[order[:_SAMPLE]]
    near = [graph.neighbours(int(node)) for node in sample]
    some = np.array([len(found) > 0 for found in near], dtype=bool)
    if some.sum() < 2:
        return np.ones(depth)
    key = derive(seed, "embeddings", "neighbour")
    other = np.array([found[np.argmin(keyed_hash(found, key))] for found in near if len(found)])
    sample = sample[some]
    scores = np.zeros(depth)
    for step in range(1, depth + 1):
        own, linked = (tally.votes(graph, graph.places(nodes), step) for nodes in (sample, other))
        edges, others = _cosines(own, linked), _cosines(own, np.roll(own, 1, axis=0))
        spread = _variance(edges) + _variance(others)
        ahead = int(edges.sum() - others.sum()) / len(sample)
        scores[step - 1] = max(0.0, ahead) / max(spread, 1.0)
    if not scores.any():
        return np.ones(depth)
    rounded: NDArray[np.float64] = np.ceil(np.sqrt(scores / scores.max()) / _GRID) * _GRID
    return rounded


def _cosines(votes: NDArray[np.int16], others: NDArray[np.int16]) -> NDArray[np.int64]:
    """Return cosines as whole numbers, so that sums of them are exact in any order."""
    dot, one, two = (
        np.einsum("nc,nc->n", a, b, dtype=np.int64)
        for a, b in ((votes, others), (votes, votes), (others, others))
    )
    found: NDArray[np.int64] = np.rint(_UNIT * dot / np.sqrt(np.maximum(one * two, 1)))
    return found.astype(np.int64)


def _variance(numbers: NDArray[np.int64]) -> float:
    count = len(numbers)
    return (count * int((numbers * numbers).sum()) - int(numbers.sum()) ** 2) / count**2
