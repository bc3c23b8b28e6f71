"""What differs between two graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.graph.arrays import as_ids
from grapheraser.graph.csr import slices_of

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph


def changed_feature_rows(before: Graph, after: Graph, nodes: ArrayLike) -> NDArray[np.bool_]:
    """Whether each node has another feature row after than before, or is missing from a graph.

    Reads the rows of ``nodes`` alone, so a handful of nodes costs little on any graph.
    """
    ids = as_ids(nodes)
    changed = ~(before.contains(ids) & after.contains(ids))
    at = np.flatnonzero(~changed)
    old, new = before.positions(ids[at]), after.positions(ids[at])
    old_x, new_x = before.x, after.x
    lengths = old_x.indptr[old + 1] - old_x.indptr[old]
    same = lengths == new_x.indptr[new + 1] - new_x.indptr[new]
    changed[at[~same]] = True

    # Rows of the same length lie entry by entry beside each other: their columns are sorted.
    old_entries = slices_of(old_x.indptr, old[same])
    new_entries = slices_of(new_x.indptr, new[same])
    differs = old_x.indices[old_entries] != new_x.indices[new_entries]
    differs |= old_x.data[old_entries] != new_x.data[new_entries]
    changed[np.repeat(at[same], lengths[same])[differs]] = True
    return changed
