"""F1 for five balanced partition methods (table:baseline_utility)."""

from __future__ import annotations

from collections.abc import Mapping

from grapheraser.reports.tables import Entry, Table
from grapheraser_lab.experiments.partition_cost import METHODS
from grapheraser_lab.experiments.utility_rules import average
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import Summary, experiment
from grapheraser_lab.framework.f1_curves import draw_f1
from grapheraser_lab.framework.means import Mean, entry, run_rows
from grapheraser_lab.framework.noise import all_of, paired
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Claim, Finding, by_reading, rule
from grapheraser_lab.framework.shared_cells import f1_means, utility_groups

SIMILAR = 0.02
K_MEANS, OTHERS = ("bekm", "bekm-hungarian"), ("blpa", "blpa-lp", "metis")

# By data set, model and method.
Key = tuple[str, str, str]
Found = Mapping[Key, Mean]


def _pairs(found: Found) -> list[tuple[str, str]]:
    return list(dict.fromkeys(key[:2] for key in found))


def _best(found: Found, pair: tuple[str, str], names: tuple[str, ...]) -> Mean | None:
    there = [found[(*pair, name)] for name in names if (*pair, name) in found]
    return max(there, key=lambda mean: mean.mean, default=None)


@rule(
    "partitioners/k-means-best",
    "GraphEraser-BEKM and BEKM-Hungarian achieve the best model utility when the target model is "
    "GAT, GIN, and SAGE.",
    "Every data set with GAT, GIN and SAGE: the better of the two is above the best of BLPA, "
    "BLPA-LP and METIS by at least 0.01, beyond noise.",
)
def k_means_best(found: Found) -> Finding:
    """The best of each family."""
    gaps = {}
    for pair in _pairs(found):
        ours, theirs = _best(found, pair, K_MEANS), _best(found, pair, OTHERS)
        if pair[1] != "gcn" and ours is not None and theirs is not None:
            gaps[pair] = paired(ours, theirs)
    cases = [Case(named(*pair), gap.above()) for pair, gap in gaps.items()]
    return Finding(cases, f"The better one is {average(list(gaps.values()))} against the others.")


def _similar(found: Found, left: str, right: str) -> Finding:
    gaps = {
        pair: paired(found[(*pair, left)], found[(*pair, right)])
        for pair in _pairs(found)
        if (*pair, left) in found and (*pair, right) in found
    }
    cases = [Case(named(*pair), gap.within(SIMILAR)) for pair, gap in gaps.items()]
    return Finding(cases, f"{left} is {average(list(gaps.values()))} against {right}.")


@rule(
    "partitioners/hungarian-similar",
    "Comparing GraphEraser-BEKM and BEKM-Hungarian, we observe that they achieve similar model "
    "utility.",
    f"Every data set and GNN: they differ by at most {SIMILAR}.",
)
def hungarian_similar(found: Found) -> Finding:
    """BEKM and BEKM-Hungarian."""
    return _similar(found, "bekm", "bekm-hungarian")


@rule(
    "partitioners/lp-comparable",
    "GraphEraser-BLPA is more efficient than BLPA-LP while achieving comparable model utility.",
    f"Every data set and GNN: F1 differs by at most {SIMILAR} (times: partition-cost).",
)
def lp_comparable(found: Found) -> Finding:
    """BLPA and BLPA-LP."""
    return _similar(found, "blpa", "blpa-lp")


@rule(
    "partitioners/gcn-communities",
    "When the target model is GCN, GraphEraser-BLPA and BLPA-LP achieve a better model utility "
    "than METIS.",
    "Every data set with GCN: both are above METIS by at least 0.01, beyond noise.",
    noun="data set",
)
def gcn_communities(found: Found) -> Finding:
    """Both methods of label propagation."""
    gaps = {
        dataset: [
            paired(found[dataset, model, name], found[dataset, model, "metis"])
            for name in ("blpa", "blpa-lp")
            if (dataset, model, name) in found
        ]
        for dataset, model in _pairs(found)
        if model == "gcn" and (dataset, model, "metis") in found
    }
    cases = [Case(shown(d), all_of(gap.above() for gap in some)) for d, some in gaps.items()]
    told = average([some[0] for some in gaps.values() if some])
    return Finding(cases, f"BLPA is {told} against METIS.")


def methods(options: Options) -> tuple[str, ...]:
    """The paper's five, their second readings, and the user's own."""
    read = [f"{m}{suffix}" for suffix in options.how.suffixes.values() for m in K_MEANS]
    return tuple(dict.fromkeys((*METHODS, *read, *options.partitions)))


def _groups(options: Options) -> dict[Key, list[Cell]]:
    return utility_groups(options, methods(options))


@experiment(
    "partitioners", "F1 of the partition methods", "table:baseline_utility", "as utility", _groups
)
def summarise(options: Options, results: Results) -> Summary:
    """F1 beside the paper's; and with routing, where it is there."""
    columns = ("dataset", "model", "partition")
    label = options.how.chosen
    found = f1_means(results, _groups(options), options.chosen)
    rows = run_rows(found, columns, aggregation=label)
    tables = [_table(options, found, f"Micro F1 ({label})", True)]
    if "routed" in options.how.ours:
        routed = f1_means(results, _groups(options), options.how.ours["routed"])
        rows += run_rows(routed, columns, aggregation="routed")
        tables.append(_table(options, routed, "Micro F1 with routing (ours)", False))
    series = {shown(method): (method,) for method in methods(options)}
    return Summary(
        rows,
        tables,
        _claims(options, found),
        lambda: draw_f1(options, series, found, paper.PARTITIONERS.get),
    )


def _claims(options: Options, found: dict[Key, Mean]) -> list[Claim]:
    others = {key: mean for key, mean in found.items() if key[2] in OTHERS}
    readings: dict[str, dict[Key, Mean]] = {
        name: {
            (d, m, kind): found[d, m, kind + suffix]
            for d, m in _pairs(found)
            for kind in K_MEANS
            if (d, m, kind + suffix) in found
        }
        | others
        for name, suffix in options.how.suffixes.items()
    }
    read = [
        by_reading({n: judge(some) for n, some in readings.items()}, leads=options.how.leads)
        for judge in (k_means_best, hungarian_similar)
    ]
    rest = [judge(others) for judge in (lp_comparable, gcn_communities)]
    return [claim for some in (*read, *rest) for claim in some]


def _table(options: Options, found: Found, title: str, with_paper: bool) -> Table:
    rows = []
    for dataset, model in options.pairs:
        keys = [(dataset, model, method) for method in methods(options)]
        top = max((found[key].mean for key in keys if key in found), default=None)
        line: list[Entry | str] = [shown(dataset), shown(model)]
        for key in keys:
            item = entry(found.get(key), paper.PARTITIONERS.get(*key) if with_paper else None)
            line.append(item.as_best() if key in found and found[key].mean == top else item)
        rows.append(tuple(line))
    header = ("data set", "model", *(shown(method) for method in methods(options)))
    return Table(title, header, tuple(rows), "†, ▲ and ▼ as in utility. Bold: the best of the row.")
