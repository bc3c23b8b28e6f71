"""What methods of a task learn from, what they are asked, and what may be forgotten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.datasets import load_dataset
from grapheraser.datasets.load import data_root
from grapheraser.demo.tasks import SCENES
from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Features, Graph, Graphs, Nodes, SetFeatures
from grapheraser.graph.changes.parts import GraphEdges, GraphNodes
from grapheraser.graph.changes.sides import Interactions, Items, Users
from grapheraser.graphs import Collection
from grapheraser.graphs.encoding import rows_of
from grapheraser.links.metrics import link_score
from grapheraser.seeding import generator
from grapheraser_lab.rivals.recommend import split_of

Ids = NDArray[np.int64]
NODES, EDGES, FEATURES = "nodes", "edges", "features"
GRAPHS, USERS, ITEMS, INTERACTIONS = "graphs", "users", "items", "interactions"
RECOMMENDATION, EMBEDDINGS, DEMO = "recommendation", "embeddings", "demo"
_REQUESTS: dict[str, Callable[[list[Any]], Any]] = {
    NODES: Nodes,
    EDGES: Edges,
    FEATURES: Features,
    GRAPHS: Graphs,
    USERS: Users,
    ITEMS: Items,
    INTERACTIONS: Interactions,
}
_HELD_OUT = 0.1  # of the edges, for questions about links; of what users took
_ASKED, _TOP = 500, 20  # users who are asked about, and items that are recommended


@dataclass(frozen=True, eq=False)
class World:
    """A graph to learn from, with questions.

    Attributes:
        graph: what `fit` is given: a `Graph`, a `Collection` or `Taken`.
        questions: ids ``[m]``, or pairs of ids ``[m, 2]``.
        truth: what is right ``[m]``.
        measure: from answers and truth to a score, larger is better.
        metric: its name.
        kinds: what can be asked to be forgotten.
    """

    graph: Any
    questions: Ids
    truth: NDArray[Any]
    measure: Callable[[NDArray[Any], NDArray[Any]], float]
    metric: str
    kinds: tuple[str, ...] = (NODES, EDGES, FEATURES)

    def without(self, request: Any) -> World:
        """Return what is left of the world, built from what is left alone."""
        rest = replace(self, graph=self.graph.without(request))
        there = rest.left(self.questions)
        return replace(rest, questions=self.questions[there], truth=self.truth[there])

    def left(self, questions: Ids) -> NDArray[np.bool_]:
        """Tell which questions name nothing that is gone."""
        graph = self.graph if isinstance(self.graph, Graph) else self.graph.graph
        there = graph.contains(questions.ravel()).reshape(questions.shape)
        return np.asarray(np.atleast_2d(there.T).all(axis=0))

    def around(self, kind: str, item: Any) -> Ids:
        """Return what shows that something goes: neighbours of a node, ends of an edge."""
        if kind == NODES:
            return np.asarray(self.graph.neighbours(item))
        return np.atleast_1d(np.array(item, dtype=np.int64))

    def shown(self, answers: NDArray[Any], item: Any) -> list[float]:
        """Return what an attacker makes of the answers around a node: how sure, and of what."""
        own = answers[:, int(self.graph.labels([item])[0])]
        entropy = -(answers * np.log(answers + 1e-9)).sum(axis=1)
        return [own.mean(), own.max(), answers.max(axis=1).mean(), entropy.mean()]

    def alike(self, method: Any, pairs: Ids) -> NDArray[Any]:
        """Return how much a method's answers speak for an edge between the nodes of each pair."""
        ids, at = np.unique(pairs, return_inverse=True)
        one, other = method.predict_proba(ids)[at.reshape(-1, 2).T]
        return np.asarray(-np.abs(one - other).sum(axis=1))

    def learned_from(self) -> Ids:
        """Return the nodes whose going has to be forgotten, in order."""
        return self.graph.train_nodes if self.metric == "F1" else self.graph.ids

    def order(self, kind: str, seed: int) -> list[Any]:
        """Return everything of a kind that may be asked to be forgotten, in a random order."""
        if kind not in self.kinds:
            raise ParameterError(f"requests are for {', '.join(self.kinds)}. Got '{kind}'.")
        found = generator(seed, "arena", kind).permutation(self.all_of(kind)).tolist()
        return [tuple(one) if isinstance(one, list) else one for one in found]

    def all_of(self, kind: str) -> Ids:
        """Return everything of a kind that may be asked to be forgotten."""
        if kind == FEATURES:
            ids = self.learned_from()
            filled = np.asarray((self.graph.x != 0).sum(axis=1)).ravel() > 0
            return ids[filled[self.graph.positions(ids)]]
        if kind != EDGES:
            return self.learned_from()
        held: Graph = self.graph.training_graph if self.metric == "F1" else self.graph
        return held.edges

    def request(self, kind: str, items: list[Any]) -> Any:
        """Return the request to forget these."""
        return _REQUESTS[kind](items)


