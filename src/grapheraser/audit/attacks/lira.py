"""The likelihood-ratio attack (LiRA): is this answer likelier with the candidate or without?

For every candidate the attacker trains runs of their own with it and without it, and knows how
sure each kind is of the candidate's class. One look at the model under attack is then weighed
against both. It is a test per example, so it finds the few who stand out even where the average
shows nothing; that is what the true-positive rate at few false alarms is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grapheraser.arrays import Bools, Floats, Ints
from grapheraser.audit.attacks.answers import ask, calibrated, state_of, without_edges
from grapheraser.audit.attacks.shadow import (
    KEPT,
    PLANTED,
    RECUT,
    fitted,
    labelled,
    parameters,
    resplit,
    unlearned,
)
from grapheraser.audit.budget import UNLIMITED, Budget
from grapheraser.audit.statistics import Rates, Result, rates
from grapheraser.eraser.state import State
from grapheraser.graph import TEST, TRAIN, Graph
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import derive, generator

# Candidates' own variances are pulled towards that of all, as if seen in this many more runs.
_PRIOR_RUNS = 8.0
_MAX_CANDIDATES = 3000  # test nodes first


@dataclass(frozen=True, eq=False)
class ShadowRuns:
    """The attacker's own runs."""

    nodes: Ints  # ids of the candidates ``[n]``
    member: Bools  # whether each run was trained on each candidate ``[runs, n]``
    # How sure each run is of each candidate's class, see `surety` ``[runs, n]``.
    statistic: Floats

    def __len__(self) -> int:
        return len(self.member)


def surety(state: State, graph: Graph, nodes: Ints) -> Floats:
    """Measure how sure a state is of the class of each candidate, beside others of it ``[n]``.

    The candidates are handed over twice, with their edges and without: neighbours hide what a
    model knows of a node by itself.
    """
    labels = graph.y[graph.positions(nodes)]
    looks = [
        calibrated(ask(state, shown, nodes), labels) for shown in (graph, without_edges(graph))
    ]
    sure: Floats = np.mean(looks, axis=0)
    return sure


def shadow_runs(
    graph: Graph,
    params: Mapping[str, Any],
    *,
    runs: int = 64,
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> ShadowRuns:
    """Train runs of the same kind, each on other nodes; at least 8, whatever the budget."""
    rng = generator(seed, "audit", "lira", "candidates")
    test, train = labelled(graph, TEST), labelled(graph, TRAIN)
    some = rng.permutation(train)[: max(_MAX_CANDIDATES - len(test), _MAX_CANDIDATES // 2)]
    nodes = np.union1d(rng.permutation(test)[: _MAX_CANDIDATES // 2], some)
    member, statistic = [], []
    for number in budget.rounds(runs, least=8):
        split = resplit(graph, derive(seed, "lira", number))
        run = fitted(params, split, derive(seed, "lira", "run", number) >> 1)
        member.append(split.role[split.positions(nodes)] == TRAIN)
        statistic.append(surety(state_of(run), graph, nodes))
    return ShadowRuns(nodes, np.array(member), np.array(statistic))


def likelihood_ratio(runs: ShadowRuns, observed: Floats, *, left_out: int | None = None) -> Floats:
    """Return the log likelihood ratio "trained on" against "not", for each candidate ``[n]``.

    ``observed``: how sure the model under attack is ``[n]``; ``left_out``: a run that is the one
    under attack, and so none of the attacker's.
    """
    others = np.arange(len(runs)) != (-1 if left_out is None else left_out)
    member, statistic = runs.member[others], runs.statistic[others]
    inside = _gaussian(statistic, member)
    outside = _gaussian(statistic, ~member)
    return _log_density(observed, *inside) - _log_density(observed, *outside)


def left_out_scores(runs: ShadowRuns) -> tuple[Floats, Bools, Ints]:
    """Attack every run with the help of all others; return scores, truth and node, flat."""
    scores = [likelihood_ratio(runs, runs.statistic[run], left_out=run) for run in range(len(runs))]
    at = np.tile(np.arange(len(runs.nodes)), len(runs))
    return np.concatenate(scores), runs.member.ravel(), at


@dataclass(frozen=True)
class LiraResult(Result):
    """Success of the likelihood-ratio attack."""

    runs: int  # how many runs of their own the attacker had
    # One look at one version, over all candidates: how visible training on a node is.
    standing: Rates
    forgotten: int  # how many nodes were forgotten for the figures below
    # Those nodes against test nodes, on the run that was trained on them. An eraser that does
    # nothing would leave it at that.
    before: Rates
    after: dict[str, Rates]  # the same, on the version after the request, by scenario


def lira(
    eraser: GraphEraser,
    graph: Graph,
    *,
    runs: int = 64,
    forget: int = 200,
    scenarios: tuple[str, ...] = (KEPT, RECUT),
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> LiraResult:
    """Attack a fitted run: who was trained on, and can it still be told once they are forgotten?

    The run is left as it is. The request takes out ``forget`` training nodes, a tenth at most;
    ``scenarios`` are of the version after.
    """
    shadow = shadow_runs(graph, parameters(eraser), runs=runs, seed=seed, budget=budget)
    scores, member, at = left_out_scores(shadow)
    standing = rates(scores, member, clusters=at, seed=seed, resamples=100)

    role = graph.role[graph.positions(shadow.nodes)]
    trained = shadow.nodes[role == TRAIN]
    forget = max(1, min(forget, len(graph.train_nodes) // 10, len(trained)))
    gone = np.sort(generator(seed, "audit", "lira", "gone").permutation(trained)[:forget])
    keep = (role == TEST) | np.isin(shadow.nodes, gone)
    chosen = _of(shadow, keep)
    truth = np.isin(chosen.nodes, gone)

    def judged(state: State) -> Rates:
        seen = surety(state, graph, shadow.nodes)[keep]
        return rates(likelihood_ratio(chosen, seen), truth, seed=seed)

    before = judged(state_of(eraser))
    after = {
        how: before if how == PLANTED else judged(unlearned(eraser, graph, gone, how))
        for how in scenarios
    }
    return LiraResult(len(shadow), standing, forget, before, after)


def _of(runs: ShadowRuns, keep: Bools) -> ShadowRuns:
    return replace(
        runs, nodes=runs.nodes[keep], member=runs.member[:, keep], statistic=runs.statistic[:, keep]
    )


def _gaussian(statistic: Floats, mask: Bools) -> tuple[Floats, Floats]:
    """Return mean and variance of each column over the runs in the mask, shrunk to that of all."""
    count = mask.sum(axis=0)
    overall = (statistic * mask).sum() / max(int(mask.sum()), 1)
    total = (statistic * mask).sum(axis=0)
    # A candidate that no run of this kind has seen is given the mean of all candidates.
    mean = np.where(count > 0, total / np.maximum(count, 1), overall)
    squares = ((statistic - mean) ** 2 * mask).sum(axis=0)
    freedom = np.maximum(count - 1, 0)
    common = squares.sum() / max(int(freedom.sum()), 1)
    variance = (squares + _PRIOR_RUNS * common) / (freedom + _PRIOR_RUNS)
    return mean, np.maximum(variance, 1e-12)


def _log_density(x: Floats, mean: Floats, variance: Floats) -> Floats:
    return -0.5 * (np.log(variance) + (x - mean) ** 2 / variance)
