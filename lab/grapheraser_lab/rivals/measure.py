"""Measurements of a method: after shares of the data, by an attack, along a stream.

Each is a kind of cell, run and kept as those of the experiments are. Times are processor time of
one thread, of the whole request.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from grapheraser.audit.attacks.answers import log_odds, without_edges
from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.shadow import Observations, labelled, resplit
from grapheraser.audit.statistics import auc
from grapheraser.datasets import load_dataset
from grapheraser.engines.reference import reproducible
from grapheraser.graph import TEST, TRAIN, AddEdges, Edges, Graph, Nodes
from grapheraser.seeding import derive, generator
from grapheraser_lab.bench.comparison import pyg_f1, pyg_module
from grapheraser_lab.framework.cell import KINDS, Kind
from grapheraser_lab.rivals.gcn import EPOCHS, SPEC, View
from grapheraser_lab.rivals.methods import METHODS, RETRAINING, Ids, Peer, Request
from grapheraser_lab.timing import processor_seconds, timed

SHARES = (0.01, 0.05, 0.1)
_TIMED = 8


# -- after 1, 5 and 10 % ----------------------------------------------------------------------


def shares(config: Mapping[str, Any]) -> dict[str, Any]:
    """F1, distance to retraining and seconds after shares of the training nodes, or edges, go."""
    graph, seed = graph_of(config), int(config["seed"])
    peer = fitted(config, graph)
    found: dict[str, Any] = {"f1": f1(peer), "nodes": {}, "edges": {}}
    for kind, draw in (("nodes", _nodes), ("edges", _edges)):
        for share in SHARES:
            request = draw(graph, share, seed)
            after, seconds = timed(peer.forget, request)
            reference = after.retrained()
            found[kind][f"{share:g}"] = judged(after, reference) | {"seconds": seconds}
            if isinstance(request, Nodes):
                found[kind][f"{share:g}"]["remembered"] = remembered(after, graph, request)
            if config["method"] == RETRAINING:
                other = METHODS[RETRAINING].fitted(config["dataset"], after.graph, seed + 1000, {})
                found[kind][f"{share:g}"]["another_seed"] = judged(other, reference)["apart"]
    singles = [Nodes([node]) for node in _order(graph, seed)[-_TIMED - 1 :].tolist()]
    peer.forget(singles[0])  # pays for whatever is compiled or loaded
    times = [processor_seconds(peer.forget, request) for request in singles[1:]]
    found["seconds"] = float(np.median(times))
    rest, rival = graph.without(singles[0]), METHODS[RETRAINING]
    found["beside"] = processor_seconds(rival.fitted, config["dataset"], rest, seed, {})
    if config["method"] == RETRAINING:
        found["pyg"] = _pyg(graph.without(singles[0]), seed)
    return found


def judged(peer: Peer, reference: Peer) -> dict[str, Any]:
    """A model that forgot beside the one that was retrained from the same seed.

    Returns: F1 of both; ``apart``, the total variation between their posteriors, mean over the test
    nodes; ``parameters``, the distance of what they learned, as a share of its length; ``same``,
    whether all of that has the same bits. None where a method diverged.
    """
    view, test = View(peer.graph), labelled(peer.graph, TEST)
    ours, theirs = peer.answers(view, test), reference.answers(view, test)
    mine, other = peer.tensors(), reference.tensors()
    same = mine.keys() == other.keys() and all(
        mine[name].dtype == other[name].dtype and mine[name].tobytes() == other[name].tobytes()
        for name in mine
    )
    truth = peer.graph.labels(test)
    return {
        "f1": float((ours.argmax(axis=1) == truth).mean()),
        "retrained_f1": float((theirs.argmax(axis=1) == truth).mean()),
        "apart": finite(np.abs(ours - theirs).sum(axis=1).mean() / 2),
        "parameters": 0.0 if same else relative(mine, other),
        "same": bool(same and np.array_equal(ours, theirs)),
    }


def relative(mine: Mapping[str, NDArray[Any]], other: Mapping[str, NDArray[Any]]) -> float | None:
    """Distance of all that both learned; None where it has other shapes."""
    if any(name not in mine or np.shape(mine[name]) != np.shape(other[name]) for name in other):
        return None
    ours, theirs = (
        np.concatenate([np.ravel(side[name]).astype(np.float64) for name in other])
        for side in (mine, other)
    )
    return finite(np.linalg.norm(ours - theirs) / max(float(np.linalg.norm(theirs)), 1e-30))


def finite(value: np.floating[Any]) -> float | None:
    """JSON has no words for the others."""
    return float(value) if np.isfinite(value) else None


def remembered(peer: Peer, graph: Graph, forgotten: Nodes) -> float:
    """AUC of telling forgotten nodes from test nodes by how sure the model is of their classes.

    One version in sight: candidates are handed over on the graph from before, with their edges and
    without, and both log odds are added. 0.5 is a model that never saw them, but for what their
    neighbours learned of them.
    """
    members, others = np.array(forgotten.ids, dtype=np.int64), labelled(graph, TEST)
    asked = np.concatenate([members, others])
    labels = graph.labels(asked)
    looks = View(graph), View(without_edges(graph))
    sure = sum(log_odds(peer.answers(look, asked), labels) for look in looks)
    return auc(np.asarray(sure), np.arange(len(asked)) < len(members))


def f1(peer: Peer) -> float:
    """Micro F1 on the test nodes of what is left."""
    test = labelled(peer.graph, TEST)
    found = peer.answers(View(peer.graph), test).argmax(axis=1)
    return float((found == peer.graph.labels(test)).mean())


def _pyg(graph: Graph, seed: int) -> dict[str, float]:
    """PyG's own layers on dense features: how long the loop takes, and its F1."""
    with reproducible(seed):
        module, train = pyg_module(graph.training_graph, SPEC)
        seconds = processor_seconds(train, EPOCHS)
    return {"seconds": seconds, "f1": pyg_f1(module, graph, labelled(graph, TEST))}


