"""Conclusions of the paper from its table of F1, as rules on figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.means import Mean, mean_of, signed
from grapheraser_lab.framework.noise import Difference, all_of, any_of, paired
from grapheraser_lab.framework.resolve import named
from grapheraser_lab.framework.rules import MOST, Case, Finding, rule
from grapheraser_lab.framework.shared_cells import SCRATCH

STRUCTURED = ("cora", "citeseer")
# Nearer to the most frequent class than the last, at least five of six answers are one label.
MUCH, COMPARABLE, NEARLY, TELLING = 0.05, 0.02, 0.03, 0.15

# By data set, model, partition and aggregation; scratch has the aggregation ``mean``.
Found = Mapping[tuple[str, str, str, str], Mean]


def pairs_of(found: Found) -> list[tuple[str, str]]:
    """Every data set and model that there is a figure of."""
    return list(dict.fromkeys((key[0], key[1]) for key in found))


def average(differences: Sequence[Difference]) -> str:
    """Their mean, in words."""
    if not differences:
        return "no figures"
    return f"{signed(float(np.mean([d.mean for d in differences])))} on average"


def _against(
    found: Found, one: Callable[[str], tuple[str, str]], other: tuple[str, str] = (SCRATCH, "mean")
) -> dict[tuple[str, str], Difference]:
    """A partition and aggregation, by model, minus another one: scratch by default."""
    return {
        pair: paired(found[*pair, *one(pair[1])], found[*pair, *other])
        for pair in pairs_of(found)
        if (*pair, *one(pair[1])) in found and (*pair, *other) in found
    }


def _over_random(found: Found, label: str) -> dict[tuple[str, str], Difference]:
    """The better of BLPA and BEKM minus random shards."""
    gaps = {}
    for dataset, model in pairs_of(found):
        random = found.get((dataset, model, "random", label))
        best = [
            found[key] for p in ("blpa", "bekm") if (key := (dataset, model, p, label)) in found
        ]
        if random is not None and best:
            gaps[dataset, model] = paired(max(best, key=lambda mean: mean.mean), random)
    return gaps


@rule(
    "utility/over-random",
    "On the Cora and Citeseer datasets, GraphEraser-BEKM and GraphEraser-BLPA can achieve a much "
    "better F1 score compared to the Random method.",
    f"Cora and Citeseer, every GNN: the better of BLPA and BEKM minus random shards is at least "
    f"{MUCH}, and above 0 beyond noise.",
)
def over_random(found: Found, label: str) -> Finding:
    """On the two graphs where structure matters."""
    gaps = {key: gap for key, gap in _over_random(found, label).items() if key[0] in STRUCTURED}
    cases = [Case(named(*key), gap.above(MUCH)) for key, gap in gaps.items()]
    return Finding(cases, f"The better one is {average(list(gaps.values()))} against random.")


@rule(
    "utility/random-comparable",
    "For the Pubmed, CS, and Physics datasets, the F1 score of the Random method is comparable to "
    "GraphEraser-BEKM and GraphEraser-BLPA.",
    f"Pubmed, CS and Physics, every GNN: the better of BLPA and BEKM and random shards differ by "
    f"at most {COMPARABLE}.",
)
def random_comparable(found: Found, label: str) -> Finding:
    """On the other three."""
    others = set(paper.DATASETS) - set(STRUCTURED)
    gaps = {key: gap for key, gap in _over_random(found, label).items() if key[0] in others}
    cases = [Case(named(*key), gap.within(COMPARABLE)) for key, gap in gaps.items()]
    return Finding(cases, f"The better one is {average(list(gaps.values()))} against random.")


@rule(
    "utility/comparable-to-scratch",
    "GraphEraser achieves comparable model utility with retraining from scratch.",
    f"Every data set and GNN, the paper's choice of partition (BLPA for GCN, BEKM for the others): "
    f"at most {NEARLY} below scratch.",
)
def comparable_to_scratch(found: Found, label: str, choice: Callable[[str], str]) -> Finding:
    """The method that the paper advises, against scratch."""
    ours = _against(found, lambda model: (choice(model), label))
    gaps = {key: -gap for key, gap in ours.items()}
    cases = [Case(named(*key), gap.at_most(NEARLY)) for key, gap in gaps.items()]
    return Finding(cases, f"Scratch is {average(list(gaps.values()))} against it.")


@rule(
    "utility/choice",
    "If the GNN follows the GCN structure, one can choose GraphEraser-BLPA, otherwise, one can "
    "adopt GraphEraser-BEKM.",
    "Every data set and GNN: the method that is advised is better than the other by at least 0.01, "
    "beyond noise.",
)
def choice_of_method(found: Found, label: str) -> Finding:
    """BLPA for GCN, BEKM for the others."""
    blpa = _against(found, lambda model: ("blpa", label), ("bekm", label))
    gaps = {key: gap if key[1].split(":")[0] == "gcn" else -gap for key, gap in blpa.items()}
    cases = [Case(named(*key), gap.above()) for key, gap in gaps.items()]
    return Finding(
        cases, f"The advised method is {average(list(gaps.values()))} against the other."
    )


@rule(
    "utility/above-scratch",
    "GraphEraser-BEKM performs slightly better than Scratch in some cases.",
    "In at least one case BEKM is above scratch beyond noise.",
)
def above_scratch(found: Found, label: str) -> Finding:
    """One case is enough."""
    gaps = _against(found, lambda model: ("bekm", label))
    if not gaps:
        return Finding([], "")
    best, gap = max(gaps.items(), key=lambda item: item[1].mean)
    case = Case("some case", any_of(gap.above(0.0) for gap in gaps.values()))
    return Finding([case], f"At best {gap}, {named(*best)}.")


def tells(mean: Mean) -> bool:
    """Tell whether a figure is far enough from the most frequent class to be a base of gains."""
    return not mean.collapsed and (mean.floor is None or mean.mean >= mean.floor + TELLING)


def up_to(claimed: float, gains: Mapping[str, Difference], published: str) -> Finding:
    """Tell whether the largest of some gains, as a share, is what the paper names."""
    if not gains:
        return Finding([], "")
    where, most = max(gains.items(), key=lambda item: item[1].mean)
    true = True if most.mean >= claimed else False if most.high < claimed else None
    told = f"At most {100 * most.mean:+.1f} % ({where}); the paper's own table: {published}."
    return Finding([Case(where, true)], told)


def published_gain(one: str, other: str, partitions: Sequence[str]) -> str:
    """The largest gain in the paper's table, with where it is."""
    values = paper.UTILITY.values
    gains = {}
    for dataset in paper.DATASETS:
        for model in paper.MODELS:
            for partition in partitions:
                high = values[dataset, model, one.format(partition)]
                low = values[dataset, model, other.format(partition)]
                gains[named(dataset, model, partition)] = high.mean / low.mean - 1
    where = max(gains, key=gains.__getitem__)
    return f"{100 * gains[where]:+.1f} % ({where})"


