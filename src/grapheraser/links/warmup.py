"""Compiled code of link runs made ready before it is needed."""

from __future__ import annotations

import numpy as np

from grapheraser.eraser.warmup import compiling
from grapheraser.graph import Edges, Features, Graph, Nodes
from grapheraser.links.eraser import LinkEraser


def warm_up_links() -> None:
    """Compile what closed-form link runs will use, whatever their graph."""
    n = 12
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    graph = Graph.from_arrays(np.eye(n), ring, np.zeros(n, dtype=np.int64), each_edge_once=True)
    with compiling():
        eraser = LinkEraser().fit(graph)
        eraser.rank(0)
        for request in (Nodes([0]), Edges([(4, 5)]), Features([7])):
            eraser.unlearn(request)
        eraser.predict_proba([(1, 5)])