# -- who was forgotten ------------------------------------------------------------------------


def membership(config: Mapping[str, Any]) -> dict[str, Any]:
    """AUC of an attacker who sees both versions, as `audit` makes it: see docs/audit.md."""
    graph, seed = graph_of(config), int(config["seed"])
    own = resplit(graph, derive(seed, "peers"))
    seen = [
        observed(fitted(config, world, seed=start), config["requests"], derive(seed, "peers", who))
        for world, start, who in ((own, seed + 1, "shadow"), (graph, seed, "target"))
    ]
    return {
        name: attack(*seen, informed=informed, seed=seed).rates.auc.to_dict()
        for name, informed in (("plain", False), ("informed", True))
    }


def observed(peer: Peer, requests: int, seed: int) -> Observations:
    """Requests for single nodes, each to the model as it is, with what both versions answer.

    Candidates are handed over on the graph from before, so that the answers differ only in what was
    learned; with each forgotten node goes a test node that nobody was trained on.
    """
    graph, rng = peer.graph, generator(seed, "peers", "requests")
    looks = View(graph), View(without_edges(graph))
    taken = rng.permutation(labelled(graph, TRAIN))[:requests]
    others = np.resize(rng.permutation(labelled(graph, TEST)), len(taken))
    parts = []
    for node, other in zip(taken.tolist(), others.tolist(), strict=True):
        asked = np.array([node, other], dtype=np.int64)
        after = peer.forget(Nodes([node]))
        (old, alone_old), (new, alone_new) = (
            [version.answers(look, asked) for look in looks] for version in (peer, after)
        )
        parts.append(
            Observations(
                before=old,
                after=new,
                member=np.array([True, False]),
                labels=graph.labels(asked),
                request=np.zeros(2, dtype=np.int64),
                alone_before=alone_old,
                alone_after=alone_new,
            )
        )
    return Observations.joined(parts)


