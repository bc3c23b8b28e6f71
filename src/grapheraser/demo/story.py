"""The demonstration: fit, predict, forget, verify on one graph, with the times of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser import checks
from grapheraser.demo.scene import Scene, choose, digests, look, look_again
from grapheraser.engines.training import EPOCHS
from grapheraser.environment import has_torch
from grapheraser.eraser.verify import Verification
from grapheraser.eraser.warmup import warm_up_for
from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.receipts import Part, Receipt
from grapheraser.receipts.keys import PublicKey
from grapheraser.seeding import generator
from grapheraser.store.keys import known_keys

# Epochs of plain PyG that are measured; all of them would take longer than the rest together.
PYG_EPOCHS = 5
_ASKED = 100  # test nodes whose decision is taken apart
NO_PYG = "left out, since it is not installed"


@dataclass(frozen=True, eq=False)
class DemoResult:
    """The result of the demonstration: what it did, saw and measured."""

    graph: Graph  # before anything was forgotten
    sizes: NDArray[np.int64]  # int64, training nodes of every shard of it
    eraser: GraphEraser  # afterwards
    scene: Scene  # the first node to be forgotten, with its surroundings
    # One per request; the first is that of the scene, nodes come before edges.
    receipts: tuple[Receipt, ...]
    # Micro F1 on the test nodes: ``before``, ``after`` and, of one model for the whole graph,
    # ``scratch`` before and ``retrained`` after.
    f1: dict[str, float]
    # By step. ``node`` and ``edge`` are medians over the requests, from the call to the receipt;
    # ``retrain`` is one model trained on what is left with the same engine, ``afresh`` all shards
    # fitted to what is left, and ``pyg``, where PyG is installed, the one model with the plain PyG
    # loop, scaled from ``PYG_EPOCHS`` epochs.
    seconds: dict[str, float]
    proof: Proof  # the evidence
    edges_inside: float  # edges in the training graph of a shard, on average
    shards_decide: float  # share of the decision about a test node that is the shards', on average

    @property
    def decides(self) -> str:
        """Say in plain words what decides: the shards, or what sees the whole graph."""
        holds = f"a shard holds {self.edges_inside:.0f} edges on average, and the shards have"
        rest = "; the rest is the closed-form members', which see the whole training graph"
        return f"{holds} {self.shards_decide:.0%} of the decision{rest * (self.shards_decide < 1)}"

    @property
    def per_request(self) -> list[float]:
        """Seconds of each request, from the call to the receipt."""
        return [receipt.timings["total"] for receipt in self.receipts]

    @property
    def rivals(self) -> tuple[str, ...]:
        """Names of what a request is compared with, in ``seconds``."""
        return tuple(name for name in ("retrain", "afresh", "pyg") if name in self.seconds)

    def times(self, rival: str) -> float:
        """Return how many nodes are forgotten in the time of a rival."""
        return self.seconds[rival] / self.seconds["node"]

    def to_dict(self) -> dict[str, Any]:
        return {
            "graph": repr(self.graph),
            "eraser": repr(self.eraser),
            "f1": self.f1,
            "edges_inside": self.edges_inside,
            "shards_decide": self.shards_decide,
            "seconds": self.seconds,
            "requests": len(self.receipts),
            "seconds_per_request": self.per_request,
            "speedup": {rival: self.times(rival) for rival in self.rivals},
            "pyg_epochs_measured": PYG_EPOCHS if "pyg" in self.rivals else 0,
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
    """Fit, forget ``requests`` nodes and as many edges one by one, and verify."""
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
        warm_up_for(one.task.resolve(one.get_params()), graph)
    say("training one model for the whole graph, then the shards")
    seconds["scratch"] = _timed(one_model.fit, graph)
    f1["scratch"] = one_model.score(graph.test_nodes)
    seconds["fit"] = _timed(eraser.fit, graph)
    f1["before"] = eraser.score(graph.test_nodes)
    sizes = eraser.partition_.sizes.copy()
    decided = decision(eraser)

    say(f"forgetting {requests} nodes and {requests} edges, one by one")
    scene = look(eraser, int(nodes[0]))
    receipts = [eraser.unlearn(Nodes([nodes[0]]))]
    part = receipts[0].parts[0]
    scene = look_again(scene, eraser)
    receipts += [eraser.unlearn(Nodes([node])) for node in nodes[1:]]
    receipts += [eraser.unlearn(Edges([tuple(pair)])) for pair in edges.tolist()]
    took = [receipt.timings["total"] for receipt in receipts]
    seconds["node"], seconds["edge"] = map(float, np.median(np.reshape(took, (2, -1)), axis=1))

    ways = "three" if has_torch() else "two"
    say(f"retraining everything from what is left, {ways} ways, and comparing")
    seconds["retrain"] = _timed(one_model.fit, eraser.graph_)
    f1["after"] = eraser.score(eraser.graph_.test_nodes)
    f1["retrained"] = one_model.score(eraser.graph_.test_nodes)
    afresh = GraphEraser(**eraser.get_params())
    given = None if eraser.partition_.data_free else eraser.partition_
    seconds["afresh"] = _timed(lambda: afresh.fit(eraser.graph_, partition=given))
    if has_torch():
        seconds["pyg"] = _pyg_seconds(one_model, eraser.graph_)
    proof = prove(eraser, afresh, part)
    seconds["verify"] = proof.verification.seconds
    return DemoResult(graph, sizes, eraser, scene, tuple(receipts), f1, seconds, proof, *decided)


def decision(eraser: GraphEraser) -> tuple[float, float]:
    """Return the edges in a shard and the shards' share of a decision, both on average."""
    graph, partition = eraser.graph_, eraser.partition_
    ends = partition.shard_of(graph.training_graph.edges.ravel()).reshape(-1, 2)
    inside = float((ends[:, 0] == ends[:, 1]).sum() / len(partition.shard_ids))
    says = [eraser.explain(int(node)).members for node in graph.test_nodes[:_ASKED]]
    shares = [sum(say.weight for say in each if "shard" in say.member) for each in says]
    return inside, float(np.mean(shares)) if shares else 1.0


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


