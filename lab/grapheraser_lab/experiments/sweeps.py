"""Sweeps of one parameter: the size limit of a shard, and how much is forgotten or missing.

figure:delta, figure:unlearning_adaptive, figure:dependent_unlearning and figure:gap of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping

from grapheraser.reports.tables import Table
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Results
from grapheraser_lab.framework.f1_curves import (
    DROP,
    Line,
    along,
    drops,
    lines_of,
    little_lost,
    percent,
)
from grapheraser_lab.framework.means import Mean, mean_of, pearson
from grapheraser_lab.framework.noise import Difference, all_of, any_of, paired
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import MOST, Case, Finding, rule
from grapheraser_lab.framework.sweep import Groups, More, Sweep

# -- the size limit of a shard: delta = ceil(n/k) + gamma (n - ceil(n/k)) -----------------------

SLIGHT = 0.03


@rule(
    "delta/slight",
    "In general, we observe that delta only has a slight impact on the model utility.",
    f"Every data set, GNN and partition: at every gamma F1 is within {SLIGHT} of that at gamma 0.",
)
def slight(found: Line) -> Finding:
    """All gammas of a line together are one case."""
    cases, widest = [], 0.0
    for line in lines_of(found):
        curve = dict(along(found, *line))
        if 0.0 in curve and len(curve) > 1:
            gaps = [paired(mean, curve[0.0]) for gamma, mean in curve.items() if gamma]
            widest = max(widest, *(abs(gap.mean) for gap in gaps))
            cases.append(Case(named(*line), all_of(gap.within(SLIGHT) for gap in gaps)))
    return Finding(cases, f"At most {widest:.3f} from gamma 0.")


def two_models(options: Options) -> tuple[str, ...]:
    """The paper does not say which model; the cheapest two tell enough."""
    chosen = tuple(model for model in ("gcn", "gin") if model in options.models)
    return chosen or options.models[:1]


Sweep(
    "delta",
    "The size limit of a shard",
    "figure:delta",
    "Cora and Citeseer half a minute a run, all five data sets 15 min a run",
    axis="gamma",
    places=(0.0, 0.1, 0.25, 0.5, 0.75, 1.0),
    cell=lambda kind, gamma: {"gamma": gamma},
    lines=lambda options: (
        (dataset, model, method)
        for dataset in options.datasets
        for model in two_models(options)
        for method in ("bekm", "bekm-free", "blpa")
        if method in options.main_partitions
    ),
    heading="Micro F1 ({}) by gamma",
    xlabel="gamma",
    judges=(slight,),
    models=two_models,
).register()


# -- a growing share of nodes forgotten, uniformly or not ---------------------------------------


@rule(
    "robustness/ten-percent",
    "The F1 scores of GraphEraser do not drop significantly in most of the settings when the ratio "
    "of unlearned nodes is less than 10%.",
    f"Every data set, GNN and kind of request: after 5 % F1 is at most {DROP} lower.",
    limits=MOST,
)
def ten_percent(found: Line) -> Finding:
    """Against nothing forgotten, run by run."""
    return little_lost(found, 0.0, (0.05,), percent)


@rule(
    "robustness/half",
    "When a larger ratio of nodes are deleted, we do observe utility degradation in certain cases "
    "(GCN trained on Pubmed, from 0.72 to 0.56 at 50%).",
    f"In at least one case F1 is lower by at least {DROP} after 50 %, beyond noise.",
)
def half_costs(found: Line) -> Finding:
    """One case is enough."""
    lost = drops(found, 0.0, (0.5,))
    if not lost:
        return Finding([], "")
    where, worst = max(lost.items(), key=lambda item: item[1].mean)
    told = f"The largest drop: {worst}, {named(*where[:3])}."
    there = [v for k, v in lost.items() if k[:2] == ("pubmed", "gcn") and "non" not in k[2]]
    if there:
        was, became = paper.ROBUSTNESS_PUBMED_GCN
        told += f" GCN on Pubmed, uniform: {there[0]}; the paper {was - became:+.2f}."
    return Finding([Case("some case", any_of(gap.above(DROP) for gap in lost.values()))], told)


@rule(
    "robustness/distribution",
    "The distributions of the deletion do not significantly affect the robustness.",
    f"Every data set, GNN and share: uniform and non-uniform requests differ by at most {DROP}.",
)
def distribution(found: Line) -> Finding:
    """Compare one method under both."""
    gaps = {}
    for (d, m, series, share), mean in found.items():
        other = found.get((d, m, series.replace("non-uniform", "uniform"), share))
        if series.endswith("non-uniform") and share and other is not None:
            gaps[d, m, series.split(",")[0], share] = paired(other, mean)
    cases = [Case(named(*k[:3], percent(k[3])), gap.within(DROP)) for k, gap in gaps.items()]
    worst = max(gaps.values(), key=lambda gap: abs(gap.mean), default=None)
    return Finding(cases, f"The largest difference: {worst}.")


Sweep(
    "robustness",
    "Forgetting a growing share of the nodes",
    "figure:unlearning_adaptive",
    "Cora and Citeseer 1 min a run, with Pubmed 4 min",
    axis="deleted",
    places=(0.0, 0.05, 0.1, 0.2, 0.3, 0.5),
    kinds={"uniform": ", uniform", "large": ", non-uniform"},
    cell=lambda where, share: {
        "forget": {"what": "nodes", "share": share, "where": where} if share else None
    },
    heading="Micro F1 after a share of the training nodes was forgotten ({})",
    note="Non-uniform: all from the larger half of the shards. † collapsed.",
    tell=percent,
    xlabel="forgotten nodes (%)",
    scale=100,
    judges=(ten_percent, half_costs, distribution),
    datasets=("citeseer", "cora", "pubmed"),
).register()


# -- requests from one random community of label propagation a run ------------------------------

FEW = 0.25


@rule(
    "community/f1",
    "Deleting nodes from a single community does not significantly affect the model utility of "
    "GraphEraser.",
    f"Every data set and GNN: once a whole community is forgotten, F1 is at most {DROP} lower.",
)
def community_f1(found: Line) -> Finding:
    """Against nothing forgotten, run by run."""
    return little_lost(found, 0.0, (1.0,), percent)


@rule(
    "community/few-shards",
    "When the community-dependent requests come, only a few shard models need to be retrained.",
    f"Every data set and partition: a whole community of at least 20 nodes touches at most "
    f"{100 * FEW:.0f} % of the shards.",
)
def few_shards(touched: Mapping[tuple[str, str], Mean]) -> Finding:
    """Share of the shards by data set and partition, over runs."""
    gaps = {key: Difference(mean.mean, mean.error, mean.runs - 1) for key, mean in touched.items()}
    cases = [Case(named(*key), gap.at_most(FEW)) for key, gap in gaps.items()]
    told = ", ".join(f"{named(*key)} {100 * mean.mean:.0f} %" for key, mean in touched.items())
    return Finding(cases, f"Touched: {told}.")


def _touched(options: Options, results: Results, groups: Groups, known: Line) -> More:
    """Share of the shards that a whole community touches, by data set and partition."""
    del options, known
    found: dict[tuple[str, str], dict[int, float | None]] = {}
    for (dataset, _, method, share), group in groups.items():
        for cell in group if share == 1.0 else []:
            value = results.value(cell)
            if value is not None and "shards_touched" in value:
                runs = found.setdefault((dataset, method), {})
                runs[int(cell["seed"])] = value["shards_touched"] / len(value["sizes"])
    means = {key: mean for key, runs in found.items() if (mean := mean_of(runs)) is not None}
    table = Table(
        "Shards that a whole community touches",
        ("data set", "partition", "share of the shards"),
        tuple((*map(shown, key), f"{100 * mean.mean:.0f} %") for key, mean in means.items()),
    )
    return More(after=[table], claims=few_shards(means))


Sweep(
    "community",
    "Requests from one community",
    "figure:dependent_unlearning",
    "Cora and Citeseer half a minute a run",
    axis="deleted",
    places=(0.0, 0.25, 0.5, 0.75, 1.0),
    cell=lambda kind, share: {"forget": {"what": "community", "share": share} if share else None},
    heading="Micro F1 ({}) by the forgotten share of a community",
    tell=percent,
    xlabel="of the community (%)",
    scale=100,
    judges=(community_f1,),
    more=_touched,
).register()


# -- edges taken out of the training graph: the gain over random shards -------------------------

RANDOM = "random"


@rule(
    "structure/gain",
    "When the graph structure is more important, the utility improvement of GraphEraser over "
    "Random is more significant in most of the cases.",
    "Every data set, GNN and partition: the correlation of the gain over random shards with the "
    "share of deleted edges is negative, beyond noise over the runs.",
    limits=MOST,
)
def more_with_structure(correlations: Mapping[tuple[str, str, str], Mean]) -> Finding:
    """Pearson's correlation of each run."""
    falls = {
        k: Difference(-r.mean, r.error, max(0, r.runs - 1), (r.collapsed, False))
        for k, r in correlations.items()
    }
    cases = [Case(named(*key), fall.above(0.0)) for key, fall in falls.items()]
    if not cases:
        return Finding([], "")
    average = sum(r.mean for r in correlations.values()) / len(correlations)
    return Finding(cases, f"The correlation is {average:.2f} on average.")


