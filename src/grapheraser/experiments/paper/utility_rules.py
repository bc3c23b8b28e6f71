"""What the paper concludes from its table of F1, as rules on figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from grapheraser.experiments.framework.means import Mean, signed
from grapheraser.experiments.framework.noise import Difference, any_of, paired
from grapheraser.experiments.framework.resolve import named
from grapheraser.experiments.framework.rules import Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import SCRATCH
from grapheraser.experiments.paper import published as paper

STRUCTURED = ("cora", "citeseer")
MUCH, COMPARABLE, NEARLY = 0.05, 0.02, 0.03

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
    gaps = {}
    for dataset, model in pairs_of(found):
        ours = found.get((dataset, model, choice(model), label))
        scratch = found.get((dataset, model, SCRATCH, "mean"))
        if ours is not None and scratch is not None:
            gaps[dataset, model] = paired(scratch, ours)
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
    gaps = {}
    for dataset, model in pairs_of(found):
        blpa, bekm = (found.get((dataset, model, p, label)) for p in ("blpa", "bekm"))
        if blpa is not None and bekm is not None:
            gap = paired(blpa, bekm)
            gaps[dataset, model] = gap if model.split(":")[0] == "gcn" else -gap
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
    gaps = {}
    for dataset, model in pairs_of(found):
        bekm = found.get((dataset, model, "bekm", label))
        scratch = found.get((dataset, model, SCRATCH, "mean"))
        if bekm is not None and scratch is not None:
            gaps[dataset, model] = paired(bekm, scratch)
    if not gaps:
        return Finding([], "")
    best, gap = max(gaps.items(), key=lambda item: item[1].mean)
    case = Case("some case", any_of(gap.above(0.0) for gap in gaps.values()))
    return Finding([case], f"At best {gap}, {named(*best)}.")


def up_to(claimed: float, gains: Mapping[str, Difference], published: str) -> Finding:
    """Whether the largest of some gains, as a share, is what the paper names."""
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
    "The largest relative gain of BLPA or BEKM over random shards is 62.5 % or more.",
)
def most_over_random(found: Found, label: str) -> Finding:
    """The abstract's figure."""
    gains = {}
    for dataset, model, partition, aggregation in found:
        random = found.get((dataset, model, "random", label))
        if partition in ("blpa", "bekm") and aggregation == label and random is not None:
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
    gaps = {}
    for dataset, model in pairs_of(found):
        ours = found.get((dataset, model, partition, label))
        scratch = found.get((dataset, model, SCRATCH, "mean"))
        if ours is not None and scratch is not None:
            gaps[dataset, model] = paired(scratch, ours)
    cases = [Case(named(*key), gap.at_most(NEARLY)) for key, gap in gaps.items()]
    told = f"{partition} / {label}: scratch is {average(list(gaps.values()))} against it."
    return Finding(cases, told)
