"""Whether the sums of closed-form members are exact after requests, on a graph of 10^6 nodes.

A generated graph is fitted from the disk; nodes, edges, features and labels are forgotten one by
one, so every sum has been changed many times. Then the sums are made once more from what is left,
which is read from the graph store without what was forgotten. Blocks of training nodes are
streamed through plain NumPy: what is counted is counted there from labels, features and edges; of a
regression each node's row is made afresh, and NumPy adds up the products. Last, the whole run is
verified: all is fitted again and every tensor compared, what was learned from the sums included.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation.members.base import labelled_places
from grapheraser.aggregation.members.ridge import FittedRidge
from grapheraser.aggregation.pooled import FittedPool
from grapheraser.execution import LocalExecutor
from grapheraser.graph import TRAIN, UNLABELLED, Graph
from grapheraser.graph.pages.stored import is_stored
from grapheraser.nodes import GraphEraser
from grapheraser.reports.wording import duration
from grapheraser.seeding import generator
from grapheraser.store.importing import import_graph
from grapheraser_lab.bench.stages import CLOSED_FORM, plan_of
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.timing import timed

_BLOCK = 2**13  # products of rows are at most 2**32: so many add up exactly in float64
_FIXED, _BOUND = 2.0**16, 16.0
Integers = NDArray[np.int64]


def run(
    datasets: Iterable[str] = ("1e7",),
    *,
    requests: int = 100,
    keep: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Compare every sum of each generated graph of so many edges.

    Args:
        datasets: numbers of edges.
        requests: how many, one after the other.
        keep: folder for the graph stores.
        progress: is told what comes next.
    """
    rows = []
    with tempfile.TemporaryDirectory() if keep is None else nullcontext(keep) as folder:
        for name in datasets:
            store = Path(folder) / name / "G"
            if not is_stored(store):
                progress(f"{name} import")
                import_graph(plan_of(name), store)
            rows.append(_compared(store, name, requests, progress))
    return {"benchmark": "member-sums", "requests": requests, "rows": rows}


def _compared(
    store: Path, name: str, requests: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    rest = Graph.open(store)
    progress(f"{name} fit")
    eraser = GraphEraser(CLOSED_FORM, executor=LocalExecutor(workers=1)).fit(rest)
    asked = list(_requests(rest, requests))
    progress(f"{name} {len(asked)} requests")
    for request in asked:
        eraser.unlearn(request)
        rest = rest.without(request)
    kept = {key: np.asarray(value) for key, value in _sums(eraser).items()}
    progress(f"{name} sums once more")
    again, seconds = timed(summed, rest, eraser)
    progress(f"{name} verify")
    return {
        "dataset": name,
        "nodes": rest.num_nodes,
        "edges": rest.num_edges,
        "requests": [type(request).__name__ for request in asked],
        "same_graph": rest.fingerprint == eraser.graph_.fingerprint,
        "sums": {
            key: {
                "numbers": int(value.size),
                "differ": int((value != again[key]).sum()),
                "largest": int(np.abs(value).max()),
            }
            for key, value in kept.items()
        },
        "seconds": seconds,
        "verified": eraser.verify().identical,
    }


def _requests(graph: Graph, count: int) -> Iterator[ge.Nodes | ge.Edges | ge.Features | ge.Labels]:
    """Six nodes, two edges, a row of features and a label of every ten."""
    order = generator(0, "bench", "member-sums").permutation(graph.train_nodes)[:count].tolist()
    for at, node in enumerate(order):
        if at % 10 < 6:
            yield ge.Nodes([node])
        elif at % 10 < 8:
            others = graph.neighbours(node)
            yield ge.Edges([(node, int(others[0]))]) if len(others) else ge.Nodes([node])
        else:
            yield ge.Features([node]) if at % 10 == 8 else ge.Labels([node])


def _sums(eraser: GraphEraser) -> dict[str, Integers]:
    """All whole numbers that the members keep, by member and name."""
    tensors = eraser.aggregator_.fitted.tensors
    return {
        key: np.asarray(tensor, dtype=np.int64)
        for key, tensor in tensors.items()
        if "/" in key and tensor.dtype.kind == "i"
    }


def summed(graph: Graph, eraser: GraphEraser) -> dict[str, Integers]:
    """The sums of a graph's closed-form members, by the names of their tensors."""
    c, f = graph.num_classes, graph.num_features
    y = np.where(graph.role == TRAIN, graph.y, UNLABELLED)
    found: dict[str, Any] = {
        "counts/classes": np.bincount(y[y >= 0], minlength=c),
        "counts/words": np.zeros((c, f), dtype=np.int64),
        "counts/sums": np.zeros((2, c, f), dtype=np.int64),
        "counts/pairs": _pairs(graph, y),
    }
    pool = eraser.aggregator_.fitted
    assert isinstance(pool, FittedPool)
    regressions = {k: some for k, some in pool.members.items() if isinstance(some, FittedRidge)}
    halves = {key: np.tril_indices(len(member.weights)) for key, member in regressions.items()}
    for key, member in regressions.items():
        found[f"{key}/gram"] = np.zeros(len(halves[key][0]), dtype=np.int64)
        found[f"{key}/cross"] = np.zeros((len(member.weights), c), dtype=np.int64)
    known, places = np.flatnonzero(y >= 0), labelled_places(graph)
    for start in range(0, len(known), _BLOCK):
        block = known[start : start + _BLOCK]
        classes = np.eye(c)[y[block]]
        x = graph.x[block].toarray().astype(np.float64)
        fixed = np.rint(np.clip(np.arcsinh(x), -_BOUND, _BOUND) * _FIXED)
        found["counts/words"] += (classes.T @ (x != 0)).astype(np.int64)
        found["counts/sums"] += np.stack([classes.T @ fixed, classes.T @ fixed**2]).astype(np.int64)
        for key, member in regressions.items():
            at = places[start : start + _BLOCK]
            rows = member.rule.rows(graph, at, eraser.seed, learning=True)
            found[f"{key}/gram"] += (rows.T @ rows)[halves[key]].astype(np.int64)
            found[f"{key}/cross"] += (rows.T @ classes).astype(np.int64)
    return found


def _pairs(graph: Graph, y: Integers) -> Integers:
    """Ordered pairs of adjacent training nodes by their classes."""
    c = graph.num_classes
    out = np.zeros(c * c, dtype=np.int64)
    for start in range(0, len(graph.indices), 2**20):
        ends = np.arange(start, min(start + 2**20, len(graph.indices)))
        sources = np.searchsorted(graph.indptr, ends, side="right") - 1
        mine, theirs = y[sources], y[graph.indices[ends]]
        both = (mine >= 0) & (theirs >= 0)
        out += np.bincount(mine[both] * c + theirs[both], minlength=c * c)
    return out.reshape(c, c)


def markdown(report: dict[str, Any]) -> str:
    """One row per graph and sum."""
    rows = []
    for row in report["rows"]:
        for key, found in row["sums"].items():
            size = f"{row['nodes']:,}", f"{row['edges']:,}", f"{len(row['requests'])}"
            counts = f"{found['numbers']:,}", f"{found['largest']:,}", f"{found['differ']:,}"
            rows.append((*size, f"`{key}`", *counts))
        told = "the whole run, fitted again", "", "", "none" if row["verified"] else "some"
        rows.append(("", "", "", *told))
    header = ("nodes", "edges", "requests", "sum", "numbers", "largest", "that differ")
    spent = ", ".join(duration(row["seconds"]) for row in report["rows"])
    return f"{markdown_table(header, rows)}\n\nSumming once more took {spent} of processor time."