class LinksWorld(World):
    """A graph whose pairs of nodes are asked about."""

    def around(self, kind: str, item: Any) -> Ids:
        """See `World`; pairs."""
        if kind == EDGES:
            return np.array([item], dtype=np.int64)
        near = self.graph.neighbours(item)
        ends = np.full(len(near), item) if kind == FEATURES else np.roll(near, 1)
        return np.stack([near, ends], axis=1)[near != ends]

    def shown(self, answers: NDArray[Any], item: Any) -> list[float]:
        """See `World`; answers about pairs."""
        return [answers.mean(), answers.min(), answers.max()]

    def alike(self, method: Any, pairs: Ids) -> NDArray[Any]:
        """See `World`."""
        return np.asarray(method.predict_proba(pairs))


class Taken(NamedTuple):
    """What a recommender learns from: sorted ids of users and of items, and who took what."""

    users: Ids
    items: Ids
    pairs: Ids  # [m, 2]


class GraphsWorld(World):
    """Whole graphs, of which some are asked about; graphs go, or nodes and edges inside them."""

    def without(self, request: Any) -> World:
        """See `World`."""
        graph = self.graph.graph
        if isinstance(request, Graphs):
            return replace(self, graph=Collection(graph.without(request.in_graph)))
        parts = np.array(request.parts)
        touched = np.unique(parts[:, 0])
        rows = []
        for one in touched.tolist():
            inside = parts[parts[:, 0] == one, 1:]
            none = inside[:0]
            gone = (inside.ravel(), none.reshape(0, 2))
            gone = gone if isinstance(request, GraphNodes) else (none.ravel(), inside)
            rows.append(self.graph[one].without(*gone).numbers)
        left = rows_of(np.concatenate(rows), np.array([len(row) for row in rows]))
        return replace(self, graph=Collection(graph.updated([SetFeatures(touched, left)])))

    def around(self, kind: str, item: Any) -> Ids:
        """See `World`; nothing is left of a whole graph that went."""
        return np.array([] if kind == GRAPHS else item[:1], dtype=np.int64)

    def all_of(self, kind: str) -> Ids:
        """See `World`; of each graph one node stays."""
        graphs: Ids = self.graph.train_graphs
        if kind == GRAPHS:
            return graphs
        parts = []
        for one in graphs.tolist():
            small = self.graph[one]
            inside = small.nodes[1:, None] if kind == NODES else small.edges
            parts.append(np.insert(inside, 0, one, axis=1))
        return np.concatenate(parts)

    def request(self, kind: str, items: list[Any]) -> Any:
        """See `World`."""
        inside: dict[str, Callable[[list[Any]], Any]] = {NODES: GraphNodes, EDGES: GraphEdges}
        return {GRAPHS: Graphs, **inside}[kind](items)


def numbers(nodes: Any) -> Ids:
    """Return the numbers of users or items that requests hold as nodes."""
    return np.array(nodes, dtype=np.int64) // 2


class TakenWorld(World):
    """Users and items; some of what users took is held out, and `truth` says what (1, known -1)."""

    def without(self, request: Any) -> World:
        """See `World`."""
        users, items, pairs = self.graph
        if isinstance(request, Interactions):
            scale = np.array([items.max() + 1, 1])
            left = ~np.isin(pairs @ scale, numbers(request.pairs) @ scale)
            return replace(self, graph=Taken(users, items, pairs[left]))
        gone, column = numbers(request.ids), int(isinstance(request, Items))
        kept = [
            np.setdiff1d(ids, gone) if at == column else ids
            for at, ids in enumerate((users, items))
        ]
        rest = replace(self, graph=Taken(kept[0], kept[1], pairs[~np.isin(pairs[:, column], gone)]))
        there = rest.left(self.questions)
        columns = np.isin(items, kept[1])
        return replace(rest, questions=self.questions[there], truth=self.truth[there][:, columns])

    def left(self, questions: Ids) -> NDArray[np.bool_]:
        """See `World`."""
        return np.isin(questions, self.graph.users)

    def around(self, kind: str, item: Any) -> Ids:
        """See `World`; users who took the same. None for an item: answers have it no more."""
        users, items = self.graph.pairs.T
        if kind == USERS:
            return np.setdiff1d(users[np.isin(items, items[users == item])], item)
        return np.array([] if kind == ITEMS else item[:1], dtype=np.int64)

    def all_of(self, kind: str) -> Ids:
        """See `World`."""
        found: Ids = getattr(self.graph, "pairs" if kind == INTERACTIONS else kind)
        return found


def world_of(task: str, dataset: str, seed: int) -> World:
    """Return the world of a data set, with the split of a seed."""
    if task not in WORLDS:
        raise ParameterError(f"the arena has no task '{task}'. It has: {', '.join(WORLDS)}.")
    return WORLDS[task](dataset, seed)


