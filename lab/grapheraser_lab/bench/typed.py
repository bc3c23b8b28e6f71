"""Typed graphs: nodes of two graphs beside R-GCN and an MLP on path means, and costs of forgetting.

DBLP has authors, papers, venues and terms, and needs ``tasks/typed/dblp.npz`` in the folder of data
sets. WordNet has synsets that point to each other, and words in them; it was looked at once, when
all settings were fixed. Of the labelled nodes a share of .24 is trained on and .06 is for
validation, on which rivals choose their settings and their epoch. Ours are the defaults; on DBLP
also settings chosen as rivals do, on the validation nodes of each split alone, since the defaults
were chosen with test authors of other splits in sight. The MLP is SeHGNN's recipe: rows of path
means, a projection of each, and layers on top. `cost` times requests on a generated graph of four
types and on one without types, of the same size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.aggregation.members import paths
from grapheraser.datasets import generate_graph
from grapheraser.datasets.load import data_root
from grapheraser.environment import versions
from grapheraser.graph import Graph, Nodes
from grapheraser.graph.formats.typed import RelationEdges, assembled
from grapheraser.seeding import generator
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.rivals.typed import GRIDS, MLP, RGCN, trained
from grapheraser_lab.timing import processor_seconds

OURS, CHOSEN = "closed form", "closed form, chosen on validation nodes"
METHODS = (OURS, CHOSEN, RGCN, MLP)
SHARES = (0.24, 0.06)
# Of the rivals; more where more classes are learned from more nodes.
_EPOCHS = {"dblp": 60, "wordnet": 150}
# Of equally good settings the first is taken.
_GRIDS: dict[str, list[dict[str, Any]]] = {
    OURS: [{}],
    CHOSEN: [
        {"RIDGE_OF_FEW": ridge, "REACH_OF_FEW": reach, "KNOWN": known, "SHARES": shares}
        for reach, ridge, known, shares in product(
            ((64, 16), (16, 8)), (1.0, 3.0, 10.0), (2, 16, 64), (2, 5, 20)
        )
    ],
    **GRIDS,
}
Report = Mapping[str, Any]
Ids = NDArray[np.int64]


def run(
    datasets: Iterable[str] = ("dblp", "wordnet"),
    methods: Iterable[str] = METHODS,
    *,
    seeds: int = 5,
    settings: int | None = None,
    device: str = "cpu",
    processes: int = 1,
    keep: str | Path = "runs/typed",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure what is not measured yet, and report on everything.

    Args:
        datasets: of `GRAPHS`.
        methods: which methods; settings are chosen on DBLP alone.
        seeds: splits and models are seeded with 0, 1, 2, ...
        settings: how many of a method's settings are tried; None: all.
        device: of the rivals.
        processes: cells that are measured side by side.
        keep: folder of results; what is there is not measured again.
        progress: told how far it is.
    """
    folder = Path(keep)
    folder.mkdir(parents=True, exist_ok=True)
    cells = [
        (
            dataset,
            method,
            seed,
            settings,
            device,
            folder / f"{dataset}-{METHODS.index(method)}-{seed}.json",
        )
        for dataset, method, seed in product(datasets, methods, range(seeds))
        if dataset == "dblp" or method != CHOSEN
    ]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for cell, _ in zip(cells, pool.map(_kept, cells), strict=True):
            progress(f"{cell[0]}: {cell[1]}, split {cell[2]}")
    found = [json.loads(cell[-1].read_text()) for cell in cells]
    return {"benchmark": "typed", "versions": versions(), "device": device, "cells": found}


def _kept(cell: tuple[str, str, int, int | None, str, Path]) -> None:
    """Measure a cell, if it isn't there."""
    file = cell[-1]
    if not file.exists():
        found = json.dumps(_judged(*cell[:-1]))
        file.with_suffix(".new").write_text(found)
        file.with_suffix(".new").replace(file)


