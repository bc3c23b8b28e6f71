"""Attacks on a run of whole graphs: does it still tell which graphs it has forgotten?

The attacker has graphs and their labels, hands each over as a new one, and looks at how well its
label is told: of a graph that is learned from much better than of others. Forgotten ones may be
told no better than by a model that was fitted without them.

An attacker who has kept answers from before compares them: of some graphs, which one went?
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
from grapheraser.graph import Graph, Graphs
from grapheraser.graphs import CollectionEraser
from grapheraser.graphs.learner import answers_to
from grapheraser.seeding import generator

# Graphs of which one went.
_GROUP = 6


@dataclass(frozen=True)
class GraphResult(Result):
    """Success of the attacks on a run of whole graphs."""

    candidates: int  # how many graphs were forgotten
    before: Rates  # these graphs while they are learned from, against test graphs
    after: Rates  # the same once they are forgotten
    never: Rates  # the same under a model that was fitted without them
    same: bool  # whether both have given every graph the same answer, bit for bit
    data_free: bool  # whether they have to, since the partition reads no data
    requests: int  # how many graphs were then forgotten one at a time
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
