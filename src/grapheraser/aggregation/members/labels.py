"""Labels: the classes of a node's neighbours.

A neighbour that is trained on counts with its label. Any other counts with a guess from the labels
around it, of which the node in question is left out, and from its own words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.around import Around
from grapheraser.aggregation.members.base import Evidence
from grapheraser.aggregation.members.words import WordCounts, log_prior
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithms

# How much the words of an unlabelled neighbour count in the guess.
_WORDS = 0.3


def evidence(
    graph: Graph, around: Around, classes: NDArray[np.int64], words: WordCounts | None
) -> Evidence:
    """Log shares of the classes around each of m nodes ``[m, num_classes]``.

    A node's own label never counts, so this is the same whether the node is held out or not.

    Args:
        graph: the current graph.
        around: the labels around the nodes.
        classes: training nodes of each class; one neighbour more is spread like them.
        words: for the guesses; None leaves words out of them.
    """
    if words is None:
        hints = np.zeros((len(around.guessed), len(classes)))
    else:
        hints = words.evidence(graph, graph.places(around.guessed), held_out=False)
    out: Evidence = _evidence(*around, hints, log_prior(classes))
    return out


@compiled
def _evidence(pointers, near, every, others, guessed, beyond, hints, prior):  # type: ignore[no-untyped-def]
    c, m = len(prior), len(every)
    out, shares = np.zeros((m, c)), np.empty(c)
    for k in range(c):
        shares[k] = exponential(prior[k])
    guesses = _guesses(beyond, hints, shares)
    for r in range(m):
        row, count = out[r], 0.0
        for e in range(pointers[r], pointers[r + 1]):
            row[near[e]] += 1.0
        for g in range(others[r], others[r + 1]):
            for k in range(c):
                row[k] += guesses[g, k]
        for k in range(c):
            count += row[k]
        for k in range(c):
            row[k] = (row[k] + shares[k]) / (count + 1.0)
    return logarithms(out)


@compiled
def _guesses(beyond, hints, shares):  # type: ignore[no-untyped-def]
    """The classes of neighbours without a label: from the labels around them and their words."""
    m, c = hints.shape
    out = np.empty((m, c))
    for g in range(m):
        top = hints[g, 0]
        for k in range(1, c):
            top = max(top, hints[g, k])
        for k in range(c):
            out[g, k] = _WORDS * (hints[g, k] - top)
    flat = out.reshape(-1)
    for i in range(len(flat)):
        flat[i] = exponential(flat[i])
    for g in range(m):
        total = 0.0
        for k in range(c):
            out[g, k] *= shares[k] + beyond[g, k]
            total += out[g, k]
        for k in range(c):
            out[g, k] /= total
    return out
