"""Values of edges: the direction, weight and features that entries of the adjacency carry.

Row u lists each neighbour v once. The entry's values belong to the edge from v to u, which is the
one that u's message passing reads; in an undirected graph both entries of an edge have the same.
Values are float32, in this order:

    direction   in directed graphs: `INCOMING` (v to u), `OUTGOING` (u to v) or `BOTH`
    weight      in weighted graphs
    features    the edge's own row

Where there is only the outgoing edge, weight and features are 0; the neighbour's row has them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import flag
from grapheraser.errors import GraphError
from grapheraser.graph.arrays import as_array, as_int64
from grapheraser.graph.csr import row_pointers, symmetric_csr
from grapheraser.graph.ids import as_ids, shown
from grapheraser.kernels.paged import INCOMING, OUTGOING

Values = NDArray[np.float32]

BOTH = INCOMING | OUTGOING
NO_VALUES: Values = np.zeros((0, 0), dtype=np.float32)
NO_VALUES.flags.writeable = False
_KEEPING = "directed=True keeps directions"

Keys = NDArray[np.int64]
Means = NDArray[np.float64]


class EdgeKind(NamedTuple):
    """The kind of edges that a graph has."""

    directed: bool = False  # whether an edge leads from one node to the other
    weighted: bool = False  # whether it has a weight
    columns: int = 0  # how many features it has

    @property
    def width(self) -> int:
        """Number of values that an entry carries."""
        return int(self.directed) + int(self.weighted) + self.columns

    def directions(self, values: Values) -> NDArray[np.int64]:
        """Return the direction of each entry."""
        if not self.directed:
            return np.full(len(values), BOTH, dtype=np.int64)
        return values[:, 0].astype(np.int64)

    def weights(self, values: Values) -> Values | None:
        """Return the weight of each entry; None where edges have none."""
        return values[:, int(self.directed)] if self.weighted else None

    def features(self, values: Values) -> Values | None:
        """Return the features of each entry; None where edges have none."""
        return values[:, self.width - self.columns :] if self.columns else None

    def incoming_weights(self, values: Values) -> Values | None:
        """Return the weight with which each entry's neighbour comes in, or 0; None: all 1."""
        if self.weighted or not self.directed:
            return self.weights(values)
        return (values[:, 0] != OUTGOING).astype(np.float32)


PLAIN = EdgeKind()


def converted(values: Values, back: NDArray[np.int32], old: EdgeKind, new: EdgeKind) -> Values:
    """Return the values of entries whose edges lose weights, features or directions.

    ``back`` is the place of the entry of the opposite direction of each.
    """
    carried = values[:, int(old.directed) :]
    if old.directed and not new.directed:
        comes_in = (old.directions(values) & INCOMING != 0)[:, None]
        both = carried.astype(np.float64) + carried[back]  # what is not there is 0
        carried = (both / (comes_in + comes_in[back].astype(np.float64))).astype(np.float32)
    parts = [values[:, :1]] if new.directed else []
    parts += [carried[:, :1]] if new.weighted else []
    parts += [carried[:, int(old.weighted) :]] if new.columns else []
    return np.concatenate(parts, axis=1) if parts else NO_VALUES


# -- edges as they are given ----------------------------------------------------------------------


class EdgeInput(NamedTuple):
    """Values of edges as they are given, beside their end points; see `Graph.from_arrays`."""

    edge_weight: Any = None
    edge_attr: Any = None
    directed: bool = False
    each_edge_once: bool = False


