"""Embeddings beside DeepWalk, node2vec and FastRP, and what it costs to forget in one.

`run` judges rows of every method alike, see `measure.embeddings`. Settings of the rivals are chosen
on validation nodes and edges of each graph; ours are the defaults on all of them, with and without
features. `cost` times requests for one node each, and counts the rows that they move. DeepWalk and
node2vec need gensim (``pip install gensim``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.checks import one_of
from grapheraser.datasets import generate_graph, load_dataset
from grapheraser.embeddings import Embedder
from grapheraser.graph import Graph, Nodes
from grapheraser.seeding import generator
from grapheraser_lab.figures.tables import filled, markdown_table
from grapheraser_lab.measure.embeddings import (
    Method,
    Pairs,
    Rows,
    Split,
    best_of,
    deepwalk,
    fastrp,
    node2vec_ways,
)
from grapheraser_lab.timing import processor_seconds, timed

DATASETS = ("cora", "pubmed", "facebook_pages", "amazon_computers")
OURS, WITH_FEATURES = "Embedder", "Embedder with features"
WIDE = "Embedder with features, 256 columns"
RIVALS: dict[str, Method] = {"DeepWalk": deepwalk, "node2vec": node2vec_ways, "FastRP": fastrp}
METHODS = (OURS, WITH_FEATURES, WIDE, *RIVALS)
_TITLES = {
    "f1": "F1 of a linear probe",
    "auc": "AUC of links",
    "auc_known": "AUC of links whose ends have an edge left",
}
MILLION = "generated, 1,000,000 nodes"

Report = Mapping[str, Any]


def run(
    datasets: Iterable[str] = DATASETS,
    methods: Iterable[str] = METHODS,
    *,
    seeds: int = 1,
    folder: str | Path = "runs/embeddings",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure what is not measured yet, and report on everything.

    Args:
        datasets: which data sets.
        methods: which methods.
        seeds: split and rows are seeded with 0, 1, 2, ...
        folder: where results are kept; what is there is not measured again.
        progress: told how far it is.
    """
    asked = [one_of("methods", "embeddings", name, METHODS) for name in methods]
    kept, found = Path(folder), []
    kept.mkdir(parents=True, exist_ok=True)
    for name in datasets:
        for seed in range(seeds):
            for method in asked:
                file = kept / f"{name}-{method.replace(',', '').replace(' ', '-')}-{seed}.json"
                if not file.exists():
                    progress(f"{name}, {method}, seed {seed}")
                    file.write_text(json.dumps(_judged(name, method, seed)))
                found.append(json.loads(file.read_text()))
    return {"benchmark": "embeddings", "cells": found}


def _judged(name: str, method: str, seed: int) -> dict[str, Any]:
    graph = load_dataset(name)
    edges = np.sort(graph.positions(graph.edges.reshape(-1)).reshape(-1, 2), axis=1)
    split = Split.of(graph.num_nodes, edges, seed)
    arguments = {"features": method != OURS, "width": 256 if method == WIDE else 128}
    ours = partial(_embedded, graph, arguments)
    found, seconds = timed(best_of, RIVALS.get(method, ours), graph.y, split, seed)
    return {"dataset": name, "method": method, "seed": seed, **found, "seconds": seconds}


def _embedded(
    graph: Graph, arguments: dict[str, Any], num_nodes: int, edges: Pairs, seed: int
) -> Iterator[tuple[str, Rows]]:
    y = np.zeros(num_nodes, dtype=np.int64)
    rest = Graph.from_arrays(graph.x, edges.T, y, each_edge_once=True)
    yield "defaults", Embedder(**arguments, seed=seed).fit_transform(rest)


