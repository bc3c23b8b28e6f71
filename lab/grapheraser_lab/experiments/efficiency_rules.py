"""Conclusions of the paper from the times of requests, as rules on figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grapheraser.reports.wording import three_figures
from grapheraser_lab.experiments.partition_cost import scaled
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.means import Mean
from grapheraser_lab.framework.noise import Answer, paired
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import EVERY, Case, Claim, Finding, compared, rule
from grapheraser_lab.framework.shared_cells import SCRATCH

# Significantly: so many times. Similar: within such a factor; a similar level: within such a one.
SIGNIFICANT, SIMILAR, LEVEL = 2.0, 1.5, 2.0
LARGE = ("pubmed", "cs", "physics")

# Seconds of a request, mean over the requests, by data set, model and method.
Times = Mapping[tuple[str, str, str], Mean]


def ratios(found: Times) -> dict[tuple[str, str, str], float]:
    """How many times less than scratch."""
    return {
        key: found[key[0], key[1], SCRATCH].mean / mean.mean
        for key, mean in found.items()
        if key[2] != SCRATCH and (key[0], key[1], SCRATCH) in found
    }


def geometric(values: Sequence[float]) -> float:
    """The mean of ratios."""
    return float(np.exp(np.mean(np.log(values))))


def by_part(found: Times, *parts: int) -> dict[tuple[str, ...], float]:
    """Geometric mean of the ratios over everything but these parts of the key."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for key, ratio in ratios(found).items():
        groups.setdefault(tuple(key[part] for part in parts), []).append(ratio)
    return {group: geometric(some) for group, some in groups.items()}


def _told(found: Times) -> str:
    words = [f"{shown(d)} {three_figures(ratio)}x" for (d,), ratio in by_part(found, 0).items()]
    return f"Same engine on both sides: {', '.join(words)}."


def _at_least(one: Mean, other: Mean, times: float) -> Answer:
    """Tell whether one takes so many times as long as the other."""
    return paired(one, scaled(other, times)).positive


@rule(
    "efficiency/faster",
    "We observe that the shard-based unlearning methods can significantly improve the unlearning "
    "efficiency compared to the Scratch method.",
    f"Every data set, GNN and partition: scratch with the same engine takes at least "
    f"{SIGNIFICANT:g} times as long, beyond noise.",
)
def faster(found: Times) -> Finding:
    """Like for like."""
    cases = [
        Case(named(*key), _at_least(found[key[0], key[1], SCRATCH], found[key], SIGNIFICANT))
        for key in ratios(found)
    ]
    return Finding(cases, _told(found))


@rule(
    "efficiency/range",
    "It achieves 2.06x (small dataset) to 35.94x (large dataset) unlearning time improvement.",
    "With the same engine, at least 2.06 times on Cora and at least 35.94 times on Physics "
    "(geometric means over GNNs and partitions).",
    limits=EVERY,
    noun="data set",
)
def claimed_range(found: Times) -> Finding:
    """The abstract's two ends."""
    means = by_part(found, 0)
    ends = (("cora", paper.SPEEDUP_RANGE[0]), ("physics", paper.SPEEDUP_RANGE[1]))
    if any((d,) not in means for d, _ in ends):
        return Finding([], "")  # one end alone says nothing of a range
    return Finding([Case(shown(d), means[d,] >= least) for d, least in ends], _told(found))


@rule(
    "efficiency/larger",
    "The relative efficiency improvement of larger datasets (Pubmed, CS, and Physics) is more "
    "significant than that of smaller datasets (Cora and Citeseer).",
    "Each of the three larger graphs has a higher ratio to scratch than both smaller ones.",
    limits=EVERY,
    noun="data set",
)
def larger_gain_more(found: Times) -> Finding:
    """Geometric means over GNNs and partitions."""
    means = {d: ratio for (d,), ratio in by_part(found, 0).items()}
    small = [ratio for d, ratio in means.items() if d in ("cora", "citeseer")]
    cases = [Case(shown(d), means[d] > max(small)) for d in LARGE if d in means and small]
    told = ", ".join(f"{d} {paper.SPEEDUP[d]}x" for d in means if d in paper.SPEEDUP)
    return Finding(cases, f"{_told(found)} The paper, for nodes: {told}.")


@rule(
    "efficiency/models",
    "For all the four GNN models, we observe a similar time efficiency improvement level.",
    f"Every data set: the largest of the GNNs' ratios to scratch is at most {LEVEL:g} times the "
    "smallest.",
    noun="data set",
    untested="the ratio depends on how an engine handles each model; this is another engine.",
)
def similar_for_models(found: Times) -> Finding:
    """Geometric means over partitions."""
    means = by_part(found, 0, 1)
    cases, told = [], []
    for d in dict.fromkeys(key[0] for key in means):
        some = {m: ratio for (other, m), ratio in means.items() if other == d}
        if len(some) > 1:
            cases.append(Case(shown(d), max(some.values()) <= LEVEL * min(some.values())))
            words = ", ".join(f"{shown(m)} {three_figures(ratio)}x" for m, ratio in some.items())
            told.append(f"{shown(d)}: {words}")
    return Finding(cases, f"{'; '.join(told)}.")


@rule(
    "efficiency/as-random",
    "We observe that GraphEraser-BLPA and GraphEraser-BEKM have similar unlearning time as Random.",
    f"Every data set and GNN: the time is within a factor of {SIMILAR:g} of that of random shards.",
)
def as_random(found: Times) -> Finding:
    """Balanced shards take equally long."""
    cases = []
    factors = []
    for (d, m, p), mean in found.items():
        random = found.get((d, m, "random"))
        if p in ("blpa", "bekm") and random is not None:
            factors.append(mean.mean / random.mean)
            cases.append(Case(named(d, m, p), 1 / SIMILAR <= factors[-1] <= SIMILAR))
    if not factors:
        return Finding([], "")
    return Finding(cases, f"{min(factors):.2f} to {max(factors):.2f} times that of random shards.")


RULES = (faster, claimed_range, larger_gain_more, similar_for_models, as_random)


@rule(
    "efficiency/edges",
    "We observe a similar trend as node unlearning.",
    "Each of the paper's sentences on times has the same verdict for edge requests as for node "
    "requests.",
    limits=EVERY,
    noun="sentence",
)
def same_for_edges(nodes: Sequence[Claim], edges: Sequence[Claim]) -> Finding:
    """Compares verdicts."""
    return compared(nodes, edges, ("nodes", "edges"))
