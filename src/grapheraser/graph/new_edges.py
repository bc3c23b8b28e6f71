"""Edges to add to a graph: their check, and the entries of the adjacency that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.edge_input import Counts, checked_values, with_values
from grapheraser.graph.edge_values import EdgeKind, Values
from grapheraser.graph.ids import with_names
from grapheraser.graph.requests import Removal
from grapheraser.kernels.paged import INCOMING

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

Ids = NDArray[np.int64]


class NewEdges(NamedTuple):
    """Edges as they were given.

    Attributes:
        pairs: ids ``[m, 2]``, sources and targets.
        values: what each carries, weight first ``[m, width]``.
        weighted: whether there are weights among it.
        called: names by id, of the ends that were given by name.
    """

    pairs: Ids
    values: Values
    weighted: bool
    called: Mapping[int, int]

    @classmethod
    def of(cls, given: Sequence[tuple[int, int]], edge_weight: Any, edge_attr: Any) -> NewEdges:
        """Check what was given of some edges besides their ends."""
        weighted, values = checked_values(edge_weight, edge_attr, len(given))
        pairs = np.array(given, dtype=np.int64).reshape(-1, 2)
        pairs.flags.writeable = values.flags.writeable = False
        return cls(pairs, values, weighted, with_names(chain(*given)))


class Entries(NamedTuple):
    """Entries of the adjacency, each edge from both ends, sorted.

    Attributes:
        rows, columns: ids of a node and of its neighbour.
        values: what the entries carry; see `edge_values`.
        there: which of them the graph has already, with other values.
    """

    rows: Ids
    columns: Ids
    values: Values
    there: NDArray[np.bool_]


def joined_edges(parts: Sequence[NewEdges], kind: EdgeKind) -> NewEdges:
    """All of these edges, which must carry what the edges of a graph do."""
    parts = [part for part in parts if len(part.pairs)]
    for part in parts:
        count, columns = len(part.pairs), part.values.shape[1] - part.weighted
        for name, wanted, found in (
            ("edge_weight", kind.weighted, part.weighted),
            ("edge_attr", kind.columns > 0, columns > 0),
        ):
            if wanted and not found:
                raise GraphError(
                    f"the edges of this graph have '{name}': each of the {count} new edges needs "
                    "one (found none)."
                )
            if found and not wanted:
                raise GraphError(
                    f"the edges of this graph have no '{name}' (found one for new edges)."
                )
        if columns != kind.columns:
            raise GraphError(f"'edge_attr' must have {kind.columns} columns (found {columns}).")
    width = kind.width - kind.directed
    return NewEdges(
        np.concatenate([np.zeros((0, 2), dtype=np.int64), *(part.pairs for part in parts)]),
        np.concatenate([np.zeros((0, width), np.float32), *(part.values for part in parts)]),
        kind.weighted,
        {node: name for part in parts for node, name in part.called.items()},
    )


def merged_edges(graph: Graph, removal: Removal, new: NewEdges) -> tuple[Entries, tuple[str, ...]]:
    """The entries that new edges make, and notes on what was merged.

    An edge that is given twice carries the mean; so does one that the graph has already, of what it
    carries and what is given.

    Args:
        graph: before anything is removed.
        removal: edges that it takes are not there.
        new: joins nodes of the graph or new ones.
    """
    kind, ends = graph.edge_kind, np.unique(new.pairs)
    at = np.searchsorted(ends, new.pairs.T).astype(np.int32)
    indptr, indices, values, counts = with_values(at, new.values, len(ends), kind.directed)
    rows, columns = np.repeat(ends, np.diff(indptr)), ends[indices]
    there = _are_there(graph, removal, rows, columns)
    if not kind.width:  # then there is nothing to change about an edge that is there
        made = Entries(rows[~there], columns[~there], values[~there], there[~there])
        return made, _notes(kind, counts, int(there.sum()) // 2)
    old = graph.values_between(rows[there], columns[there])
    values[there], again = _means(kind, old, values[there])
    return Entries(rows, columns, values, there), _notes(kind, counts, again)


def _notes(kind: EdgeKind, counts: Counts, again: int) -> tuple[str, ...]:
    """What was merged, in words; ``again`` edges are there already."""
    mean = kind.weighted or kind.columns > 0
    notes = {
        f"{counts.repeated} duplicate edges "
        + ("merged, with the mean of what they carry" if mean else "dropped"): counts.repeated,
        f"the two directions of {counts.differing} new edges carry other values: both get the "
        "mean": counts.differing,
        f"{again} of the edges to add are there already: "
        + ("they get the mean of both" if mean else "left as is"): again,
    }
    return tuple(note for note, count in notes.items() if count)


def _are_there(graph: Graph, removal: Removal, rows: Ids, columns: Ids) -> NDArray[np.bool_]:
    """Which of these entries, each edge from both ends, the graph has after a removal."""
    once = rows < columns
    pairs = np.stack([rows[once], columns[once]], axis=1)
    found = np.zeros(len(pairs), dtype=bool)
    known = graph.contains(pairs.ravel()).reshape(-1, 2).all(axis=1)
    found[known] = graph.has_edges(pairs[known])
    if len(removal.edges):
        taken = set(map(tuple, removal.edges.tolist()))
        found &= np.array([tuple(pair) not in taken for pair in pairs.tolist()], dtype=bool)
    there, back = np.empty(len(rows), dtype=bool), np.flatnonzero(~once)
    there[once] = found
    there[back[np.lexsort((rows[back], columns[back]))]] = found
    return there


def _means(kind: EdgeKind, old: Values, new: Values) -> tuple[Values, int]:
    """What entries carry that are there already, and how many edges that concerns."""
    means = ((old.astype(np.float64) + new) / 2).astype(np.float32)
    if not kind.directed:
        return means, len(new) // 2
    was, now = kind.directions(old), kind.directions(new)
    both = (was & now & INCOMING) != 0
    out = np.where((now & INCOMING != 0)[:, None], new, old)
    out[both] = means[both]
    out[:, 0] = was | now
    return out, int(both.sum())
