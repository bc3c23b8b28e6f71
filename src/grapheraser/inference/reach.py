"""Find out how far a user's module looks, by trying it on small graphs.

A NaN among the features of one node spreads to every node whose scores depend on them; how far it
comes is how far the module looks. But comparisons lose it, and other things may have a part in the
scores: the number of nodes, say. So scores of some nodes are also computed from their surroundings
alone, and with all that is further away replaced. Where they change, the module needs the whole
graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from grapheraser.graph import Graph
from grapheraser.graph.edge_values import PLAIN, EdgeKind
from grapheraser.inference.surroundings import (
    Surroundings,
    surroundings_of,
    whole_graph,
)
from grapheraser.seeding import generator

Run = Callable[..., Tensor]

# Features of nodes, whether edges have weights, features of edges.
Shape: TypeAlias = tuple[int, bool, int]

# In graphs worth the trouble, whoever looks further than this sees nearly everything.
MAX_HOPS = 6
# Large enough for sums of float32 numbers in another order, too small for anything else.
_ROUNDING = 1e-4
# Far outside the features of the small graphs, which are numbers in [0, 1).
_LARGE = 100.0
_ELSEWHERE = "its scores depend on more than the surroundings of a node"


@dataclass(frozen=True)
class Reach:
    """The distance that a module looks."""

    hops: int | None  # None where it needs the whole graph
    # Whether the outermost nodes that it looks at need all of their neighbours.
    degrees: bool = True
    why: str = ""  # the reason where it needs the whole graph


def reach_of(run: Run, num_features: int, edge_kind: EdgeKind = PLAIN) -> Reach:
    """Try a module.

    ``run`` returns scores ``[n, num_classes]`` from features, ``edge_index`` and what edges carry,
    by name; the module must be in the same state each time.
    """
    shape = num_features, edge_kind.weighted, edge_kind.columns
    try:
        hops = _spread(run, shape)
        if hops > MAX_HOPS:
            return Reach(None, why=f"it looks at nodes more than {MAX_HOPS} hops away")
        return _compared(run, shape, hops)
    except Exception as error:  # whatever a user's code raises on a graph that is not theirs
        return Reach(None, why=f"it failed on a small graph ({type(error).__name__}: {error})")


def _spread(run: Run, shape: Shape) -> int:
    """Return how many hops a node's NaN spreads; more than `MAX_HOPS` if it spreads too far."""
    graph = _small_graph(2 * MAX_HOPS, *shape)
    start = np.zeros(1, dtype=np.int64)
    seen = whole_graph(graph, start)
    x = seen.x.clone()
    x[0] = torch.nan
    scores = run(x, seen.edge_index, **seen.carried)
    spread = np.flatnonzero(scores.isnan().any(dim=1).numpy())
    hops = 0
    while hops <= MAX_HOPS and not np.isin(spread, graph.within_hops(start, hops)).all():
        hops += 1
    return hops


def _compared(run: Run, shape: Shape, hops: int) -> Reach:
    """Compare scores of some nodes with those that they have when everything far away is other."""
    length = 8 * (hops + 2)
    graph = _small_graph(length, *shape)
    # Away from the ends and from each other.
    some = np.array([3 * length // 8, 6 * length // 8 + 1])
    seen = whole_graph(graph, some)
    with _Reading() as reading:  # type: ignore[no-untyped-call]
        expected = run(seen.x, seen.edge_index, **seen.carried)[seen.places]
    if reading.happened:
        return Reach(None, why="what it does depends on values that it reads from tensors")

    def is_same(part: Surroundings) -> bool:
        scores = run(part.x, part.edge_index, **part.carried)
        difference = (scores[part.places] - expected).abs().max()
        return bool(difference <= _ROUNDING * expected.abs().max())

    near = torch.from_numpy(graph.within_hops(some, hops))
    for far in (_LARGE, -_LARGE):
        # Whatever ranks nodes, or compares them with all others, ranks some of them otherwise now.
        x = torch.full_like(seen.x, far).index_copy(0, near, seen.x[near])
        if not is_same(seen._replace(x=x)):
            return Reach(None, why=_ELSEWHERE)
    for degrees in (False, True):
        if is_same(surroundings_of(graph, some, hops, degrees=degrees)):
            return Reach(hops, degrees)
    return Reach(None, why=_ELSEWHERE)


@lru_cache(maxsize=4)
def _small_graph(length: int, num_features: int, weighted: bool, edge_columns: int) -> Graph:
    """Make a path with triangles and leaves along it; the path's nodes come first."""
    path = np.arange(length)
    leaves = np.arange(length, length + length // 2)
    edges = np.concatenate(
        [
            np.stack([path[:-1], path[1:]]),
            np.stack([path[:-2:4], path[2::4]]),
            np.stack([2 * (leaves - length), leaves]),
        ],
        axis=1,
    )
    n = length + len(leaves)
    x = generator(0, "small graph").random((n, num_features), dtype=np.float32)
    carried = generator(0, "small graph", "edges").random((edges.shape[1], 1 + edge_columns))
    return Graph.from_arrays(
        x,
        edges,
        np.zeros(n, dtype=np.int64),
        each_edge_once=True,
        edge_weight=0.5 + carried[:, 0] if weighted else None,
        edge_attr=carried[:, 1:] if edge_columns else None,
    )


class _Reading(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notices when numbers or truth values are read from tensors, to branch on them perhaps."""

    happened = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        aten = torch.ops.aten
        if func is aten._local_scalar_dense.default:
            # Whole numbers are counts of nodes or edges, which PyG reads all the time.
            self.happened |= args[0].dtype.is_floating_point or args[0].dtype == torch.bool
        self.happened |= func is aten.equal.default
        return func(*args, **(kwargs or {}))
