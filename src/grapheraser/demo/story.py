"""The demonstration: fit, predict, forget, verify on one graph, with the times of each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser import checks
from grapheraser.eraser import GraphEraser
from grapheraser.eraser.verify import Verification
from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Graph, Nodes
from grapheraser.receipts import Receipt
from grapheraser.seeding import generator


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demonstration did, saw and measured.

    Attributes:
        graph: before anything was forgotten.
        labels: int32, the shard of every training node of it.
        eraser: afterwards.
        forgotten_nodes, forgotten_edges: what the requests named.
        receipts: one per request.
        f1: micro F1 on the test nodes, by what was asked.
        seconds: by step; ``retrain`` is training from scratch on what is left with the same
            engine, ``pyg`` the same with the plain PyG loop.
        verification: the replay from the remaining data.
    """

    graph: Graph
    labels: NDArray[np.int32]
    eraser: GraphEraser
    forgotten_nodes: NDArray[np.int64]
    forgotten_edges: NDArray[np.int64]
    receipts: tuple[Receipt, ...]
    f1: dict[str, float]
    seconds: dict[str, float]
    verification: Verification

    def to_dict(self) -> dict[str, Any]:
        per_request = [receipt.timings["total"] for receipt in self.receipts]
        return {
            "graph": repr(self.graph),
            "eraser": repr(self.eraser),
            "f1": self.f1,
            "seconds": self.seconds,
            "requests": len(self.receipts),
            "seconds_per_request": per_request,
            "speedup": self.speedup,
            "verification": self.verification.to_dict(),
        }

    @property
    def speedup(self) -> float:
        """Plain PyG from scratch on what is left, over the mean time of a request."""
        return self.seconds["pyg"] / self.seconds["request"]


def run_demo(graph: Graph, eraser: GraphEraser, *, requests: int = 10, seed: int = 0) -> DemoResult:
    """Fit, forget ``requests`` nodes and as many edges one by one, and verify.

    Args:
        graph: with training and test nodes.
        eraser: not fitted yet.
        requests: how many node requests, and how many edge requests.
        seed: which nodes and edges are forgotten.
    """
    nodes, edges = _chosen(graph, requests, seed)
    scratch = GraphEraser(
        **{
            **eraser.get_params(),
            "num_shards": 1,
            "partition": "random",
            "aggregation": "mean",
            "global_expert": False,
        }
    )
    f1, seconds = {}, {}
    _timed(scratch.fit, graph)  # the first fit pays for loading and compiling
    seconds["scratch"] = _timed(scratch.fit, graph)
    f1["scratch"] = scratch.score(graph.test_nodes)
    seconds["fit"] = _timed(eraser.fit, graph)
    f1["before"] = eraser.score(graph.test_nodes)
    labels = eraser.partition_.labels.copy()

    receipts = [eraser.unlearn(Nodes([node])) for node in nodes]
    receipts += [eraser.unlearn(Edges([tuple(pair)])) for pair in edges.tolist()]
    seconds["request"] = float(np.mean([receipt.timings["total"] for receipt in receipts]))
    seconds["retrain"] = _timed(scratch.fit, eraser.graph_)
    seconds["pyg"] = _timed(
        GraphEraser(**{**scratch.get_params(), "engine": "pyg"}).fit, eraser.graph_
    )
    f1["after"] = eraser.score(eraser.graph_.test_nodes)
    f1["retrained"] = scratch.score(eraser.graph_.test_nodes)
    verification = eraser.verify()
    seconds["verify"] = verification.seconds
    return DemoResult(
        graph, labels, eraser, nodes, edges, tuple(receipts), f1, seconds, verification
    )


def _timed(function: Any, *args: Any) -> float:
    started = time.perf_counter()
    function(*args)
    return time.perf_counter() - started


def _chosen(graph: Graph, count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random training nodes, and random edges that touch none of them."""
    count = checks.whole("requests", "the demonstration", count, 1, len(graph.train_nodes) - 1)
    rng = generator(seed, "demo", "requests")
    nodes = np.sort(rng.choice(graph.train_nodes, size=count, replace=False))
    edges = graph.edges[~np.isin(graph.edges, nodes).any(axis=1)]
    if len(edges) < count:
        raise ParameterError(
            f"{count} requests for nodes leave {len(edges)} edges for as many requests for edges.",
            hint="ask for fewer.",
        )
    return nodes, edges[np.sort(rng.choice(len(edges), size=count, replace=False))]