def cost(
    datasets: Iterable[str] = ("physics", MILLION),
    *,
    requests: int = 30,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Time a fit, requests for one node each and their rows; count the rows that move.

    Processor time of one thread. A request is what `unlearn` does, receipt included.

    Args:
        datasets: which data sets; the generated graph has ten million edges.
        requests: how many.
        progress: told how far it is.
    """
    costs = {}
    for name in datasets:
        progress(name)
        graph = _million() if name == MILLION else load_dataset(name)
        tiny = Embedder().fit(_tiny(graph))  # compiles
        tiny.unlearn(Nodes([0]))
        tiny.transform([1])
        embedder = Embedder()
        fit = processor_seconds(embedder.fit, graph)
        nodes = generator(0, "embeddings", "cost").permutation(graph.ids)[: requests + 1]
        seconds, moved = [], []
        for node in nodes.tolist():
            version = embedder.version_
            seconds.append(processor_seconds(embedder.unlearn, Nodes([node])))
            moved.append(len(embedder.changes(since=version)))
        some = embedder.graph_.ids[:1000]
        costs[name] = {
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "fit": fit,
            "node": float(np.median(seconds[1:])),
            "node_p90": float(np.percentile(seconds[1:], 90)),
            "moved": float(np.median(moved[1:])),
            "moved_p90": float(np.percentile(moved[1:], 90)),
            "thousand_rows": processor_seconds(embedder.transform, some),
            "held_bytes": _held(embedder),
        }
    return {"benchmark": "embeddings-cost", "costs": costs}


def _tiny(graph: Graph) -> Graph:
    """Return a ring of nodes with the kind of features of a graph."""
    ring = np.stack([np.arange(300), (np.arange(300) + 1) % 300])
    x = graph.subgraph(graph.ids[:300]).x
    return Graph.from_arrays(x, ring, np.zeros(300, dtype=np.int64), each_edge_once=True)


def _million() -> Graph:
    return generate_graph(1_000_000, degree=20)


def _held(embedder: Embedder) -> int:
    tally = getattr(embedder._snapshot.state.aggregator, "tally", None)
    return 0 if tally is None else int(tally.nbytes)


def markdown(report: Report) -> str:
    """Tables of the report, and the verdict."""
    if report["benchmark"] == "embeddings-cost":
        return costs(report)
    tables = [table(report, key) for key in _TITLES]
    return "\n\n".join([*tables, verdict(report)])


def means(report: Report, key: str) -> dict[tuple[str, str], float]:
    """Average a score over seeds, by data set and method."""
    grouped: dict[tuple[str, str], list[float]] = {}
    for cell in report["cells"]:
        if key in cell:
            grouped.setdefault((cell["dataset"], cell["method"]), []).append(cell[key])
    return {name: float(np.mean(some)) for name, some in grouped.items()}


def table(report: Report, key: str) -> str:
    """Lay out a score by data set and method."""
    found = means(report, key)
    methods = list(dict.fromkeys(method for _, method in found))
    rows = [
        (name, *(f"{found[name, m]:.4f}" if (name, m) in found else "" for m in methods))
        for name in dict.fromkeys(name for name, _ in found)
    ]
    return markdown_table((_TITLES[key], *methods), rows)


def verdict(report: Report) -> str:
    """Compare ours with the best rival of each graph."""
    words = []
    for key, what in (("f1", "F1"), ("auc", "AUC"), ("auc_known", "AUC, linked ends,")):
        found = means(report, key)
        for ours in (OURS, WITH_FEATURES, WIDE):
            shares = []
            for name in dict.fromkeys(name for name, _ in found):
                rivals = [found[name, r] for r in RIVALS if (name, r) in found]
                if rivals and (name, ours) in found:
                    shares.append(found[name, ours] / max(rivals))
            if shares:
                share = f"{np.mean(shares):.3f} (mean), {min(shares):.3f} (least)"
                words.append(f"{what} of {ours} over that of the best rival: {share}.")
    return "\n".join(words)


def costs(report: Report) -> str:
    """Lay out costs by graph."""
    header = " | fit | forget a node | rows that move | 1,000 rows | held"
    row = (
        "{name} | {fit:.1f} s | {node:ms} / {node_p90:ms} ms | {moved:,.0f} / {moved_p90:,.0f} | "
        "{thousand_rows:ms0} ms | {held_bytes:mb} MB"
    )
    known = [{"name": name, **value} for name, value in report["costs"].items()]
    words: dict[str, Callable[[Any], str]] = {
        "ms": lambda s: f"{1e3 * s:.1f}",
        "ms0": lambda s: f"{1e3 * s:.0f}",
        "mb": lambda size: f"{size / 1e6:.0f}",
    }
    table = filled(header, row, known, words=words)
    return f"{table}\n\nMedians / 90 % of requests; processor time of one thread."
