"""The story of the demonstration for other tasks: fit, ask, forget one by one, verify."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

from grapheraser.datasets import load_dataset
from grapheraser.eraser import Eraser
from grapheraser.graph import Edges, Graph, Graphs, Nodes
from grapheraser.graph.changes.sides import Interactions, Users
from grapheraser.reports.wording import duration
from grapheraser.seeding import generator

_HELD_OUT = 500


@dataclass(frozen=True)
class Scene:
    """The scene of one task.

    Attributes:
        world: what is fitted.
        eraser: not fitted yet.
        asked: from the fitted eraser to a sentence about its answers.
        requests: by what they forget, one by one.
    """

    world: Any
    eraser: Eraser
    asked: Callable[[Any], str]
    requests: dict[str, Sequence[Any]]


def tell(
    task: str, count: int, seed: int, say: Callable[[str], None], *, typed: bool = False
) -> dict[str, Any]:
    """Run the story of a task; return what was measured.

    Args:
        task: a name in `SCENES`, or with ``typed`` in `TYPED`.
        count: requests of each kind.
        seed: every random choice follows from it.
        say: told each line as it is there.
        typed: of a graph whose nodes have types.
    """
    scene = (TYPED if typed else SCENES)[task](count, seed)
    started = time.perf_counter()
    eraser = scene.eraser.fit(scene.world)
    fitting = time.perf_counter() - started
    before = scene.asked(eraser)
    say(f"fitted              {before}   {duration(fitting)}")
    seconds = {}
    for what, requests in scene.requests.items():
        times = [_timed(eraser, request) for request in requests]
        seconds[what] = median(times)
        say(f"forgot              {len(times)} {what}, one by one: {duration(seconds[what])} each")
    after = scene.asked(eraser)
    say(f"afterwards          {after}")
    receipt, verified = eraser.receipts_[-1], eraser.verify()
    say(f"statement           {receipt.statement}")
    verdict = "bit-identical" if verified.identical else "NOT identical"
    say(f"verified: {verdict} ({verified.values:,} values)")
    return {
        "task": task,
        "before": before,
        "after": after,
        "fit_seconds": fitting,
        "request_seconds": seconds,
        "statement": receipt.statement,
        "identical": verified.identical,
    }


def _timed(eraser: Eraser, request: Any) -> float:
    started = time.perf_counter()
    eraser.unlearn(request)
    return time.perf_counter() - started


def _nodes_and_edges(graph: Graph, count: int, seed: int) -> dict[str, Sequence[Any]]:
    rng = generator(seed, "demo", "tasks")
    gone = rng.permutation(graph.train_nodes)[:count].tolist()
    edges = rng.permutation(graph.without(Nodes(gone)).edges)[:count].tolist()
    return {
        "nodes": [Nodes([node]) for node in gone],
        "edges": [Edges([tuple(pair)]) for pair in edges],
    }


def _links(count: int, seed: int) -> Scene:
    from grapheraser.links import LinkEraser

    graph = load_dataset("demo")
    rng = generator(seed, "demo", "links")
    held = rng.permutation(graph.edges)[:_HELD_OUT]
    others = rng.choice(graph.ids, held.shape)
    pairs, truth = np.concatenate([held, others]), np.arange(2 * len(held)) < len(held)
    world = graph.without(Edges(held))

    def asked(eraser: LinkEraser) -> str:
        there = eraser.graph_.contains(pairs.ravel()).reshape(-1, 2).all(axis=1)
        found = eraser.score(pairs[there], truth[there])
        return f"AUC {found.auc:.4f} of {len(held)} edges that were held out"

    return Scene(world, LinkEraser(seed=seed), asked, _nodes_and_edges(world, count, seed))


def _recommendation(count: int, seed: int) -> Scene:
    from grapheraser.recommendation import Recommender

    users, items, tastes = 2_000, 600, 12
    rng = generator(seed, "demo", "recommendation")
    alike = np.arange(users)[:, None] % tastes == np.arange(items) % tastes
    taken = rng.random((users, items)) < np.where(alike, 0.25, 0.01)
    test = taken & (rng.random(taken.shape) < 0.2)
    known = taken & ~test
    gone = rng.permutation(users)[: 2 * count].tolist()
    ties = [Interactions([(user, int(np.flatnonzero(known[user])[0]))]) for user in gone[count:]]

    def asked(eraser: Recommender) -> str:
        left = test.copy()
        left[gone[:count]] = False
        found = eraser.score(sp.csr_array(left.astype(np.float64)))
        return f"recall@20 {found.recall:.4f} of {users:,} users and {items} items"

    requests: dict[str, Sequence[Any]] = {
        "users": [Users([user]) for user in gone[:count]],
        "interactions": ties,
    }
    return Scene(sp.csr_array(known.astype(np.float64)), Recommender(seed=seed), asked, requests)


def _embeddings(count: int, seed: int) -> Scene:
    from grapheraser.embeddings import Embedder

    graph = load_dataset("demo")
    return Scene(graph, Embedder(seed=seed), _rows, _nodes_and_edges(graph, count, seed))


def _rows(eraser: Any) -> str:
    rows = eraser.transform(eraser.graph_.ids)
    moved = "" if eraser.version_ == 0 else f", {len(eraser.changes(since=0).ids):,} moved"
    return f"{len(rows):,} rows of {rows.shape[1]} numbers{moved}"


def _payments(count: int, seed: int) -> tuple[Graph, dict[str, Sequence[Any]]]:
    """Customers, their payments and merchants; who is fraudulent often pays a shady merchant."""
    customers, payments, merchants, shady = 2_000, 10_000, 300, 20
    rng = generator(seed, "demo", "typed")
    fraud = rng.random(customers) < 0.3
    payer = rng.integers(customers, size=payments)
    odd = rng.random(payments) < np.where(fraud[payer], 0.5, 0.1)
    merchant = np.where(
        odd, rng.integers(shady, size=payments), rng.integers(merchants, size=payments)
    )
    graph = Graph.from_typed_tables(
        nodes={
            "customer": {
                "id": range(customers),
                "label": fraud.astype(int),
                "split": np.where(np.arange(customers) % 4, "train", "test").tolist(),
            },
            "payment": payments,
            "merchant": merchants,
        },
        edges={
            ("customer", "makes", "payment"): {"source": payer, "target": range(payments)},
            ("payment", "to", "merchant"): {"source": range(payments), "target": merchant},
        },
        target="customer",
        num_classes=2,
    )
    gone = rng.permutation(graph.train_nodes)[:count].tolist()
    ties = rng.permutation(np.flatnonzero(~np.isin(payer, gone)))[:count]
    return graph, {
        "customers, payments included": [Nodes([one], cascade="payment") for one in gone],
        "relations": [
            Edges([(payer[at], at)], type=("customer", "makes", "payment")) for at in ties.tolist()
        ],
        "merchants": [Nodes([one], type="merchant") for one in range(shady, shady + count)],
    }


def _typed_nodes(count: int, seed: int) -> Scene:
    from grapheraser.nodes import GraphEraser

    graph, requests = _payments(count, seed)

    def asked(eraser: GraphEraser) -> str:
        test = eraser.graph_.test_nodes
        return f"F1 {eraser.score(test):.4f} on {len(test)} customers; guessing says {likely:.2f}"

    likely = float(np.bincount(graph.labels(graph.test_nodes)).max() / len(graph.test_nodes))
    return Scene(graph, GraphEraser("closed-form", seed=seed), asked, requests)


def _typed_embeddings(count: int, seed: int) -> Scene:
    from grapheraser.embeddings import Embedder

    graph, requests = _payments(count, seed)
    return Scene(graph, Embedder(seed=seed), _rows, requests)


def _graphs(count: int, seed: int) -> Scene:
    """Rings against paths, of nodes with random labels; every fourth is for testing."""
    from grapheraser.graphs import Collection, CollectionEraser

    rng = generator(seed, "demo", "graphs")
    sizes = rng.integers(5, 12, 400)
    offset = np.append(0, np.cumsum(sizes))
    is_ring = rng.random(len(sizes)) < 0.5
    edges = [
        (start + at, start + (at + 1) % size)
        for start, size, ring in zip(offset[:-1], sizes, is_ring, strict=True)
        for at in range(size if ring else size - 1)
    ]
    labels = rng.integers(0, 3, offset[-1])
    test = np.arange(0, len(sizes), 4)
    world = Collection.from_arrays(
        offset, np.array(edges), is_ring.astype(int), node_label=labels, test=test, num_classes=2
    )
    gone = rng.permutation(world.train_graphs)[: 2 * count].tolist()
    requests: dict[str, Sequence[Any]] = {
        "graphs": [Graphs([graph]) for graph in gone[:count]],
        "nodes inside one": [Nodes([0], graph=graph) for graph in gone[count:]],
    }

    def asked(eraser: CollectionEraser) -> str:
        return f"accuracy {eraser.score(test):.4f} on {len(test)} graphs that were held out"

    return Scene(world, CollectionEraser(seed=seed), asked, requests)


SCENES: dict[str, Callable[[int, int], Scene]] = {
    "links": _links,
    "recommendation": _recommendation,
    "embeddings": _embeddings,
    "graphs": _graphs,
}
TYPED: dict[str, Callable[[int, int], Scene]] = {
    "nodes": _typed_nodes,
    "embeddings": _typed_embeddings,
}
