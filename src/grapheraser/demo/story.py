"""The demonstration: fit, predict, forget, verify on one graph, with the times of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser import checks
from grapheraser.demo.proof import Proof, prove
from grapheraser.demo.scene import Scene, choose, look, look_again
from grapheraser.eraser import GraphEraser
from grapheraser.eraser.settings import resolve
from grapheraser.eraser.warmup import warm_up_for
from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Graph, Nodes
from grapheraser.receipts import Receipt
from grapheraser.seeding import generator
from grapheraser.training.training import EPOCHS

# Epochs of plain PyG that are measured; all of them would take longer than the rest together.
PYG_EPOCHS = 5


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demonstration did, saw and measured.

    Attributes:
        graph: before anything was forgotten.
        sizes: int64, training nodes of every shard of it.
        eraser: afterwards.
        scene: the first node to be forgotten, with its surroundings.
        receipts: one per request; the first is that of the scene, nodes come before edges.
        f1: micro F1 on the test nodes: ``before``, ``after`` and, of one model for the whole
            graph, ``scratch`` before and ``retrained`` after.
        seconds: by step. ``node`` and ``edge`` are medians over the requests, from the call to the
            receipt; ``retrain`` is one model trained on what is left with the same engine,
            ``pyg`` the same with the plain PyG loop, scaled from ``PYG_EPOCHS`` epochs,
            ``afresh`` all shards fitted to what is left.
        proof: the evidence.
    """

    graph: Graph
    sizes: NDArray[np.int64]
    eraser: GraphEraser
    scene: Scene
    receipts: tuple[Receipt, ...]
    f1: dict[str, float]
    seconds: dict[str, float]
    proof: Proof

    @property
    def per_request(self) -> list[float]:
        """Seconds of each request, from the call to the receipt."""
        return [receipt.timings["total"] for receipt in self.receipts]

    def times(self, rival: str) -> float:
        """How many nodes are forgotten in the time of a rival: retrain, afresh or pyg."""
        return self.seconds[rival] / self.seconds["node"]

    def to_dict(self) -> dict[str, Any]:
        return {
            "graph": repr(self.graph),
            "eraser": repr(self.eraser),
            "f1": self.f1,
            "seconds": self.seconds,
            "requests": len(self.receipts),
            "seconds_per_request": self.per_request,
            "speedup": {rival: self.times(rival) for rival in ("retrain", "afresh", "pyg")},
            "pyg_epochs_measured": PYG_EPOCHS,
            "node": self.scene.node,
            "retrained": self.scene.retrained,
            "identical": self.proof.is_identical,
            **self.proof.to_dict(),
        }


def run_demo(
    graph: Graph,
    eraser: GraphEraser,
    *,
    requests: int = 10,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> DemoResult:
    """Fit, forget ``requests`` nodes and as many edges one by one, and verify.

    Args:
        graph: with training and test nodes.
        eraser: not fitted yet.
        requests: how many node requests, and how many edge requests.
        seed: which nodes and edges are forgotten.
        say: is told what is going on.
    """
    nodes, edges = _chosen(graph, requests, seed)
    one_model = GraphEraser(
        **{
            **eraser.get_params(),
            "num_shards": 1,
            "partition": "random",
            "aggregation": "mean",
            "global_expert": False,
        }
    )
    f1, seconds = {}, {}
    say("loading, and compiling on first use")
    for one in (one_model, eraser):  # so that no fit is timed with its compilation
        warm_up_for(resolve(one.get_params()), graph)
    say("training one model for the whole graph, then the shards")
    seconds["scratch"] = _timed(one_model.fit, graph)
    f1["scratch"] = one_model.score(graph.test_nodes)
    seconds["fit"] = _timed(eraser.fit, graph)
    f1["before"] = eraser.score(graph.test_nodes)
    sizes = eraser.partition_.sizes.copy()

    say(f"forgetting {requests} nodes and {requests} edges, one by one")
    scene = look(eraser, int(nodes[0]))
    receipts = [eraser.unlearn(Nodes([nodes[0]]))]
    part = receipts[0].parts[0]
    scene = look_again(scene, eraser)
    receipts += [eraser.unlearn(Nodes([node])) for node in nodes[1:]]
    receipts += [eraser.unlearn(Edges([tuple(pair)])) for pair in edges.tolist()]
    took = [receipt.timings["total"] for receipt in receipts]
    seconds["node"], seconds["edge"] = map(float, np.median(np.reshape(took, (2, -1)), axis=1))

    say("retraining everything from what is left, three ways, and comparing")
    seconds["retrain"] = _timed(one_model.fit, eraser.graph_)
    f1["after"] = eraser.score(eraser.graph_.test_nodes)
    f1["retrained"] = one_model.score(eraser.graph_.test_nodes)
    afresh = GraphEraser(**eraser.get_params())
    given = None if eraser.partition_.data_free else eraser.partition_
    seconds["afresh"] = _timed(lambda: afresh.fit(eraser.graph_, partition=given))
    seconds["pyg"] = _pyg_seconds(one_model, eraser.graph_)
    proof = prove(eraser, afresh, part)
    seconds["verify"] = proof.verification.seconds
    return DemoResult(graph, sizes, eraser, scene, tuple(receipts), f1, seconds, proof)


def _timed(function: Any, *args: Any) -> float:
    started = time.perf_counter()
    function(*args)
    return time.perf_counter() - started


def _pyg_seconds(one_model: GraphEraser, graph: Graph) -> float:
    """The plain PyG loop on this graph: what an epoch takes, times all epochs."""

    def measured(epochs: int) -> float:
        params = {**one_model.get_params(), "engine": "pyg", "epochs": epochs}
        return _timed(GraphEraser(**params).fit, graph)

    measured(1)  # pays for loading
    once = measured(1)
    each = max(0.0, measured(1 + PYG_EPOCHS) - once) / PYG_EPOCHS
    return once + each * ((one_model.epochs or EPOCHS) - 1)


def _chosen(graph: Graph, count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training nodes, the first with something around it, and edges that touch none of them."""
    count = checks.whole("requests", "the demonstration", count, 1, len(graph.train_nodes) - 1)
    rng = generator(seed, "demo", "requests")
    first = choose(graph, seed)
    others = graph.train_nodes[graph.train_nodes != first]
    nodes = np.concatenate([[first], np.sort(rng.choice(others, size=count - 1, replace=False))])
    edges = graph.edges[~np.isin(graph.edges, nodes).any(axis=1)]
    if len(edges) < count:
        raise ParameterError(
            f"{count} requests for nodes leave {len(edges)} edges for as many requests for edges.",
            hint="ask for fewer.",
        )
    return nodes, edges[np.sort(rng.choice(len(edges), size=count, replace=False))]