@rule(
    "utility/62.5-percent",
    "GraphEraser achieves up to 62.5% higher F1 score than that of random partitioning.",
    "The largest relative gain of BLPA or BEKM over random shards is 62.5 % or more, among cells "
    f"where random shards are at least {TELLING} above the most frequent class.",
)
def most_over_random(found: Found, label: str) -> Finding:
    """The abstract's figure."""
    gains = {}
    for dataset, model, partition, aggregation in found:
        random = found.get((dataset, model, "random", label))
        if random is None or not tells(random):
            continue
        if partition in ("blpa", "bekm") and aggregation == label:
            ours = found[dataset, model, partition, label]
            gains[named(dataset, model, partition)] = paired(ours, random).over(random.mean)
    told = published_gain("{}/learned", "random/learned", ("blpa", "bekm"))
    return up_to(0.625, gains, told)


@rule(
    "utility/closest-to-scratch",
    "Weighing the shards node by node (routed), or pooling them with closed-form members, nearly "
    "closes the gap to training from scratch.",
    f"Every data set and GNN: at most {NEARLY} below scratch.",
    ours=True,
)
def closest_to_scratch(found: Found, partition: str, label: str) -> Finding:
    """This project's way."""
    ours = _against(found, lambda model: (partition, label))
    gaps = {key: -gap for key, gap in ours.items()}
    cases = [Case(named(*key), gap.at_most(NEARLY)) for key, gap in gaps.items()]
    told = f"{partition} / {label}: scratch is {average(list(gaps.values()))} against it."
    return Finding(cases, told)


# -- what the paper concludes about LBAggr, as rules on figures ---------------------------------


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
    """Tell if a group gains more (or, with -1, less) than each other, by 0.01 beyond noise."""
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
    "BLPA's gain over the mean is above 0, and above that of random shards and of BEKM, by at "
    "least 0.01, beyond noise.",
)
def lbaggr_by_partition(found: Found, learned: str, mean: str) -> Finding:
    """One case."""
    gains = _group_gains(found, learned, mean, 2)
    cases = []
    if "blpa" in gains:
        own = Difference(gains["blpa"].mean, gains["blpa"].error, max(0, gains["blpa"].runs - 1))
        cases = [Case("BLPA the most", all_of([own.above(0.0), _ahead(gains, "blpa", 1)]))]
    return Finding(cases if len(gains) > 1 else [], _told(gains))


def _lbaggr_up_to(found: Found, learned: str, mean: str, *, base: str, claimed: float) -> Finding:
    against = mean if base == "mean" else base
    gains = {
        named(*key): gap.over(found[*key, against].mean)
        for key, gap in lbaggr_gains(found, learned, against).items()
        if tells(found[*key, against])
    }
    told = published_gain("{}/learned", f"{{}}/{base}", ("random", "blpa", "bekm"))
    return up_to(claimed, gains, told)


lbaggr_93 = rule(
    "lbaggr/93-percent",
    "Our proposed learning-based aggregation achieves up to 93% higher F1 score than that of the "
    "mean aggregation.",
    "The largest relative gain of LBAggr over the mean of the same shards is 93 % or more, among "
    f"cells where the mean is at least {TELLING} above the most frequent class.",
)(partial(_lbaggr_up_to, base="mean", claimed=0.93))
lbaggr_112 = rule(
    "lbaggr/112-percent",
    "Our proposed learning-based aggregation achieves up to 112% higher F1 score than that of the "
    "majority vote aggregation.",
    "The largest relative gain of LBAggr over the vote of the same shards is 112 % or more, among "
    f"cells where the vote is at least {TELLING} above the most frequent class.",
)(partial(_lbaggr_up_to, base="majority", claimed=1.12))
LBAGGR = (
    lbaggr_improves,
    majority_worst,
    lbaggr_by_model,
    lbaggr_by_partition,
    lbaggr_93,
    lbaggr_112,
)
