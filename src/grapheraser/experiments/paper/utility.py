"""F1 from scratch and for every partition and aggregation (table:node_unlearning_utility)."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    judged,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import Mean, beyond, entry, gained, signed, tidy
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import (
    SCRATCH,
    every_cell,
    f1_means,
    utility_cells,
)
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import plural

STRUCTURED = ("cora", "citeseer")
COMPARABLE = 0.02

Key = tuple[str, str, str, str]


def _groups(options: Options) -> dict[tuple[str, str, str], list[Cell]]:
    return {
        (dataset, model, partition): utility_cells(options, dataset, model, partition)
        for dataset, model in options.pairs
        for partition in (SCRATCH, *options.main_partitions)
    }


def cells(options: Options) -> list[Cell]:
    """Scratch and every partition, for all data sets, models and runs."""
    return every_cell(_groups(options))


def means(options: Options, results: Results) -> dict[Key, Mean]:
    """By data set, model, partition and aggregation (scratch has ``mean``)."""
    groups = _groups(options)
    by_label = {
        label: f1_means(results, groups, text) for label, text in options.aggregation_names.items()
    }
    return {
        (*key, label): by_label[label][key]
        for key in groups
        for label in (["mean"] if key[2] == SCRATCH else by_label)
        if key in by_label[label]
    }


def summarise(options: Options, results: Results) -> Summary:
    """Two tables (the paper's aggregations, ours), bars, and the paper's conclusions."""
    found = means(options, results)
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(dataset),
            "model": shown(model),
            "partition": partition,
            "aggregation": "" if partition == SCRATCH else label,
            **tidy(value, paper.utility(dataset, model, partition, label)),
        }
        for (dataset, model, partition, label), value in found.items()
    ]
    tables = [_table(options, found, tuple(options.how.aggregations), "Micro F1")]
    ours = (*options.how.ours, *options.aggregations)
    if ours:
        tables.append(_table(options, found, ours, "Micro F1 with aggregations beside the paper's"))
    return Summary(rows, tables, _claims(options, found), lambda: _figure(options, found))


def _table(options: Options, found: dict[Key, Mean], labels: tuple[str, ...], title: str) -> Table:
    partitions = options.main_partitions
    header = ["data set", "model", "scratch"]
    header += [f"{shown(p)} / {shown(label)}" for p in partitions for label in labels]
    rows = []
    for dataset, model in options.pairs:
        scratch = (dataset, model, SCRATCH, "mean")
        line: list[Entry | str] = [shown(dataset), shown(model)]
        line.append(entry(found.get(scratch), paper.utility(*scratch)))
        keys = [(dataset, model, p, label) for p in partitions for label in labels]
        top = max((found[key].mean for key in keys if key in found), default=None)
        for key in keys:
            item = entry(found.get(key), paper.utility(*key))
            line.append(item.as_best() if key in found and found[key].mean == top else item)
        rows.append(tuple(line))
    note = (
        "Mean ± standard deviation over the runs. Below: the paper's figure and the difference; "
        "▲ and ▼ mark differences of more than two standard deviations and 0.01. "
        "Bold: the best of the row apart from scratch."
    )
    return Table(title, tuple(header), tuple(rows), note)


def _figure(options: Options, found: dict[Key, Mean]) -> Any:
    learned = "learned" if "learned" in options.how.aggregations else "mean"
    series = {SCRATCH: (SCRATCH, "mean")}
    series |= {f"{shown(p)} / {learned}": (p, learned) for p in options.main_partitions}
    last = list(options.how.ours)[-1]
    where = "metis" if "metis" in options.main_partitions else "blpa"
    for partition in dict.fromkeys((options.main_partitions[0], where)):
        series[f"{last} / {shown(partition)}"] = (partition, last)
    return draw_f1(options, series, found, paper.utility)


def _claims(options: Options, found: dict[Key, Mean]) -> list[Claim]:
    by_way: dict[str, list[float]] = {}
    for (dataset, model, partition, label), value in found.items():
        scratch = found.get((dataset, model, SCRATCH, "mean"))
        if label in options.how.ours and label.startswith("routed") and scratch is not None:
            by_way.setdefault(f"{partition} / {label}", []).append(value.mean / scratch.mean)
    way, ratios = max(by_way.items(), key=lambda item: float(np.mean(item[1])), default=("", []))
    return [
        *_random_claims(options, found),
        *_aggregation_claims(options, found),
        *_choice_claims(options, found),
        *judged_claim(
            "Weighting the shards per node (routed) nearly closes the gap to scratch.",
            [ratio >= 0.97 for ratio in ratios],
            lambda _: (
                f"Best way {way}: {np.mean(ratios):.3f} of scratch on average, {min(ratios):.3f} "
                "at least."
            ),
            ours=True,
        ),
    ]


def _random_claims(options: Options, found: dict[Key, Mean]) -> list[Claim]:
    """Where the structure matters, BLPA and BEKM beat random; elsewhere random is as good."""
    inside, outside = [], []
    for dataset, model in options.pairs:
        random = found.get((dataset, model, "random", "learned"))
        best = [found.get((dataset, model, p, "learned")) for p in ("blpa", "bekm")]
        known = [value for value in best if value is not None]
        if random is not None and known:
            top = max(known, key=lambda value: value.mean)
            gap = top.mean - random.mean
            if dataset in STRUCTURED:
                inside.append((gap, gap > 0 and beyond(top, random)))
            elif dataset in paper.DATASETS:
                outside.append((gap, gap <= COMPARABLE))

    def mean(gaps: list[tuple[float, bool]]) -> str:
        return signed(float(np.mean([gap for gap, _ in gaps])))

    return [
        *judged_claim(
            "On Cora and Citeseer the better of BLPA and BEKM has a much better F1 than random "
            "shards (LBAggr).",
            [better for _, better in inside],
            lambda count: f"Better beyond noise in {count}; {mean(inside)} on average.",
        ),
        *judged_claim(
            "On Pubmed, CS and Physics random shards are about as good as BLPA and BEKM.",
            [comparable for _, comparable in outside],
            lambda count: (
                f"Within {COMPARABLE} in {count}; the better of BLPA and BEKM is {mean(outside)} "
                "on average."
            ),
        ),
    ]


def _aggregation_claims(options: Options, found: dict[Key, Mean]) -> list[Claim]:
    partitions = [p for p in ("random", "blpa", "bekm") if p in options.main_partitions]
    lines: list[tuple[str, str, float, float, float]] = []
    for dataset, model in options.pairs:
        for partition in partitions:
            mean, majority, learned = (
                found.get((dataset, model, partition, label))
                for label in ("mean", "majority", "learned")
            )
            if mean is not None and majority is not None and learned is not None:
                lines.append((model, partition, mean.mean, majority.mean, learned.mean))
    most: dict[str, Any] = {"holds": 0.6, "partly": 0.35}
    claims = [
        *judged_claim(
            "LBAggr improves F1 over mean and majority in most cases.",
            [learned > max(mean, majority) for _, _, mean, majority, learned in lines],
            lambda count: (
                f"Better than both in {count}; "
                f"{signed(float(np.mean([line[4] - line[2] for line in lines])))} over the mean "
                "on average."
            ),
            **most,
        ),
        *judged_claim(
            "Majority voting is the worst of the three in most cases.",
            [majority <= min(mean, learned) for _, _, mean, majority, learned in lines],
            lambda count: f"Worst in {count}.",
            **most,
        ),
    ]
    by_model, by_partition = _gains(lines, 0), _gains(lines, 1)
    if len(by_model) > 1:
        order = sorted(by_model, key=by_model.__getitem__)
        claims += judged_claim(
            "GCN gains the most from LBAggr, GIN the least.",
            [order[-1] == "gcn", order[0] == "gin"],
            lambda _: _told({shown(m).upper(): gain for m, gain in by_model.items()}),
            partly=0.5,
        )
    if len(by_partition) > 1:
        claims += judged_claim(
            "BLPA gains the most from LBAggr.",
            [max(by_partition, key=by_partition.__getitem__) == "blpa"],
            lambda _: _told(by_partition),
        )
    return claims


def _told(gains: dict[str, float]) -> str:
    words = ", ".join(f"{name} {signed(gain)}" for name, gain in gains.items())
    return f"Gain over the mean: {words}."


def _gains(lines: list[Any], column: int) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for line in lines:
        groups.setdefault(line[column], []).append(line[4] - line[2])
    return {name: float(np.mean(gains)) for name, gains in groups.items()}


def _choice_claims(options: Options, found: dict[Key, Mean]) -> list[Claim]:
    chosen, leads = [], []
    for dataset, model in options.pairs:
        blpa, bekm, scratch = (
            found.get((dataset, model, *where))
            for where in (("blpa", "learned"), ("bekm", "learned"), (SCRATCH, "mean"))
        )
        lead, gap = gained(blpa, bekm), gained(bekm, scratch)
        if lead is not None:
            chosen.append((lead > 0) == (model == "gcn"))
        if gap is not None:
            leads.append((gap, f"{shown(dataset)} {shown(model).upper()}"))
    claims = judged_claim(
        "BLPA is the better choice for GCN, BEKM for the other models.",
        chosen,
        lambda count: f"True in {count}.",
    )
    if leads:
        above, (best, where) = sum(gap > 0 for gap, _ in leads), max(leads)
        claims.append(
            Claim(
                "BEKM with LBAggr is sometimes slightly better than training from scratch.",
                judged(int(above > 0), 1),
                f"Above scratch in {above} of {plural(len(leads), 'case')}; at best "
                f"{signed(best)} ({where}).",
            )
        )
    return claims


register(
    Experiment(
        "utility",
        "F1 of every partition and aggregation",
        "table:node_unlearning_utility",
        "Cora and Citeseer half a minute a run, all five data sets about 15 min",
        cells,
        summarise,
    )
)
