"""Evidence from the labels around a node: the members `labels` and `edges`.

`labels` takes the classes of a node's neighbours. A neighbour that is trained on counts with its
label. Any other counts with a guess from the labels around it, of which the node in question is
left out, and from its own words.

`edges` is naive Bayes over the labels of a node's neighbours, by counts of edges between classes.
The counts say how often nodes of one class are next to nodes of another, so this member also serves
graphs whose edges mostly join unlike nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.members.around import Around
from grapheraser.aggregation.members.base import (
    Evidence,
    Ids,
    floor_rows,
    labelled_places,
    trained_among,
)
from grapheraser.aggregation.members.words import WordCounts, log_prior
from grapheraser.graph import Graph
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm, logarithms
from grapheraser.kernels.neighbourhoods import LABELLED, is_kind
from grapheraser.kernels.paged import degree_at, first_edge, label_at, locate, neighbour
from grapheraser.kernels.sets import rank_of

# How much the words of an unlabelled neighbour count in the guess.
_WORDS = 0.3


def label_evidence(
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
    out: Evidence = _label_evidence(*around, hints, log_prior(classes))
    return out


@compiled
def _label_evidence(pointers, near, every, others, guessed, beyond, hints, prior):  # type: ignore[no-untyped-def]
    """Add known labels, which are whole numbers, then guesses, by id: this sum rounds."""
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


_SMOOTHING = 0.1
EdgeCounts = NDArray[np.int64]


def edge_counts(graph: Graph) -> EdgeCounts:
    """Ordered pairs of adjacent training nodes, by their classes ``[num_classes, num_classes]``."""
    counts = np.zeros((graph.num_classes, graph.num_classes), dtype=np.int64)
    _add_pairs(graph.table, labelled_places(graph), True, 1, counts)
    return counts


def changed_edge_counts(counts: EdgeCounts, before: Graph, graph: Graph, nodes: Ids) -> EdgeCounts:
    """Return what `edge_counts` gives for a graph that differs from another in these nodes."""
    counts = counts.copy()
    for part, sign in ((before, -1), (graph, 1)):
        _add_pairs(part.table, trained_among(part, nodes), False, sign, counts)
    return counts


def edge_evidence(counts: EdgeCounts, around: Around, own: NDArray[np.int64]) -> Evidence:
    """Log posteriors ``[m, num_classes]`` under even classes, at least the floor.

    Args:
        counts: see `edge_counts`.
        around: the labels around m nodes.
        own: the class that each of them is held out of, with its edges; -1 where it is not.
    """
    out: Evidence = _edge_evidence(counts, around.pointers, around.near, around.every, own)
    return out


@compiled
def _add_pairs(table, places, everyone, sign, counts):  # type: ignore[no-untyped-def]
    """Add the pairs that start at sorted places, and those that only end there.

    ``everyone``: there are no others.
    """
    for place in places:
        first, label = first_edge(table, place), label_at(table, place)
        for e in range(degree_at(table, place)):
            other = locate(table, neighbour(first, e))
            if is_kind(table, other, LABELLED):
                its = label_at(table, other)
                counts[label, its] += sign
                if not everyone and rank_of(other, places) < 0:
                    counts[its, label] += sign


@compiled
def _edge_evidence(counts, pointers, near, every, owns):  # type: ignore[no-untyped-def]
    """Add up what the neighbours are worth, in the order of their ids.

    A node that is held out takes its own edges out of the counts: whole numbers, so nothing is left
    of them. Only then a logarithm rounds.
    """
    c = len(counts)
    out, totals = np.zeros((len(every), c)), np.zeros(c, dtype=np.int64)
    for k in range(c):
        for j in range(c):
            totals[k] += counts[k, j]
    # What a neighbour of a label is worth, worked out for the labels that a node has around it.
    worth, known = np.empty((c, c)), np.zeros(c, dtype=np.bool_)
    nothing = np.zeros(c, dtype=np.int64)
    for r in range(len(every)):
        own = owns[r]
        mine = every[r] if own >= 0 else nothing
        known[:] = False
        for e in range(pointers[r], pointers[r + 1]):
            label = near[e]
            if not known[label]:
                known[label] = True
                for k in range(c):
                    pairs, total = counts[k, label], totals[k] - mine[k]
                    if label == own:
                        pairs -= mine[k]
                    if k == own:
                        pairs -= mine[label]
                        total -= mine.sum()
                    worth[label, k] = logarithm((pairs + _SMOOTHING) / (total + _SMOOTHING * c))
            for k in range(c):
                out[r, k] += worth[label, k]
    floor_rows(out)
    return out