def _of_nodes(dataset: str, seed: int) -> World:
    graph = load_dataset(dataset, split_seed=seed)
    asked = graph.labelled_test_nodes
    return World(graph, asked, graph.labels(asked), _accuracy, "F1")


def _of_links(dataset: str, seed: int) -> World:
    """Hold some edges out, and ask about them beside as many pairs that are no edges."""
    graph = load_dataset(dataset, split_seed=seed)
    rng = generator(seed, "arena", "links")
    edges = rng.permutation(graph.edges)
    held = edges[: round(_HELD_OUT * len(edges))]
    drawn = rng.choice(graph.ids, (3 * len(held), 2))
    apart = ~graph.has_edges(drawn) & (drawn[:, 0] != drawn[:, 1])
    others = drawn[apart][: len(held)]
    truth = np.arange(len(held) + len(others)) < len(held)
    pairs = np.concatenate([held, others])
    return LinksWorld(graph.without(Edges(held)), pairs, truth, _auc, "AUC")


def _of_graphs(dataset: str, seed: int) -> World:
    """Ask about a fifth of the graphs."""
    if dataset == DEMO:
        whole = SCENES[GRAPHS](1, seed).world
    else:
        file = data_root() / "tasks" / GRAPHS / f"{dataset}.npz"
        count = len(Collection.from_npz(file))
        test = generator(seed, "arena", GRAPHS).permutation(count)[: count // 5]
        whole = Collection.from_npz(file, test=np.sort(test))
    asked = whole.test_graphs
    truth = whole.graph.labels(asked)
    return GraphsWorld(whole, asked, truth, _accuracy, "accuracy", (GRAPHS, NODES, EDGES))


def _of_rows(dataset: str, seed: int) -> World:
    """Ask for the rows of all nodes with a label; `truth` says which, and who trains the probe."""
    graph = load_dataset(dataset, split_seed=seed)
    asked = np.concatenate([graph.labelled_test_nodes, graph.train_nodes])
    trains = np.isin(asked, graph.train_nodes)
    truth = np.stack([graph.labels(asked), trains], axis=1)
    return World(graph, asked, truth, _probe, "F1 of a linear probe")


def _of_taken(dataset: str, seed: int) -> World:
    """Hold a tenth of what users took out, and ask some users."""
    matrix = SCENES[RECOMMENDATION](1, seed).world if dataset == DEMO else split_of(dataset)[0]
    pairs = np.stack(matrix.nonzero(), axis=1).astype(np.int64)
    rng = generator(seed, "arena", RECOMMENDATION)
    held = rng.random(len(pairs)) < _HELD_OUT
    users, items = (np.arange(size, dtype=np.int64) for size in matrix.shape)
    asked = np.sort(rng.permutation(np.unique(pairs[held, 0]))[:_ASKED])
    truth = np.zeros((len(users), len(items)), dtype=np.int8)
    truth[tuple(pairs.T)] = np.where(held, 1, -1)
    taken = Taken(users, items, pairs[~held])
    kinds = (USERS, INTERACTIONS, ITEMS)
    return TakenWorld(taken, asked, truth[asked], _recall, f"recall@{_TOP}", kinds)


def _recall(answers: NDArray[Any], truth: NDArray[Any]) -> float:
    """Mean share of the held-out items that are among the best that a user doesn't have."""
    best = np.argsort(np.where(truth < 0, -np.inf, answers), axis=1, kind="stable")
    top = np.take_along_axis(truth, best[:, ::-1][:, :_TOP], axis=1) > 0
    wanted = (truth > 0).sum(axis=1)
    return float((top.sum(axis=1)[wanted > 0] / wanted[wanted > 0]).mean())


def _probe(rows: NDArray[Any], truth: NDArray[Any]) -> float:
    """Micro F1 of ridge regression on the rows of training nodes, asked about test nodes."""
    trains, labels = truth[:, 1] > 0, truth[:, 0]
    known = rows[trains].astype(np.float64)
    penalty = np.trace(known.T @ known) / known.shape[1] * 1e-3 * np.eye(known.shape[1])
    aims = labels[trains, None] == np.arange(labels.max() + 1)
    weights = np.linalg.solve(known.T @ known + penalty, known.T @ aims)
    return _accuracy(rows[~trains] @ weights, labels[~trains])


def _accuracy(answers: NDArray[Any], truth: NDArray[Any]) -> float:
    return float((answers.argmax(axis=1) == truth).mean())


def _auc(answers: NDArray[Any], truth: NDArray[Any]) -> float:
    return link_score(answers, truth).auc


WORLDS: dict[str, Callable[[str, int], World]] = {
    "nodes": _of_nodes,
    "links": _of_links,
    GRAPHS: _of_graphs,
    RECOMMENDATION: _of_taken,
    EMBEDDINGS: _of_rows,
}
