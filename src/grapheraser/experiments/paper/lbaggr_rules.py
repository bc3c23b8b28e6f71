"""What the paper concludes about LBAggr, as rules on figures.

Each takes the figures, the label of LBAggr and that of the mean of the same shards: there are
several ways to read LBAggr, and each has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from grapheraser.experiments.framework.means import Mean, mean_of, signed
from grapheraser.experiments.framework.noise import Difference, all_of, paired
from grapheraser.experiments.framework.resolve import named
from grapheraser.experiments.framework.rules import MOST, Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import SCRATCH
from grapheraser.experiments.paper.utility_rules import Found, average, published_gain, up_to


def lbaggr_gains(found: Found, learned: str, base: str) -> dict[tuple[str, str, str], Difference]:
    """LBAggr minus another aggregation of the same shards."""
    return {
        key[:3]: paired(mean, found[*key[:3], base])
        for key, mean in found.items()
        if key[3] == learned and key[2] != SCRATCH and (*key[:3], base) in found
    }


@rule(
    "lbaggr/improves",
    "In general, LBAggr can effectively improve the F1 score in most cases compared to MeanAggr "
    "and MajAggr.",
    "Every data set, GNN and partition: LBAggr is better than both by at least 0.01, beyond noise.",
    limits=MOST,
)
def lbaggr_improves(found: Found, learned: str, mean: str) -> Finding:
    """Over the mean and over the vote."""
    over_mean, over_vote = (lbaggr_gains(found, learned, base) for base in (mean, "majority"))
    cases = [
        Case(named(*key), all_of([over_mean[key].above(), over_vote[key].above()]))
        for key in over_mean
        if key in over_vote
    ]
    return Finding(cases, f"LBAggr is {average(list(over_mean.values()))} against the mean.")


@rule(
    "lbaggr/majority-worst",
    "The MajAggr method performs the worst in most cases.",
    "Every data set, GNN and partition: mean and LBAggr are both better than the vote by at least "
    "0.01, beyond noise.",
    limits=MOST,
)
def majority_worst(found: Found, learned: str, mean: str) -> Finding:
    """Below both others."""
    by_mean, by_learned = (
        {key: -gap for key, gap in lbaggr_gains(found, "majority", base).items()}
        for base in (mean, learned)
    )
    cases = [
        Case(named(*key), all_of([by_mean[key].above(), by_learned[key].above()]))
        for key in by_mean
        if key in by_learned
    ]
    return Finding(cases, f"The mean is {average(list(by_mean.values()))} against the vote.")


def _group_gains(found: Found, learned: str, mean: str, part: int) -> dict[str, Mean]:
    """Gain of LBAggr over the mean by model or by partition, each run's own average."""
    by_group: dict[str, dict[int, list[float]]] = {}
    for key, value in found.items():
        base = found.get((*key[:3], mean))
        if key[3] != learned or key[2] == SCRATCH or base is None:
            continue
        theirs = dict(base.by_run)
        runs = by_group.setdefault(key[part], {})
        for run, score in value.by_run:
            if run in theirs:
                runs.setdefault(run, []).append(score - theirs[run])
    means = {
        name: mean_of({run: float(np.mean(gains)) for run, gains in runs.items()})
        for name, runs in by_group.items()
    }
    return {name: value for name, value in means.items() if value is not None}


def _told(gains: Mapping[str, Mean]) -> str:
    words = ", ".join(f"{name} {signed(gain.mean)}" for name, gain in gains.items())
    return f"Gain over the mean: {words}."


def _ahead(gains: Mapping[str, Mean], name: str, sign: int) -> bool | None:
    """Whether a group gains more (or, with -1, less) than each other, by 0.01 beyond noise."""
    gaps = [paired(gains[name], gain) for other, gain in gains.items() if other != name]
    return all_of((gap if sign > 0 else -gap).above() for gap in gaps)


@rule(
    "lbaggr/models",
    "Comparing different GNN models, GCN benefits the most while GIN benefits the least from "
    "LBAggr.",
    "GCN's gain over the mean is above that of each other GNN, GIN's below that of each other, "
    "by at least 0.01, beyond noise.",
    limits=(1.0, 0.5),
)
def lbaggr_by_model(found: Found, learned: str, mean: str) -> Finding:
    """Two cases: the most, and the least."""
    gains = _group_gains(found, learned, mean, 1)
    cases = [
        Case(words, _ahead(gains, name, sign))
        for words, name, sign in (("GCN the most", "gcn", 1), ("GIN the least", "gin", -1))
        if name in gains and len(gains) > 1
    ]
    return Finding(cases, _told(gains))


@rule(
    "lbaggr/partitions",
    "The GraphEraser-BLPA method benefits the most from LBAggr.",
    "BLPA's gain over the mean is above that of random shards and of BEKM, by at least 0.01, "
    "beyond noise.",
)
def lbaggr_by_partition(found: Found, learned: str, mean: str) -> Finding:
    """One case."""
    gains = _group_gains(found, learned, mean, 2)
    cases = [Case("BLPA the most", _ahead(gains, "blpa", 1))] if "blpa" in gains else []
    return Finding(cases if len(gains) > 1 else [], _told(gains))


def _lbaggr_up_to(found: Found, learned: str, mean: str, *, base: str, claimed: float) -> Finding:
    against = mean if base == "mean" else base
    gains = {
        named(*key): gap.over(found[*key, against].mean)
        for key, gap in lbaggr_gains(found, learned, against).items()
    }
    told = published_gain("{}/learned", f"{{}}/{base}", ("random", "blpa", "bekm"))
    return up_to(claimed, gains, told)


lbaggr_93 = rule(
    "lbaggr/93-percent",
    "Our proposed learning-based aggregation achieves up to 93% higher F1 score than that of the "
    "mean aggregation.",
    "The largest relative gain of LBAggr over the mean of the same shards is 93 % or more.",
)(partial(_lbaggr_up_to, base="mean", claimed=0.93))
lbaggr_112 = rule(
    "lbaggr/112-percent",
    "Our proposed learning-based aggregation achieves up to 112% higher F1 score than that of the "
    "majority vote aggregation.",
    "The largest relative gain of LBAggr over the vote of the same shards is 112 % or more.",
)(partial(_lbaggr_up_to, base="majority", claimed=1.12))
LBAGGR = (
    lbaggr_improves,
    majority_worst,
    lbaggr_by_model,
    lbaggr_by_partition,
    lbaggr_93,
    lbaggr_112,
)
