"""From raw data to the bits of an embedding; as a program, one answer for each line.

python -m tests.property.embedded
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import numpy as np

import grapheraser as ge


def graph_of(raw: dict[str, Any]) -> ge.Graph:
    """The graph, by the constructor that anyone would use; nodes are features by id."""
    ids, edges = [int(node) for node in raw["nodes"]], np.array(raw["edges"], dtype=np.int64)
    x = np.array(list(raw["nodes"].values()), dtype=np.float32)
    y = np.zeros(len(ids), dtype=np.int64)
    return ge.Graph.from_arrays(x, edges.reshape(-1, 2).T, y, ids=ids, each_edge_once=True)


def bits(embedder: ge.Embedder) -> dict[str, str]:
    """Digests of everything that is held, and of all rows."""
    arrays = {**embedder._snapshot.state.tensors(), "rows": embedder.transform(embedder.graph_.ids)}
    return {
        name: hashlib.sha256(f"{a.dtype}{a.shape}".encode() + a.tobytes()).hexdigest()
        for name, a in arrays.items()
    }


if __name__ == "__main__":
    for line in sys.stdin:
        raw = json.loads(line)
        print(json.dumps(bits(ge.Embedder(**raw["arguments"]).fit(graph_of(raw)))), flush=True)
