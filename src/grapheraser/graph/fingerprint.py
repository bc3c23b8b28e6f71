"""A content hash of a graph that a removal updates by hashing the touched nodes alone.

Every node has a leaf, the SHA-256 of its id, label, role, neighbours and features; the fingerprint
is the SHA-256 of all leaves in the order of their ids. A removal changes the leaves of a node's
neighbours only; all others are kept.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

_FORMAT = b"grapheraser-graph-1"


def leaves(graph: Graph, positions: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Digests ``[len(positions), 32]`` of the nodes at these positions."""
    out = np.empty((len(positions), 32), dtype=np.uint8)
    x_indptr = graph.x.indptr
    columns = graph.x.indices.astype("<i4", copy=False)
    values = graph.x.data.astype("<f4", copy=False)
    ids = graph.ids.astype("<i8", copy=False)
    degree = graph.indptr[positions + 1] - graph.indptr[positions]
    labels, roles = graph.y[positions], graph.role[positions]
    heads = np.stack([ids[positions], labels, roles, degree], axis=1)
    heads = heads.astype("<i8", copy=False)
    for i, p in enumerate(positions.tolist()):
        entries = slice(x_indptr[p], x_indptr[p + 1])
        around = graph.indices[graph.indptr[p] : graph.indptr[p + 1]]
        digest = hashlib.sha256(heads[i].tobytes())
        digest.update(ids[around].tobytes())
        digest.update(columns[entries].tobytes())
        digest.update(values[entries].tobytes())
        out[i] = np.frombuffer(digest.digest(), dtype=np.uint8)
    return out


def combine(header: tuple[int, ...], node_leaves: NDArray[np.uint8]) -> str:
    """The fingerprint of a graph from its schema and its leaves."""
    digest = hashlib.sha256(_FORMAT)
    digest.update(np.array(header, dtype="<i8").tobytes())
    digest.update(node_leaves.tobytes())
    return digest.hexdigest()
