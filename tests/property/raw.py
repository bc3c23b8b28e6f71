"""From raw data to a graph and the bits of a fit; as a program, one answer for each line.

python -m tests.property.raw
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import numpy as np

import grapheraser as ge

Raw = dict[str, Any]  # nodes: [label, features] by id; edges: pairs of ids; model; num_classes


def graph_of(raw: Raw) -> ge.Graph:
    """The graph, by the constructor that anyone would use."""
    ids = [int(node) for node in raw["nodes"]]
    rows = list(raw["nodes"].values())
    if "missing" in raw:
        return _graph_of_tables(raw, ids, rows)
    edges = np.array(raw["edges"], dtype=np.int64).reshape(-1, 2).T
    x, y = np.array([row[1] for row in rows]), np.array([row[0] for row in rows])
    return ge.Graph.from_arrays(
        x, edges, y, ids=ids, num_classes=raw["num_classes"], each_edge_once=True
    )


def _graph_of_tables(raw: Raw, ids: list[int], rows: list[Any]) -> ge.Graph:
    cells = zip(*(row[1] for row in rows), strict=True)
    columns = dict(zip(raw["missing"], map(list, cells), strict=True))
    ends = dict(zip(("source", "target"), map(list, zip(*raw["edges"], strict=True)), strict=True))
    return ge.Graph.from_tables(
        {"id": ids, "label": [row[0] for row in rows], **columns},
        ends or {"source": [], "target": []},
        **{name: raw[name] for name in ("missing", "categories", "num_classes")},
    )


def fitted(raw: Raw) -> ge.GraphEraser:
    shards: Any = {} if raw["model"] == "closed-form" else {"num_shards": 2, "epochs": 2}
    return ge.GraphEraser(raw["model"], executor=ge.LocalExecutor(1), **shards).fit(graph_of(raw))


def bits(eraser: ge.GraphEraser) -> dict[str, str]:
    """Digests of everything that was learned and is predicted."""
    arrays = {
        **eraser._snapshot.state.tensors(),
        "posteriors": eraser.predict_proba(eraser.graph_.ids),
    }
    return {
        name: hashlib.sha256(f"{a.dtype}{a.shape}".encode() + a.tobytes()).hexdigest()
        for name, a in arrays.items()
    }


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(bits(fitted(json.loads(line)))), flush=True)
