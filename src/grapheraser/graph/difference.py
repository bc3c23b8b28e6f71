"""What differs between two graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.graph.arrays import as_ids
from grapheraser.kernels.paged import NOWHERE, feature_rows, located

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph


def changed_feature_rows(before: Graph, after: Graph, nodes: ArrayLike) -> NDArray[np.bool_]:
    """Whether each node has another feature row after than before, or is missing from a graph.

    Reads the rows of ``nodes`` alone, so a handful of nodes costs little on any graph.
    """
    ids = as_ids(nodes)
    old, new = located(before.table, ids), located(after.table, ids)
    changed = (old == NOWHERE) | (new == NOWHERE)
    at = np.flatnonzero(~changed)
    old_ends, old_columns, old_values = feature_rows(before.table, old[at])
    new_ends, new_columns, new_values = feature_rows(after.table, new[at])
    lengths = np.diff(old_ends)
    same = lengths == np.diff(new_ends)
    changed[at[~same]] = True

    # Rows of the same length lie entry by entry beside each other: their columns are sorted.
    old_entries, new_entries = np.repeat(same, lengths), np.repeat(same, np.diff(new_ends))
    differs = old_columns[old_entries] != new_columns[new_entries]
    differs |= old_values[old_entries] != new_values[new_entries]
    changed[np.repeat(at[same], lengths[same])[differs]] = True
    return changed