# -- one request after the other --------------------------------------------------------------


def stream(config: Mapping[str, Any]) -> dict[str, Any]:
    """Single nodes go one after the other; now and then the model is judged."""
    graph, seed = graph_of(config), int(config["seed"])
    peer = fitted(config, graph)
    count = min(int(config["requests"]), len(graph.train_nodes) // 2)
    points, times = [{"requests": 0, **judged(peer, peer.retrained())}], []
    for number, node in enumerate(_order(graph, seed)[:count].tolist(), start=1):
        peer, seconds = timed(peer.forget, Nodes([node]))
        times.append(seconds)
        if number % int(config["every"]) == 0:
            points.append({"requests": number, **judged(peer, peer.retrained())})
    return {"points": points, "requests": count, "seconds": float(np.median(times))}


# -- edges that an adversary put in ------------------------------------------------------------

FALSE = (0.1, 0.5)


def adversarial(config: Mapping[str, Any]) -> dict[str, Any]:
    """GIF's own test: false edges join training nodes of different classes, and are forgotten.

    Returns: by share of the training edges, F1 with the false edges, once they are forgotten, and
    of retraining without them; beside them F1 of a model that never saw any.
    """
    graph, seed = graph_of(config), int(config["seed"])
    found: dict[str, Any] = {"clean": f1(fitted(config, graph))}
    for share in FALSE:
        false = false_edges(graph, share, seed)
        peer = fitted(config, graph.updated(AddEdges(false)))
        after = peer.forget(Edges(false))
        found[f"{share:g}"] = {"with": f1(peer), **judged(after, after.retrained())}
    return found


def false_edges(graph: Graph, share: float, seed: int) -> Ids:
    """Pairs of training nodes of different classes without an edge ``[m, 2]``, by id."""
    training, rng = graph.training_graph, generator(seed, "peers", "false")
    wanted = round(share * training.num_edges)
    pairs = np.sort(rng.choice(training.ids, (4 * wanted + 100, 2)), axis=1)
    pairs = np.unique(pairs[graph.labels(pairs[:, 0]) != graph.labels(pairs[:, 1])], axis=0)
    width = int(graph.ids.max()) + 1
    there = np.sort(graph.edges, axis=1) @ np.array([width, 1])
    pairs = pairs[~np.isin(pairs @ np.array([width, 1]), there)]
    return rng.permutation(pairs)[:wanted]


# -- what they share --------------------------------------------------------------------------


def graph_of(config: Mapping[str, Any]) -> Graph:
    """The data set with the split of the cell's seed."""
    return _loaded(config["dataset"], int(config["seed"]))


@lru_cache(maxsize=1)
def _loaded(name: str, seed: int) -> Graph:
    return load_dataset(name, split_seed=seed)


def fitted(config: Mapping[str, Any], graph: Graph, seed: int | None = None) -> Peer:
    """The cell's method on a graph, on one thread."""
    torch.set_num_threads(1)
    start = int(config["seed"]) if seed is None else seed
    return METHODS[config["method"]].fitted(config["dataset"], graph, start, config["tuned"])


def _order(graph: Graph, seed: int) -> Ids:
    """Training nodes in the order in which they ask to be forgotten."""
    return generator(seed, "peers", "nodes").permutation(graph.train_nodes)


def _nodes(graph: Graph, share: float, seed: int) -> Request:
    order = _order(graph, seed)
    return Nodes(order[: round(share * len(order))])


def _edges(graph: Graph, share: float, seed: int) -> Request:
    """Edges between training nodes: those that were learned from."""
    order = generator(seed, "peers", "edges").permutation(graph.training_graph.edges)
    return Edges(order[: round(share * len(order))])


KINDS.add("peers-shares", Kind(shares, timed=True))
KINDS.add("peers-membership", Kind(membership))
KINDS.add("peers-stream", Kind(stream, timed=True))
KINDS.add("peers-adversarial", Kind(adversarial))
