"""The edges of a shard as each kind of model weighs them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from grapheraser.arrays import Ints, Ints32
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.csr import reverse_of
from grapheraser.models import ModelSpec, declaration_of

LARGEST_INDEX = 2**31 - 1


class Adjacency(NamedTuple):
    """Symmetric CSR with weights, self-loops among the entries where there are any."""

    # indptr, indices: rows are targets, columns sources, sorted.
    indptr: Ints
    indices: Ints32
    forward: NDArray[np.floating]  # weight of each entry
    backward: NDArray[np.floating]  # weight of the entry of the opposite direction
    reverse: Ints32  # place of the entry of the opposite direction


def adjacency_of(spec: ModelSpec, graph: Graph, dtype: DTypeLike) -> Adjacency:
    """Return a graph's edges, with self-loops and weights as the model is declared to have them.

    Weights are computed in double precision and rounded once, so all engines share their bits.
    """
    indptr, indices = graph.indptr, graph.indices
    check_entries(len(indices) + len(indptr))
    declared = declaration_of(spec.kind)
    loops = declared.self_loops(spec)
    indptr, indices, sources = _with_loops(indptr.copy(), indices.copy(), loops)
    reverse = reverse_of(indptr, indices)
    degree = np.diff(indptr).astype(np.float64)
    given = graph.incoming_weights
    with np.errstate(divide="ignore"):
        weighing = declared.weighing(spec)
        if weighing == "normalised":
            weights = np.ones(len(indices))
            if given is not None:
                weights[sources != indices] = given  # a self-loop weighs 1
                degree = np.bincount(sources, weights, graph.num_nodes).astype(np.float64)
            factor = np.where(degree > 0, 1 / np.sqrt(degree), 0.0)
            forward = factor[sources] * factor[indices] * weights
            backward = forward[reverse]
        elif weighing == "mean":
            inverse, own = 1 / (degree - loops), sources == indices
            forward = np.where(own, 1.0, inverse[sources])
            backward = np.where(own, 1.0, inverse[indices])
        else:
            forward = backward = np.ones(len(indices))
    return Adjacency(indptr, indices, forward.astype(dtype), backward.astype(dtype), reverse)


def check_entries(count: int) -> None:
    """Refuse more entries than 32-bit places can name."""
    if count > LARGEST_INDEX:
        raise ParameterError(
            f"the engines train on at most {LARGEST_INDEX} edges or features at a time. "
            f"Got {count}.",
            hint="use more shards.",
        )


def _with_loops(indptr: Ints, indices: Ints32, loops: bool) -> tuple[Ints, Ints32, Ints32]:
    """Return the CSR, each node among its neighbours if ``loops``, and the row of every entry.

    A self-loop takes its place in the ascending order of the row, which is the order of every sum.
    """
    n = len(indptr) - 1
    if loops:
        there = np.ones(len(indices), dtype=bool)
        both = sp.csr_array((there, indices, indptr), shape=(n, n)) + sp.eye_array(n, dtype=bool)
        indptr, indices = both.indptr.astype(np.int64), both.indices.astype(np.int32)
    return indptr, indices, np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr))
