"""Attacks on edges: was this one in the training graph, and which one was just deleted?

The attacker asks by node id, as a client of the service does. The model answers on its own current
graph, so an edge shows twice: in what was learned, and in the neighbourhood that an answer is
computed from. Forgetting an edge has to remove both.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grapheraser.arrays import Bools, Floats, Ints
from grapheraser.audit.attacks.answers import calibrated, logarithms
from grapheraser.audit.attacks.lira import ShadowRuns, left_out_scores, likelihood_ratio
from grapheraser.audit.attacks.shadow import fitted, parameters
from grapheraser.audit.budget import UNLIMITED, Budget
from grapheraser.audit.statistics import Rates, Result, first_of_groups, rates
from grapheraser.errors import ParameterError
from grapheraser.graph import TRAIN, UNLABELLED, Edges, Graph
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import derive, generator


@dataclass(frozen=True)
class EdgeResult(Result):
    """Success of the attacks on edges."""

    runs: int  # how many runs of their own the attacker had
    candidates: int  # how many edges were asked about
    standing: Rates  # is this edge in the graph? One look at one version
    before: Rates  # edges that are about to be forgotten, against pairs that never had an edge
    after: Rates  # the same edges once forgotten; 0.5 is as it should be
    # Which of the current edges was just deleted? Two versions, by how much the confidence at both
    # ends fell.
    drop: Rates
    # drop_inside, drop_across: AUC of the latter for edges within a shard, and between shards.
    drop_inside: float
    drop_across: float


def edge_attack(
    eraser: GraphEraser,
    graph: Graph,
    *,
    runs: int = 64,
    candidates: int = 200,
    targets: int = 4,
    requests: int = 60,
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> EdgeResult:
    """Make both attacks on edges, against runs like this one.

    Each of the shadow runs has about half of the candidate edges; ``targets`` of them are then
    asked to forget half of those they have, and ``requests`` single edges are deleted from the run
    for the confidence-drop attack.
    """
    params = parameters(eraser)
    edges = candidate_edges(graph, candidates, seed)
    shadow, kept = edge_runs(
        graph, params, edges, runs=runs, targets=targets, seed=seed, budget=budget.share(0.6)
    )
    scores, member, at = left_out_scores(shadow)
    both, truth, edge = _both_ends(scores, member, at, len(edges))
    standing = rates(both, truth, clusters=edge, seed=seed, resamples=100)
    before, after = _forgotten(shadow, kept, edges, seed)
    dropped = confidence_drop(eraser, graph, requests=requests, seed=seed, budget=budget)
    return EdgeResult(len(shadow), len(edges), standing, before, after, *dropped)


def candidate_edges(graph: Graph, count: int, seed: int) -> Ints:
    """Draw edges between labelled training nodes that share no end ``[m, 2]``."""
    ends = graph.edges
    at = graph.positions(ends.ravel()).reshape(-1, 2)
    usable = ((graph.role[at] == TRAIN) & (graph.y[at] != UNLABELLED)).all(axis=1)
    chosen: list[tuple[int, int]] = []
    taken: set[int] = set()
    for u, v in generator(seed, "audit", "edges").permutation(ends[usable]).tolist():
        if len(chosen) == count:
            break
        if u not in taken and v not in taken:
            chosen.append((u, v))
            taken |= {u, v}
    if len(chosen) < 4:
        raise ParameterError(
            f"this attack needs 4 edges between training nodes (found {len(chosen)})."
        )
    return np.array(chosen, dtype=np.int64)


def edge_runs(
    graph: Graph,
    params: Mapping[str, Any],
    edges: Ints,
    *,
    runs: int,
    targets: int,
    seed: int,
    budget: Budget,
) -> tuple[ShadowRuns, list[GraphEraser]]:
    """Fit runs on graphs with about half of the edges; columns: first ends, then second ends."""
    ends = edges.T.ravel()
    labels = graph.y[graph.positions(ends)]
    member, statistic, kept = [], [], list[GraphEraser]()
    for number in budget.rounds(runs, least=8):
        present = generator(seed, "audit", "edges", number).random(len(edges)) < 0.5
        present[:2] = (number % 2 == 0, number % 2 == 1)
        rest = graph.without(Edges(map(tuple, edges[~present].tolist())))
        run = fitted(params, rest, derive(seed, "edges", "run", number) >> 1)
        member.append(np.tile(present, 2))
        statistic.append(calibrated(run.predict_proba(ends), labels))
        if number < targets:
            kept.append(run)
    return ShadowRuns(ends, np.array(member), np.array(statistic)), kept


def _forgotten(
    shadow: ShadowRuns, kept: list[GraphEraser], edges: Ints, seed: int
) -> tuple[Rates, Rates]:
    """Forget half of the edges of some runs, and attack both versions of each."""
    m = len(edges)
    scores: list[list[Floats]] = [[], []]
    truth, asked = [], []
    for number, run in enumerate(kept):
        present = shadow.member[number, :m]
        gone = present & (generator(seed, "audit", "edges", "gone", number).random(m) < 0.5)
        gone[np.flatnonzero(present)[:1]] = True
        after = copy.copy(run)
        after.unlearn(Edges(map(tuple, edges[gone].tolist())))
        judged = np.flatnonzero(gone | ~present)
        labels = run.graph_.y[run.graph_.positions(shadow.nodes)]
        for version, found in zip((run, after), scores, strict=True):
            seen = calibrated(version.predict_proba(shadow.nodes), labels)
            ratio = likelihood_ratio(shadow, seen, left_out=number)
            found.append((ratio[:m] + ratio[m:])[judged])
        truth.append(gone[judged])
        asked.append(judged)
    member, clusters = np.concatenate(truth), np.concatenate(asked)
    before, after_ = (
        rates(np.concatenate(found), member, clusters=clusters, seed=seed) for found in scores
    )
    return before, after_


def confidence_drop(
    eraser: GraphEraser,
    graph: Graph,
    *,
    requests: int = 60,
    others: int = 5,
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> tuple[Rates, float, float]:
    """Delete edges one at a time, and guess which went from the confidence at both ends.

    Every request is compared with ``others`` edges that stay. The score of an edge is how far the
    log posteriors of its two ends moved, seen by id in both versions.

    Returns: rates over all requests, and the AUC for edges within and between shards.
    """
    edges = candidate_edges(graph, requests * (others + 1), seed)
    requests = len(edges) // (others + 1)
    groups = edges[: requests * (others + 1)].reshape(requests, others + 1, 2)
    shards = eraser.partition_.shard_of(groups[:, 0].ravel()).reshape(-1, 2)
    scores = []
    for number in budget.rounds(requests, least=min(10, requests)):
        after = copy.copy(eraser)
        after.unlearn(Edges([tuple(groups[number, 0].tolist())]))
        ends = groups[number].ravel()
        moved = logarithms(eraser.predict_proba(ends)) - logarithms(after.predict_proba(ends))
        scores.append(np.abs(moved).sum(axis=1).reshape(-1, 2).sum(axis=1))
    scored, inside = np.array(scores), (shards[:, 0] == shards[:, 1])[: len(scores)]
    every, within, across = (
        first_of_groups(some, seed=seed) for some in (scored, scored[inside], scored[~inside])
    )
    return every, within.auc.value, across.auc.value


def _both_ends(scores: Floats, member: Bools, at: Ints, m: int) -> tuple[Floats, Bools, Ints]:
    """Add up the evidence of both ends of an edge."""
    folded = scores.reshape(-1, 2, m).sum(axis=1).ravel()
    return folded, member.reshape(-1, 2, m)[:, 0].ravel(), at.reshape(-1, 2, m)[:, 0].ravel()