class Adjacency(NamedTuple):
    """The fields of a `Graph` that are about its edges, and notes on them."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    edge_kind: EdgeKind
    edge_values: Values
    notes: tuple[str, ...]


def checked_edges(edge_index: ArrayLike, ids: NDArray[np.int64], given: EdgeInput) -> Adjacency:
    """Make the adjacency of edges ``[2, m]`` between these sorted ids."""
    pairs = as_array(edge_index, "edge_index")
    if pairs.size == 0:
        pairs = np.zeros((2, 0), dtype=np.int64)
    named = pairs.dtype.kind in "UO" and pairs.ndim == 2
    shown_by, pairs = pairs, as_ids(pairs.ravel()).reshape(pairs.shape) if named else pairs
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
        raise GraphError(
            f"edge_index must be an integer array of shape [2, m] "
            f"(found {list(pairs.shape)}, dtype {pairs.dtype}).",
            hint="pass pairs as edges.T." if pairs.shape[1:] == (2,) else None,
        )
    directed = flag("directed", "Graph.from_arrays", given.directed)
    weighted, values = checked_values(given.edge_weight, given.edge_attr, pairs.shape[1])
    kind = EdgeKind(directed, weighted, values.shape[1] - weighted)
    at = ranks_among(as_int64(pairs, "edge end points"), ids, shown_by)
    if kind.width:
        indptr, indices, carried, counts = with_values(at, values, len(ids), directed)
    else:
        indptr, indices, *plain = symmetric_csr(at[0], at[1], len(ids))
        carried, counts = NO_VALUES, Counts(*plain)
    return Adjacency(
        indptr,
        indices,
        kind,
        carried,
        edge_notes(kind, counts, each_edge_once=given.each_edge_once),
    )


def checked_values(edge_weight: Any, edge_attr: Any, count: int) -> tuple[bool, Values]:
    """Weights and features of so many edges.

    Returns: whether there are weights; and ``[count, width]``, weight first.
    """
    parts = [np.zeros((count, 0), dtype=np.float32)]
    if edge_weight is not None:
        weights = as_array(edge_weight, "edge_weight")
        if weights.shape not in ((count,), (count, 1)):
            raise GraphError(
                f"edge_weight must have one number per edge: {count} "
                f"(found shape {list(weights.shape)}).",
                hint="several numbers per edge are edge_attr.",
            )
        parts.append(_finite(weights.reshape(count, 1), "edge_weight"))
    if edge_attr is not None:
        rows = as_array(edge_attr, "edge_attr")
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
            raise GraphError(
                f"edge_attr must have one row per edge: {count} (found shape {list(rows.shape)})."
            )
        parts.append(_finite(rows, "edge_attr"))
    return edge_weight is not None, np.concatenate(parts, axis=1)


def _finite(values: NDArray[Any], what: str) -> Values:
    if values.dtype.kind not in "fiub":
        raise GraphError(f"{what} must be made of numbers (found dtype {values.dtype}).")
    with np.errstate(over="ignore"):  # too large for float32 is infinite, and refused
        found: Values = values.astype(np.float32)
    wrong = ~np.isfinite(found)
    if wrong.any():
        edge = int(np.flatnonzero(wrong.any(axis=1))[0])
        raise GraphError(
            f"{what} must be finite (found {values[wrong][0]} at edge {edge}; "
            f"{int(wrong.sum())} such values)."
        )
    return found


def merged(keys: Keys, values: Values) -> tuple[Keys, Means]:
    """Return sorted keys, each once, and the mean of the values of each.

    The sort is stable and the sums are float64: repeated edges are added in the order in which they
    were given, and another order would give other bits.
    """
    if not len(keys):
        return keys, values.astype(np.float64)
    order = np.argsort(keys, kind="stable")
    once, starts, counts = np.unique(keys[order], return_index=True, return_counts=True)
    sums = np.add.reduceat(values[order].astype(np.float64), starts, axis=0)
    return once, sums / counts[:, None]


class Counts(NamedTuple):
    """Numbers of edges that were put right: loops, repetitions, those without their reverse."""

    loops: int
    repeated: int
    one_way: int
    differing: int = 0  # those that carry other values than their reverse


def with_values(
    at: NDArray[np.int32], values: Values, n: int, directed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32], Values, Counts]:
    """Make a CSR whose rows are the targets of the edges: pointers, sorted columns and values."""
    real = at[0] != at[1]
    sources, targets = at[:, real].astype(np.int64)
    keys, means = merged(targets * n + sources, values[real])
    entries = np.union1d(keys, _reversed(keys, n))
    comes_in, here = _found(entries, keys, means)
    leads_out, there = _found(_reversed(entries, n), keys, means)
    if directed:
        direction = INCOMING * comes_in + OUTGOING * leads_out
        carried = np.column_stack([direction, here])
        differing = 0
    else:
        ways = comes_in.astype(np.float64) + leads_out
        carried = (here + there) / ways[:, None]
        other = comes_in & leads_out & (here != there).any(axis=1)
        differing = int(other.sum()) // 2
    counts = Counts(
        int((~real).sum()),
        int(real.sum()) - len(keys),
        int((comes_in & ~leads_out).sum()),
        differing,
    )
    indptr, indices = row_pointers(entries // max(n, 1), n), entries % max(n, 1)
    return indptr, indices.astype(np.int32), carried.astype(np.float32), counts


def _reversed(keys: Keys, n: int) -> Keys:
    return keys % max(n, 1) * n + keys // max(n, 1)


def _found(wanted: Keys, keys: Keys, means: Means) -> tuple[NDArray[np.bool_], Means]:
    """Look keys up: a mask of those that are there, and their values, zeros for others."""
    if not len(keys):
        return np.zeros(len(wanted), dtype=bool), np.zeros((len(wanted), means.shape[1]))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    there = keys[at] == wanted
    return there, np.where(there[:, None], means[at], 0.0)


def edge_notes(kind: EdgeKind, counts: Counts, *, each_edge_once: bool) -> tuple[str, ...]:
    """Say in words what was put right."""
    carried = kind.weighted or kind.columns > 0
    notes = []
    if counts.loops:
        notes.append(f"{counts.loops} self-loops dropped" + (" with what they carry" * carried))
    if counts.repeated:
        merging = "merged, with the mean of what they carry" if carried else "dropped"
        notes.append(f"{counts.repeated} duplicate edges {merging}")
    if counts.one_way and not kind.directed and not each_edge_once:
        notes.append(
            f"the input was directed: the reverse of {counts.one_way} edges was added ({_KEEPING})"
        )
    if counts.differing:
        notes.append(
            f"the two directions of {counts.differing} edges carry other values: both got the mean "
            f"({_KEEPING})"
        )
    return tuple(notes)


def ranks_among(
    ends: NDArray[np.int64], ids: NDArray[np.int64], given: NDArray[Any]
) -> NDArray[np.int32]:
    """Return the rank of each id among sorted ones; refuse others, as they were given."""
    n = len(ids)
    if n and ids[0] == 0 and ids[-1] == n - 1:
        unknown = (ends < 0) | (ends >= n)
        at = ends
    else:
        at = np.minimum(np.searchsorted(ids, ends), max(n - 1, 0))
        unknown = ids[at] != ends if n else np.ones(ends.shape, dtype=bool)
    if unknown.any():
        raise GraphError(
            f"edge end points must be among the {n} node ids (found {shown(given[unknown][0])})."
        )
    return np.ascontiguousarray(at, dtype=np.int32)
