"""Small random graphs, requests for them, and the engines that this machine has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.engines import ENGINES
from grapheraser.errors import MissingExtraError
from grapheraser.graph import GraphChange, Request
from grapheraser.partition import PARTITIONERS

HAS_TORCH = find_spec("torch") is not None and find_spec("torch_geometric") is not None

if TYPE_CHECKING or HAS_TORCH:
    from tests.modules import TwoHops as TwoHops  # noqa: PLC0414  shared from here
    from tests.modules import Weighing as Weighing  # noqa: PLC0414  shared from here
    from tests.modules import torch_state_kept as torch_state_kept  # noqa: PLC0414  shared from here
else:

    class TwoHops:
        """Skips whatever test makes one of them."""

        def __init__(self, *_: object) -> None:
            pytest.skip("needs the extra 'gnn'")

    Weighing = torch_state_kept = TwoHops


def engines() -> list[str]:
    """Every engine that runs on a CPU, and whose packages are installed."""
    return [name for name in ENGINES if name == "cpu" or (name == "pyg" and HAS_TORCH)]


def partitioners() -> list[str]:
    """Every registered partition method whose packages are installed."""
    found = []
    for name in PARTITIONERS:
        with suppress(MissingExtraError):
            ge.partition_graph(small_graph(), name, num_shards=3)
            found.append(name)
    return found


# Shares of training, validation and context nodes; a quarter are test nodes, or what is left.
SPLITS = {"labelled": (0.75, 0, 0), "mixed": (0.4, 0.15, 0.2), "few": (0.15, 0.2, 0.4)}


def small_graph(
    seed: int = 0,
    *,
    n: int = 40,
    num_features: int = 12,
    classes: int = 3,
    ties: int = 2,
    split: str = "labelled",
) -> ge.Graph:
    """A graph with gaps in its ids, an isolated node, test nodes and a node without features.

    By its split it also has validation and context nodes; every other context node has no label.
    """
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.choice(3 * n, size=n, replace=False))
    x = rng.integers(1, 4, size=(n, num_features)) * (rng.random((n, num_features)) < 0.3)
    x[0, 0] = 1
    x[n // 2] = 0
    linked = np.delete(np.arange(n), n // 3)
    pairs = linked[rng.integers(len(linked), size=(2, ties * n))]
    pairs = pairs[:, pairs[0] != pairs[1]]
    shuffled = rng.permutation(ids)
    y = rng.integers(classes, size=n)
    roles: dict[str, Any] = {"test": shuffled[: n // 4]}
    if split != "labelled":
        least = zip((4, 2, 2), SPLITS[split], strict=True)
        ends = np.cumsum([max(few, int(share * n)) for few, share in least])
        train, validation, context, test = np.split(shuffled, ends)
        roles = {"train": train, "validation": validation, "test": test}
        y[np.isin(ids, context[::2])] = -1
    return ge.Graph.from_arrays(
        x,
        ids[pairs],
        y,
        ids=ids,
        **roles,
        num_classes=classes,
        each_edge_once=True,
        name="small",
    )


@st.composite
def small_graphs(draw: st.DrawFn, *, min_nodes: int = 10, max_nodes: int = 40) -> ge.Graph:
    """Random graphs of the kind of `small_graph`, some with more ties than an aggregation reads."""
    n, num_features = draw(st.integers(min_nodes, max_nodes)), draw(st.integers(2, 12))
    ties, split = draw(st.sampled_from([2, 12])), draw(st.sampled_from(list(SPLITS)))
    seed = draw(st.integers(0, 2**16))
    return small_graph(seed, n=n, num_features=num_features, ties=ties, split=split)


@st.composite
def requests_for(
    draw: st.DrawFn,
    graph: ge.Graph,
    *,
    kinds: tuple[str, ...] = ("nodes", "edges", "features", "labels"),
) -> Request:
    """One request that the graph can meet, leaving training nodes behind."""
    kind = draw(st.sampled_from(kinds))
    if kind == "edges" and graph.num_edges:
        picks = draw(st.lists(st.integers(0, graph.num_edges - 1), min_size=1, max_size=4))
        return ge.Edges(map(tuple, graph.edges[picks].tolist()))
    filled = graph.ids[np.diff(graph.x.indptr) > 0]
    if kind == "features" and len(filled):
        return ge.Features(draw(_some_of(filled)))
    labelled = graph.ids[graph.y >= 0]
    if kind == "labels" and len(labelled):
        return ge.Labels(draw(_some_of(labelled)))
    return ge.Nodes(draw(_some_of(graph.ids)))


@st.composite
def batches_for(draw: st.DrawFn, graph: ge.Graph, *, max_size: int = 3) -> list[Request]:
    """Requests that are met one after the other in any order as well as at once.

    No part of one touches what another takes: a node that goes takes its edges and features along.
    """
    left, batch = graph, list[Request]()
    for _ in range(draw(st.integers(1, max_size))):
        request = draw(requests_for(left))
        if len(left.train_nodes) - _named(request) < 3:
            break
        batch.append(request)
        left = _untouched(left, request)
        if left.num_nodes < 5:
            break
    return batch or [ge.Nodes(graph.ids[:1].tolist())]


@st.composite
def changes_for(
    draw: st.DrawFn,
    graph: ge.Graph,
    *,
    kinds: tuple[str, ...] = ("nodes", "edges", "features", "labels"),
    allowed: Callable[[int, int], bool] = lambda u, v: True,
) -> list[GraphChange]:
    """A list of changes that the graph can meet: deletions of these kinds, additions, corrections.

    Without the kind ``labels``, new nodes have none, and no label is set. New edges join two nodes
    only where that is allowed.
    """
    gone = [draw(requests_for(graph, kinds=kinds))] if draw(st.booleans(), label="forget") else []
    taken = [n for request in gone if not isinstance(request, ge.Edges) for n in request.ids]
    left = np.setdiff1d(graph.ids, taken)
    parts = draw(st.sets(st.sampled_from(["add", "join", "features", "labels"]), min_size=1))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    changes: list[GraphChange] = list(gone)
    new = np.setdiff1d(rng.choice(4 * len(graph.ids), 3, replace=False), graph.ids)
    new = new if "add" in parts else new[:0]
    if len(new):
        y = rng.integers(-1, graph.num_classes, size=len(new)) if "labels" in kinds else None
        ends = np.concatenate([left, new])
        pairs = np.stack([rng.choice(new, 5), rng.choice(ends, 5)], axis=1)
        changes.append(
            ge.AddNodes(
                new,
                _rows(rng, len(new), graph),
                y,
                **_carrying(rng, graph, _joining(rng, pairs, allowed), "edges", "edge_weight"),
            )
        )
    if "join" in parts and len(left) > 1:
        pairs = _joining(rng, rng.choice(left, size=(4, 2)), allowed)
        changes.append(ge.AddEdges(**_carrying(rng, graph, pairs, "pairs", "weight")))
    if "features" in parts and len(left):
        some = rng.choice(left, min(3, len(left)), replace=False)
        changes.append(ge.SetFeatures(some, _rows(rng, len(some), graph)))
    if "labels" in parts and "labels" in kinds and len(left):
        some = rng.choice(left, min(3, len(left)), replace=False)
        changes.append(ge.SetLabels(some, rng.integers(graph.num_classes, size=len(some))))
    return changes or [ge.AddNodes([10**6], _rows(rng, 1, graph))]


def _rows(rng: np.random.Generator, count: int, graph: ge.Graph) -> NDArray[Any]:
    shape = count, graph.num_features
    return rng.integers(1, 4, size=shape) * (rng.random(shape) < 0.4)


def _joining(
    rng: np.random.Generator, pairs: NDArray[Any], allowed: Callable[[int, int], bool]
) -> NDArray[Any]:
    """Those of the pairs that are allowed, some of them the other way round."""
    pairs = rng.permuted(pairs, axis=1)
    return pairs[[u != v and allowed(int(u), int(v)) for u, v in pairs]]


def _carrying(
    rng: np.random.Generator, graph: ge.Graph, pairs: NDArray[Any], name: str, weight: str
) -> dict[str, Any]:
    """Arguments for new edges that carry what those of the graph do."""
    kind = graph.edge_kind
    return {
        name: pairs,
        weight: rng.random(len(pairs)) if kind.weighted else None,
        "edge_attr": rng.random((len(pairs), kind.columns)) if kind.columns else None,
    }


def _some_of(ids: Any) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(ids.tolist()), min_size=1, max_size=3, unique=True)


def _named(request: Request) -> int:
    return len(request.ids) if isinstance(request, ge.Nodes | ge.Labels) else 0


def _untouched(graph: ge.Graph, request: Request) -> ge.Graph:
    """What is left to ask for once the request has its nodes or end points."""
    named = request.pairs if isinstance(request, ge.Edges) else request.ids
    return graph.subgraph(np.setdiff1d(graph.ids, np.array(named).ravel()))


def with_edge_values(
    graph: ge.Graph,
    seed: int = 0,
    *,
    weighted: bool = True,
    columns: int = 0,
    directed: bool = False,
) -> ge.Graph:
    """The same nodes and pairs of neighbours; some weights are 0, some edges lead both ways."""
    rng = np.random.default_rng(seed)
    edges = graph.edges
    if directed:
        flip, back = rng.random((2, len(edges))) < 0.4
        edges[flip] = edges[flip, ::-1]
        edges = np.concatenate([edges, edges[back, ::-1]])
    weights = rng.random(len(edges)) * (rng.random(len(edges)) < 0.9)
    return ge.Graph.from_arrays(
        graph.x,
        edges.T,
        graph.y,
        ids=graph.ids,
        train=graph.train_nodes,
        test=graph.test_nodes,
        num_classes=graph.num_classes,
        each_edge_once=True,
        edge_weight=weights.astype(np.float32) if weighted else None,
        edge_attr=rng.random((len(edges), columns)).astype(np.float32) if columns else None,
        directed=directed,
        name=graph.name,
    )


@st.composite
def graphs_with_edge_values(draw: st.DrawFn, *, columns: bool = True) -> ge.Graph:
    """Random graphs whose edges have weights, directions, or features of their own."""
    wide = draw(st.integers(0, 2)) if columns else 0
    directed = draw(st.booleans())
    weighted = draw(st.booleans()) or not (wide or directed)
    graph, seed = draw(small_graphs()), draw(st.integers(0, 2**16))
    return with_edge_values(graph, seed, weighted=weighted, columns=wide, directed=directed)


def called(node: Any) -> str:
    """The name that `with_names` gives a node."""
    return f"person {node}: Zoë"


def with_names(graph: ge.Graph, order: Any = None) -> ge.Graph:
    """The same graph, its nodes named and listed in another order."""
    order = np.arange(graph.num_nodes) if order is None else order
    split = {"train": graph.train_nodes, "test": graph.test_nodes}
    split["validation"] = graph.validation_nodes
    chosen: dict[str, Any] = {
        part: [called(node) for node in nodes] for part, nodes in split.items()
    }
    ends = graph.ids[graph.edge_index]
    return ge.Graph.from_arrays(
        graph.x[order],
        np.array([called(node) for node in ends.ravel()]).reshape(2, -1),
        graph.y[order],
        ids=[called(node) for node in graph.ids[order]],
        **chosen,
        num_classes=graph.num_classes,
        edge_weight=graph.edge_weight,
        directed=graph.edge_kind.directed,
    )


def by_name(change: GraphChange) -> GraphChange:
    """The same change to the same graph, once `with_names` has named its nodes."""

    def names(nodes: Any) -> list[str]:
        return [called(int(node)) for node in nodes]

    if isinstance(change, ge.Edges):
        return ge.Edges([names(pair) for pair in change.pairs])
    if isinstance(change, ge.AddNodes | ge.AddEdges):
        pairs = [names(pair) for pair in change.edges.pairs]
        weight = change.edges.values[:, 0] if change.edges.weighted else None
        if isinstance(change, ge.AddEdges):
            return ge.AddEdges(pairs, weight)
        return ge.AddNodes(names(change.ids), change.x, change.y, pairs, edge_weight=weight)
    if isinstance(change, ge.SetFeatures):
        return ge.SetFeatures(names(change.ids), change.x)
    if isinstance(change, ge.SetLabels):
        return ge.SetLabels(names(change.ids), change.y)
    return type(change)(names(change.ids))