@dataclass(frozen=True)
class Proof:
    """The evidence."""

    verification: Verification  # the replay from the remaining data, tensor by tensor
    # Digest of every shard's weights and of what combines them, as unlearning left them, by name.
    unlearned: dict[str, str]
    # The same of a model that was fitted to the remaining data and never saw more.
    afresh: dict[str, str]
    part: Part  # the receipt of the node in the pictures, checked
    # The public key that its signature was checked with; None where it is unsigned.
    key: PublicKey | None

    @property
    def is_identical(self) -> bool:
        """Tell whether the replay and the digests say so."""
        return self.verification.identical and not self.different

    @property
    def different(self) -> list[str]:
        """The names whose digest differs from that of the model that never saw the forgotten."""
        names = sorted(self.unlearned | self.afresh)
        return [name for name in names if self.unlearned.get(name) != self.afresh.get(name)]

    @property
    def slot(self) -> tuple[str, str]:
        """The content of the node's slot of the register, before and after, in words."""
        opening = self.part.opening
        assert opening is not None, "the part is about a node"
        held = [proof.held(opening.slot) for proof in (opening.before, opening.after)]
        before, after = ("empty" if one is None else one.hex() for one in held)
        return before, after

    def to_dict(self) -> dict[str, Any]:
        return {
            "verification": self.verification.to_dict(),
            "digests": len(self.unlearned),
            "different": self.different,
            "signed_by": None if self.key is None else self.key.id,
            "slot": self.slot,
        }


def prove(eraser: GraphEraser, afresh: GraphEraser, part: Part) -> Proof:
    """Collect the evidence; ``afresh`` is fitted to what is left, ``part`` is of one node."""
    signed = {signature.key for signature in part.receipt.signatures}
    key = next((key for key in known_keys() if key.id in signed), None)
    part.check(key)
    return Proof(eraser.verify(), digests(eraser), digests(afresh), part, key)