def gains_of(found: Line) -> Line:
    """F1 over that of random shards of the same run; collapsed where the method is."""
    gains = {}
    for (dataset, model, method, share), ours in found.items():
        random = found.get((dataset, model, RANDOM, share))
        if method == RANDOM or random is None:
            continue
        theirs = dict(random.by_run)
        by_run = {run: value - theirs[run] for run, value in ours.by_run if run in theirs}
        gain = mean_of(by_run, collapsed=ours.collapsed)
        if gain is not None:
            gains[dataset, model, method, share] = gain
    return gains


def correlations_of(gains: Line) -> dict[tuple[str, str, str], Mean]:
    """Return correlations of the gain with the share of deleted edges, run by run."""
    found = {}
    for line in lines_of(gains):
        by_run: dict[int, list[tuple[float, float]]] = {}
        for share, mean in along(gains, *line):
            for run, gain in mean.by_run:
                by_run.setdefault(run, []).append((share, gain))
        known = {
            run: pearson([x for x, _ in points], [y for _, y in points])
            for run, points in by_run.items()
        }
        gone = any(mean.collapsed for _, mean in along(gains, *line))
        mean_r = mean_of(known, collapsed=gone)
        if mean_r is not None:
            found[line] = mean_r
    return found


def _correlations(options: Options, results: Results, groups: Groups, known: Line) -> More:
    del results, groups
    correlations = correlations_of(known)
    titles = {}
    for dataset, model in options.pairs:
        words = [
            f"{shown(s)} {r.mean:.2f}"
            for (d, m, s), r in correlations.items()
            if (d, m) == (dataset, model)
        ]
        told = ",\n".join(", ".join(words[at : at + 2]) for at in range(0, len(words), 2))
        titles[dataset, model] = f"{shown(dataset)}, {shown(model).upper()}; r:\n{told}"
    table = Table(
        "Pearson correlation of the gain with the share of deleted edges",
        ("data set", "model", "method", "correlation"),
        tuple((*map(shown, line), str(r)) for line, r in correlations.items()),
        "Negative: the more structure is left, the more BLPA or BEKM gains over random shards. "
        "Mean and standard deviation over the runs; † collapsed at one share or more.",
    )
    return More(before=[table], titles=titles)


def _with_random(options: Options) -> list[tuple[str, str, str]]:
    known = (RANDOM, "blpa", "bekm", "bekm-free")
    there = [method for method in known if method in options.main_partitions]
    methods = dict.fromkeys((*there, *options.partitions))
    return [(*pair, method) for pair in options.pairs for method in methods]


Sweep(
    "structure",
    "Deleting 0 to 90 % of the edges",
    "figure:gap",
    "Cora and Citeseer 4 min a run",
    axis="deleted",
    places=tuple(round(0.1 * step, 1) for step in range(10)),
    cell=lambda kind, share: {"drop_edges": share},
    lines=_with_random,
    curves=gains_of,
    more=_correlations,
    heading="Gain in F1 over random shards ({})",
    tell=percent,
    xlabel="deleted edges (%)",
    scale=100,
    ylabel="gain in F1",
    value="gain",
    judges=(lambda gains: more_with_structure(correlations_of(gains)),),
    datasets=("cora", "citeseer"),
).register()
