"""Labels: the classes of a node's neighbours.

A neighbour that is trained on counts with its label. Any other counts with a guess from the labels
around it, of which the node in question is left out, and from its own words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.around import FAR, key_of, one_hop
from grapheraser.aggregation.members.base import Evidence, Positions, labelled
from grapheraser.aggregation.members.words import WordCounts, log_prior
from grapheraser.graph import Graph
from grapheraser.graph.csr import slices_of
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, log_normalise, logarithm
from grapheraser.kernels.neighbourhoods import chosen_neighbours, room_for

# Unlabelled neighbours that are guessed, and how much their words count in the guess.
_GUESSED, _WORDS = 16, 0.3


def evidence(
    graph: Graph,
    positions: Positions,
    seed: int,
    classes: NDArray[np.int64],
    words: WordCounts | None,
) -> Evidence:
    """Log shares of the classes around each node ``[len(positions), num_classes]``.

    A node's own label never counts, so this is the same whether the node is held out or not.

    Args:
        graph: the current graph.
        positions: rows of it.
        seed: of the run; decides which neighbours count.
        classes: training nodes of each class; one neighbour more is spread like them.
        words: for the guesses; None leaves words out of them.
    """
    known = labelled(graph)
    around = np.unique(graph.indices[slices_of(graph.indptr, positions)]).astype(np.int64)
    unknown = around[~known[around]]
    place = np.zeros(graph.num_nodes, dtype=np.int64)
    place[unknown] = np.arange(len(unknown))
    if words is None:
        hints = np.zeros((len(unknown), graph.num_classes))
    else:
        hints = words.evidence(graph, unknown, held_out=False)
    counts = one_hop(graph, positions, seed).astype(np.float64)
    parts = (graph.indptr, graph.indices, graph.ids, graph.y, known)
    prior = log_prior(classes)
    return _evidence(*parts, positions, counts, hints, place, prior, key_of(seed))


@compiled
def _evidence(indptr, indices, ids, y, known, rows, counts, hints, place, prior, key):  # type: ignore[no-untyped-def]
    c, unknown = len(prior), ~known
    shares, guess = np.empty(c), np.empty(c)
    hashes, chosen = room_for(_GUESSED)
    far_hashes, far = room_for(FAR)
    for k in range(c):
        shares[k] = exponential(prior[k])
    for r in range(len(rows)):
        row, count = counts[r], 0.0
        for i in range(
            chosen_neighbours(indptr, indices, ids, rows[r], unknown, key, hashes, chosen)
        ):
            other = chosen[i]
            guess[:] = shares
            for j in range(
                chosen_neighbours(indptr, indices, ids, other, known, key, far_hashes, far)
            ):
                if far[j] != rows[r]:
                    guess[y[far[j]]] += 1.0
            for k in range(c):
                guess[k] = _WORDS * hints[place[other], k] + logarithm(guess[k])
            log_normalise(guess)
            for k in range(c):
                row[k] += exponential(guess[k])
        for k in range(c):
            count += row[k]
        for k in range(c):
            row[k] = logarithm((row[k] + shares[k]) / (count + 1.0))
    return counts
