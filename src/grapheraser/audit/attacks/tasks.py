"""Attacks on runs of links and of whole graphs: do they still tell what they have forgotten?

*Links.* A forgotten edge joins two nodes that are alike, and a model that never saw it may well
suggest it. So it is compared with pairs that are as alike: nodes without an edge that have the same
number of common neighbours. *Graphs.* The attacker has graphs and their labels, hands each over as
a new one, and looks at how well its label is told: of a graph that is learned from much better than
of others. What was forgotten may be told no better than by a model that was fitted without it.

An attacker who has kept answers from before can compare them: which edge went, by the pair itself
and by pairs around it, each end with neighbours of the other; of some graphs, which one?
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grapheraser.audit.attacks.answers import log_odds
from grapheraser.audit.budget import UNLIMITED, Budget
from grapheraser.audit.statistics import Rates, Result, first_of_groups, rates
from grapheraser.errors import ParameterError
from grapheraser.graph import Edges, Graph, Graphs
from grapheraser.graphs import CollectionEraser
from grapheraser.graphs.learner import answers_to
from grapheraser.links import LinkEraser
from grapheraser.seeding import generator

# Pairs that are asked about around each end of an edge.
_AROUND = 5

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class _Forgotten(Result):
    """Success of the attack on edges or graphs that were forgotten."""

    candidates: int  # how many of them were forgotten
    before: Rates  # these while they are learned from, against others that never were
    after: Rates  # the same once they are forgotten
    never: Rates  # the same under a model that was fitted without them
    same: bool  # whether both have given the same answers, bit for bit
    data_free: bool  # whether they have to, since the partition reads no data
    requests: int  # how many were then forgotten one at a time


@dataclass(frozen=True)
class LinkResult(_Forgotten):
    """Success of the attacks on a link run."""

    pair: Rates  # which of some edges was just forgotten? By how much the odds of the pair moved
    around: Rates  # the same, by how much the odds of the pairs around it moved


def link_attack(
    eraser: LinkEraser,
    *,
    candidates: int = 200,
    requests: int = 40,
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> LinkResult:
    """Forget ``candidates`` edges at once and ``requests`` one by one, on copies of the run."""
    edges, others = _alike(eraser.graph_, candidates, seed, sides=eraser.sides is not None)
    pairs = np.concatenate([edges, others])
    member = np.arange(len(pairs)) < len(edges)
    after = copy.copy(eraser)
    after.unlearn(Edges(edges))
    # The graph of a link run is what a fit makes of it, and has its sides for classes.
    never = LinkEraser(**eraser.get_params()).fit(after.graph_)
    answers = [version.predict_proba(pairs) for version in (eraser, after, never)]
    before, forgotten, unseen = (rates(_odds(a), member, seed=seed) for a in answers)
    same = answers[1].tobytes() == answers[2].tobytes()
    done, pair, around = _before_and_after(eraser, requests, seed, budget)
    free = eraser.partition_.data_free
    return LinkResult(len(edges), before, forgotten, unseen, same, free, done, pair, around)


def _alike(graph: Graph, count: int, seed: int, *, sides: bool = False) -> tuple[Pairs, Pairs]:
    """Draw edges, and as many pairs without one that have as many common neighbours."""
    rng = generator(seed, "audit", "links")
    edges = graph.edges[rng.permutation(graph.num_edges)[:count]]
    if len(edges) == graph.num_edges:
        edges = edges[: max(1, len(edges) // 2)]
    by_common: dict[int, list[tuple[int, int]]] = {}
    known: set[tuple[int, int]] = set()
    for u, v in _pairs_two_steps_apart(graph, rng, 40 * len(edges)):
        pair = (min(u, v), max(u, v))
        allowed = not sides or graph.labels([u])[0] != graph.labels([v])[0]
        if allowed and pair not in known:
            known.add(pair)
            by_common.setdefault(_common(graph, u, v), []).append(pair)
    chosen, others = [], []
    for u, v in edges.tolist():
        waiting = by_common.get(_common(graph, u, v))
        if waiting:
            chosen.append((u, v))
            others.append(waiting.pop())
    if len(chosen) < 4:
        raise ParameterError(
            f"this attack needs 4 edges with pairs that are as alike (found {len(chosen)})."
        )
    return np.array(chosen, dtype=np.int64), np.array(others, dtype=np.int64)


def _pairs_two_steps_apart(
    graph: Graph, rng: np.random.Generator, tries: int
) -> list[tuple[int, int]]:
    """Draw pairs without an edge: of two steps, and of any two nodes."""
    found = []
    starts = rng.choice(graph.ids, size=tries)
    for number, start in enumerate(starts.tolist()):
        other = int(rng.choice(graph.ids))
        near = graph.neighbours(start)
        if number % 4 and len(near):
            other = int(rng.choice(graph.neighbours(int(rng.choice(near)))))
        if other != start and other not in near:
            found.append((start, other))
    return found


def _common(graph: Graph, u: int, v: int) -> int:
    return len(np.intersect1d(graph.neighbours(u), graph.neighbours(v), assume_unique=True))


def _before_and_after(
    eraser: LinkEraser, requests: int, seed: int, budget: Budget, others: int = 5
) -> tuple[int, Rates, Rates]:
    """Forget edges one at a time; guess which of six went from how far answers have moved."""
    graph = eraser.graph_
    rng = generator(seed, "audit", "links", "requests")
    requests = max(1, min(requests, graph.num_edges // (others + 1)))
    drawn = graph.edges[rng.permutation(graph.num_edges)[: requests * (others + 1)]]
    groups = drawn.reshape(-1, others + 1, 2)
    moved: list[list[float]] = []
    moved_around: list[list[float]] = []
    for number in budget.rounds(len(groups), least=min(10, len(groups))):
        after = copy.copy(eraser)
        after.unlearn(Edges(groups[number, :1]))
        moved.append([_moved(eraser, after, pair[None]) for pair in groups[number]])
        near = [_surroundings(graph, *pair.tolist()) for pair in groups[number]]
        moved_around.append([_moved(eraser, after, pairs) for pairs in near])
    pair, around = (first_of_groups(scores, seed=seed) for scores in (moved, moved_around))
    return len(moved), pair, around


def _surroundings(graph: Graph, u: int, v: int) -> Pairs:
    """Pair each end with some neighbours of the other."""
    pairs = [
        (a, int(other))
        for a, b in ((u, v), (v, u))
        for other in graph.neighbours(b)[:_AROUND]
        if other != a
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _moved(before: LinkEraser, after: LinkEraser, pairs: Pairs) -> float:
    """Return the furthest that the odds of one of the pairs have moved."""
    if before.sides is not None:
        side = before.graph_.labels(pairs.ravel()).reshape(-1, 2)
        pairs = pairs[side[:, 0] != side[:, 1]]
    if len(pairs) == 0:
        return 0.0
    odds = [_odds(version.predict_proba(pairs)) for version in (before, after)]
    return float(np.abs(odds[0] - odds[1]).max())


def _odds(probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
    p = np.clip(probabilities.astype(np.float64), 1e-9, 1 - 1e-7)
    return np.log(p / (1 - p))


# Graphs of which one went.
_GROUP = 6


@dataclass(frozen=True)
class GraphResult(_Forgotten):
    """Success of the attacks on a run of whole graphs."""

    moved: Rates  # which of six was just forgotten? By how much the answer about it moved


def graph_attack(
    eraser: CollectionEraser,
    graph: Graph,
    *,
    candidates: int = 100,
    requests: int = 40,
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> GraphResult:
    """Forget ``candidates`` graphs at once and ``requests`` one by one, on copies of the run."""
    known = np.intersect1d(graph.train_nodes, graph.ids[graph.label_kind.labelled(graph.y)])
    others = graph.labelled_test_nodes
    rng = generator(seed, "audit", "graphs")
    chosen = rng.permutation(known)[: min(candidates, len(known) // 2)]
    if len(chosen) < _GROUP or len(others) < 2:
        raise ParameterError(
            f"this attack needs {2 * _GROUP} training graphs and 2 test graphs with labels "
            f"(found {len(known)} and {len(others)})."
        )
    asked = np.concatenate([chosen, rng.permutation(others)[: len(chosen)]])
    member = np.arange(len(asked)) < len(chosen)
    after = copy.copy(eraser)
    after.unlearn(Graphs(chosen))
    never = CollectionEraser(**eraser.get_params()).fit(after.collection_)
    found = [_answers(version, graph, asked) for version in (eraser, after, never)]
    before, forgotten, unseen = (
        rates(_told(said, graph, asked), member, seed=seed) for said in found
    )
    same = found[1].tobytes() == found[2].tobytes()
    groups = rng.permutation(known)[: requests * _GROUP]
    groups = groups[: len(groups) // _GROUP * _GROUP].reshape(-1, _GROUP)
    old, moved = _answers(eraser, graph, groups.ravel()).reshape(*groups.shape, -1), []
    for number in budget.rounds(len(groups), least=min(10, len(groups))):
        version = copy.copy(eraser)
        version.unlearn(Graphs(groups[number, :1]))
        new = _answers(version, graph, groups[number])
        moved.append(np.abs(old[number] - new).max(axis=1))
    free = eraser.partition_.data_free
    rounds = first_of_groups(moved, seed=seed)
    return GraphResult(len(chosen), before, forgotten, unseen, same, free, len(moved), rounds)


def _answers(
    version: CollectionEraser, graph: Graph, asked: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Hand graphs over as new ones, those that are learned from too."""
    found = answers_to(version._snapshot, graph.x[graph.positions(asked)])
    return np.asarray(found, dtype=np.float64)


def _told(said: NDArray[np.float64], graph: Graph, asked: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how well the labels of each graph are told, those that are known."""
    y, kind = graph.labels(asked), graph.label_kind
    if kind.is_classes:
        return log_odds(said, y)
    wrong: NDArray[np.float64] = np.nanmean(np.abs(said - kind.rows(y)), axis=1)
    return -wrong