def _judged(
    dataset: str, method: str, seed: int, settings: int | None, device: str
) -> dict[str, Any]:
    """Return the setting that is best on the validation nodes, and its scores."""
    graph, tried = GRAPHS[dataset](seed), []
    for setting in _GRIDS[method][:settings]:
        if method in (OURS, CHOSEN):
            from grapheraser.nodes import GraphEraser  # needs more than rivals do

            with _set(setting):
                eraser = GraphEraser("closed-form", seed=seed).fit(graph)
                nodes = {"validation": graph.validation_nodes, "test": graph.test_nodes}
                scores = {name: eraser.score(some) for name, some in nodes.items()}
        else:
            epochs = _EPOCHS[dataset]
            scores = trained(method, graph, setting, epochs=epochs, seed=seed, device=device)
        tried.append({**setting, **scores})
    best = max(tried, key=lambda each: each["validation"])
    named = {"dataset": dataset, "method": method, "seed": seed}
    return {**named, **best, "settings": len(tried)}


@contextmanager
def _set(setting: Mapping[str, Any]) -> Iterator[None]:
    """Let the regression on paths have other constants meanwhile."""
    before = {name: getattr(paths, name) for name in setting}
    try:
        for name, value in setting.items():
            setattr(paths, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(paths, name, value)


def dblp(seed: int) -> Graph:
    """Return the graph of DBLP with a random split of the labelled authors."""
    with np.load(data_root() / "tasks" / "typed" / "dblp.npz", allow_pickle=True) as z:
        papers, _, venues, terms = z["counts"].tolist()
        y, ends = z["author_label"], {key: z[f"paper_{key}"] for key in ("author", "conf", "term")}
    parts = {"author": _labelled(y, seed)}
    for kind, count in (("paper", papers), ("venue", venues), ("term", terms)):
        parts[kind] = _bare(count)
    joined = {
        ("paper", said, kind): RelationEdges(*ends[key].astype(np.int64).T)
        for said, kind, key in (
            ("by", "author", "author"),
            ("at", "venue", "conf"),
            ("has", "term", "term"),
        )
    }
    return assembled(Graph, parts, joined, "author", name="dblp")


def wordnet(seed: int) -> Graph:
    """Return synsets that point to each other, and the words in their glosses and lemmas."""
    with np.load(data_root() / "wordnet.npz", allow_pickle=False) as z:
        y, pointers, words = z["y"].astype(np.int64), z["edge_index"], z["x_indices"]
        synsets = np.repeat(np.arange(len(y)), np.diff(z["x_indptr"]))
        parts = {"synset": _labelled(y, seed), "word": _bare(int(z["x_shape"][1]))}
    joined = {
        ("synset", "points to", "synset"): RelationEdges(*pointers.astype(np.int64)),
        ("synset", "has", "word"): RelationEdges(synsets, words.astype(np.int64)),
    }
    return assembled(Graph, parts, joined, "synset", name="wordnet")


GRAPHS = {"dblp": dblp, "wordnet": wordnet}


def _labelled(y: Ids, seed: int) -> Graph:
    """Return nodes of the target type, and a random split of the labelled ones."""
    shuffled = generator(seed, "typed split").permutation(np.flatnonzero(y >= 0))
    train, end = (round(share * len(shuffled)) for share in np.cumsum(SHARES))
    split: dict[str, Any] = {
        "train": shuffled[:train],
        "validation": shuffled[train:end],
        "test": shuffled[end:],
    }
    none = np.zeros((2, 0), dtype=np.int64)
    return Graph.from_arrays(_nothing(len(y)), none, y, num_classes=int(y.max()) + 1, **split)


def _bare(count: int) -> Graph:
    none = np.zeros((2, 0), dtype=np.int64)
    return Graph.from_arrays(_nothing(count), none, np.full(count, -1))


def _nothing(count: int) -> sp.csr_array:
    return sp.csr_array(np.zeros((count, 0), dtype=np.float32))


# -- cost -----------------------------------------------------------------------------------------


def cost(
    *,
    nodes: int = 1_000_000,
    requests: int = 30,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Time a fit and requests for one node each, with four types and without; processor time.

    Args:
        nodes: of both graphs, which have ten times as many edges.
        requests: how many of each kind.
        progress: told how far it is.
    """
    from grapheraser.nodes import GraphEraser

    costs: dict[str, Any] = {}
    for name, make in (("without types", _untyped), ("typed", _generated)):
        progress(name)
        small = GraphEraser("closed-form").fit(make(20_000))  # compiles
        graph = make(nodes)
        kinds = (None,) if graph.types is None else graph.types.names
        small.unlearn(Nodes([int(small.graph_.ids[0])]))
        eraser = GraphEraser("closed-form")
        found: dict[str, Any] = {
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "train": graph.num_train,
        }
        found["fit"] = processor_seconds(eraser.fit, graph)
        for kind in kinds:
            every = graph.ids
            if kind is not None and graph.types is not None:
                every = every[graph.types.of(every) == graph.types.index(kind)]
            some = generator(0, "typed cost", kind or "").permutation(every)[: requests + 1]
            seconds = [processor_seconds(eraser.unlearn, Nodes([node])) for node in some.tolist()]
            found[kind or "node"] = {
                "median": float(np.median(seconds[1:])),
                "p90": float(np.percentile(seconds[1:], 90)),
            }
        costs[name] = found
    return {"benchmark": "typed-cost", "versions": versions(), "costs": costs}


def _untyped(nodes: int) -> Graph:
    return generate_graph(nodes, degree=20)


def _generated(nodes: int) -> Graph:
    """Return users, items, shops and tags: users have classes, which tags follow."""
    rng = generator(0, "generated typed graph")
    shares = {"user": 25, "item": 40, "shop": 5, "tag": 30}
    counts = {kind: share * nodes // 100 for kind, share in shares.items()}
    joined = {}
    for relation, share in {
        ("user", "buys", "item"): 5.0,
        ("item", "sold", "shop"): 1.0,
        ("item", "has", "tag"): 3.0,
        ("user", "likes", "tag"): 1.0,
    }.items():
        sizes = counts[relation[0]], counts[relation[2]]
        ends = [rng.integers(size, size=int(share * nodes)) for size in sizes]
        once = np.unique(ends[0] * sizes[1] + ends[1])
        joined[relation] = RelationEdges(once // sizes[1], once % sizes[1])
    none = np.zeros((2, 0), dtype=np.int64)
    y = rng.integers(7, size=counts["user"])
    x = sp.random_array((counts["user"], 500), density=0.02, rng=rng, format="csr")
    test = np.flatnonzero(rng.random(len(y)) < 0.2)
    parts = {"user": Graph.from_arrays(x, none, y, num_classes=7, test=test)}
    for kind in ("item", "shop", "tag"):
        parts[kind] = _bare(counts[kind])
    return assembled(Graph, parts, joined, "user", name="generated typed")


# -- tables ---------------------------------------------------------------------------------------


def markdown(report: Report) -> str:
    """Tables of the report, and the verdict."""
    if report["benchmark"] == "typed-cost":
        return _costs(report)
    rows = []
    for (dataset, method), scores in means(report).items():
        error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
        rows.append((dataset, method, f"{np.mean(scores):.4f}", f"{error:.4f}"))
    return markdown_table(("", "micro F1 on test nodes", "mean", "standard error"), rows)


def means(report: Report) -> dict[tuple[str, str], list[float]]:
    """Return the test scores of each graph and method, split by split."""
    found: dict[tuple[str, str], list[float]] = {}
    for cell in report["cells"]:
        found.setdefault((cell["dataset"], cell["method"]), []).append(cell["test"])
    return found


def _costs(report: Report) -> str:
    rows = []
    for name, found in report["costs"].items():
        for kind, times in found.items():
            if isinstance(times, dict):
                spent = f"{1e3 * times['median']:.0f} / {1e3 * times['p90']:.0f} ms"
                rows.append((name, kind, f"{found['fit']:.0f} s", spent))
    return markdown_table(("", "forget a", "fit", "median / 90 %"), rows)
