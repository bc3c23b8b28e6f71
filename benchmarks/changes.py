"""Adding many nodes in one call and one by one, corrections, and nodes that are not in the graph.

Run it as ``python benchmarks/changes.py [DATASET]`` with one thread (``OMP_NUM_THREADS=1``); prints
process times in JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import grapheraser as ge

MANY, EDGES = 1000, 4


def seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main(dataset: str = "pubmed") -> None:
    graph, rng = ge.load_dataset(dataset), np.random.default_rng(0)
    rows = rng.choice(graph.num_nodes, MANY)
    x, y = graph.x[rows], graph.y[rows]
    near = np.array([rng.choice(graph.ids, EDGES, replace=False) for _ in range(MANY)])

    def nodes(first: int, part: slice) -> ge.AddNodes:
        ids = first + np.arange(MANY)[part]
        edges = np.stack([np.repeat(ids, EDGES), near[part].ravel()], axis=1)
        return ge.AddNodes(ids, x[part], y[part], edges)

    def fitted() -> ge.GraphEraser:
        return ge.GraphEraser(executor=ge.LocalExecutor(1)).fit(graph)

    eraser = fitted()
    eraser.update(nodes(10**6, slice(0, 2)))  # whatever is compiled first
    many = [nodes(first, slice(0, MANY)) for first in (2 * 10**6, 3 * 10**6, 4 * 10**6)]
    at_once = [seconds(partial(eraser.update, each)) for each in many]
    eraser = fitted()
    singles: dict[str, Callable[[int], Any]] = {
        "one node": lambda at: nodes(5 * 10**6, slice(at, at + 1)),
        "one feature row": lambda at: ge.SetFeatures(graph.train_nodes[[at]], x[[at]]),
        "one label": lambda at: ge.SetLabels(graph.train_nodes[[at]], [(at + 1) % 2]),
        "one edge": lambda at: ge.AddEdges([(5 * 10**6 + at, int(graph.ids[0]) + at)]),
    }
    found = {}
    for name, change in singles.items():
        times = [seconds(partial(eraser.update, change(at))) for at in range(20)]
        found[name] = statistics.median(times[2:])
    asked = slice(0, 200)
    eraser.predict_proba_new(x[:2], list(near[:2]))
    new = seconds(lambda: eraser.predict_proba_new(x[asked], list(near[asked]))) / 200
    print(
        json.dumps(
            {
                "dataset": dataset,
                f"{MANY} nodes in one call": statistics.median(at_once),
                f"{MANY} nodes one by one, from the median of one": MANY * found["one node"],
                **found,
                "predict_new, a node": new,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
