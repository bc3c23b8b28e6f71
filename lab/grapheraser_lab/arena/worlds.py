"""What methods of a task learn from, what they are asked, and what may be forgotten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.datasets import load_dataset
from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Features, Graph, Nodes
from grapheraser.links.metrics import link_score
from grapheraser.seeding import generator

Ids = NDArray[np.int64]
NODES, EDGES, FEATURES = "nodes", "edges", "features"
_HELD_OUT = 0.1  # of the edges, for questions about links


@dataclass(frozen=True, eq=False)
class World:
    """A graph to learn from, with questions.

    Attributes:
        graph: what `fit` is given.
        questions: ids ``[m]``, or pairs of ids ``[m, 2]``.
        truth: what is right ``[m]``.
        measure: from answers and truth to a score, larger is better.
        metric: its name.
        kinds: what can be asked to be forgotten.
    """

    graph: Graph
    questions: Ids
    truth: NDArray[Any]
    measure: Callable[[NDArray[Any], NDArray[Any]], float]
    metric: str
    kinds: tuple[str, ...] = (NODES, EDGES, FEATURES)

    def without(self, request: Any) -> World:
        """Return what is left of the world, built from what is left alone."""
        graph = self.graph.without(request)
        there = graph.contains(self.questions.ravel()).reshape(len(self.questions), -1).all(axis=1)
        return replace(self, graph=graph, questions=self.questions[there], truth=self.truth[there])

    def learned_from(self) -> Ids:
        """Return the nodes whose going has to be forgotten, in order."""
        return self.graph.train_nodes if self.metric == "F1" else self.graph.ids

    def order(self, kind: str, seed: int) -> list[Any]:
        """Return everything of a kind that may be asked to be forgotten, in a random order."""
        if kind not in self.kinds:
            raise ParameterError(f"requests are for {', '.join(self.kinds)}. Got '{kind}'.")
        rng = generator(seed, "arena", kind)
        if kind != EDGES:
            return rng.permutation(self.learned_from()).tolist()
        held = self.graph.training_graph if self.metric == "F1" else self.graph
        return [tuple(pair) for pair in rng.permutation(held.edges).tolist()]

    def request(self, kind: str, items: list[Any]) -> Any:
        """Return the request to forget these."""
        return {NODES: Nodes, EDGES: Edges, FEATURES: Features}[kind](items)


def world_of(task: str, dataset: str, seed: int) -> World:
    """Return the world of a data set, with the split of a seed."""
    if task not in WORLDS:
        raise ParameterError(f"the arena has no task '{task}'. It has: {', '.join(WORLDS)}.")
    return WORLDS[task](load_dataset(dataset, split_seed=seed), seed)


def _of_nodes(graph: Graph, seed: int) -> World:
    del seed
    asked = graph.labelled_test_nodes
    return World(graph, asked, graph.labels(asked), _accuracy, "F1")


def _of_links(graph: Graph, seed: int) -> World:
    """Hold some edges out, and ask about them beside as many pairs that are no edges."""
    rng = generator(seed, "arena", "links")
    edges = rng.permutation(graph.edges)
    held = edges[: round(_HELD_OUT * len(edges))]
    drawn = rng.choice(graph.ids, (3 * len(held), 2))
    apart = ~graph.has_edges(drawn) & (drawn[:, 0] != drawn[:, 1])
    others = drawn[apart][: len(held)]
    truth = np.arange(len(held) + len(others)) < len(held)
    pairs = np.concatenate([held, others])
    return World(graph.without(Edges(held)), pairs, truth, _auc, "AUC")


def _accuracy(answers: NDArray[Any], truth: NDArray[Any]) -> float:
    return float((answers.argmax(axis=1) == truth).mean())


def _auc(answers: NDArray[Any], truth: NDArray[Any]) -> float:
    return link_score(answers, truth).auc


WORLDS: dict[str, Callable[[Graph, int], World]] = {"nodes": _of_nodes, "links": _of_links}
