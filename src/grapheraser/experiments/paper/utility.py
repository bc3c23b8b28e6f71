"""F1 from scratch and for every partition and aggregation (table:node_unlearning_utility)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    counted,
    judged,
    register,
)
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import Mean, beyond, entry, gained, signed, tidy
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import SCRATCH, f1, utility_cells
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.tables import Entry, Table

STRUCTURED = ("cora", "citeseer")
COMPARABLE = 0.02

Key = tuple[str, str, str, str]


def cells(options: Options) -> list[Cell]:
    """Scratch and every partition, for all data sets, models and runs."""
    return [cell for *_, group in _groups(options) for cell in group]


def _groups(options: Options) -> Iterator[tuple[str, str, str, list[Cell]]]:
    for dataset in options.datasets:
        for model in options.models:
            for partition in (SCRATCH, *options.main_partitions):
                yield dataset, model, partition, utility_cells(options, dataset, model, partition)


def means(options: Options, results: Results) -> dict[Key, Mean]:
    """By data set, model, partition and aggregation (scratch has ``mean``)."""
    found: dict[Key, Mean] = {}
    for dataset, model, partition, group in _groups(options):
        named = {"mean": "mean"} if partition == SCRATCH else options.aggregation_names
        for label, text in named.items():
            value = f1(results, group, text)
            if value is not None:
                found[dataset, model, partition, label] = value
    return found


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
    for dataset in options.datasets:
        for model in options.models:
            line: list[Entry | str] = [shown(dataset), shown(model)]
            line.append(
                entry(
                    found.get((dataset, model, SCRATCH, "mean")),
                    paper.utility(dataset, model, SCRATCH, "mean"),
                )
            )
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
    pairs = [(d, m) for d in options.datasets for m in options.models]
    claims = [
        *_random_claims(pairs, found),
        *_aggregation_claims(options, pairs, found),
        *_choice_claims(pairs, found),
    ]
    routed = [
        (found[d, m, p, label].mean / found[d, m, SCRATCH, "mean"].mean, p, label)
        for d, m in pairs
        if (d, m, SCRATCH, "mean") in found
        for p in options.main_partitions
        for label in options.how.ours
        if label.startswith("routed") and (d, m, p, label) in found
    ]
    if routed:
        by_way: dict[str, list[float]] = {}
        for ratio, partition, label in routed:
            by_way.setdefault(f"{partition} / {label}", []).append(ratio)
        way, ratios = max(by_way.items(), key=lambda item: float(np.mean(item[1])))
        mean = float(np.mean(ratios))
        claims.append(
            Claim(
                "Weighting the shards per node (routed) nearly closes the gap to scratch.",
                judged(sum(r >= 0.97 for r in ratios), len(ratios)),
                f"Best way {way}: {mean:.3f} of scratch on average, {min(ratios):.3f} at least.",
                ours=True,
            )
        )
    return claims


def _random_claims(pairs: list[tuple[str, str]], found: dict[Key, Mean]) -> list[Claim]:
    """Where the structure matters, BLPA and BEKM beat random; elsewhere random is as good."""
    gaps = []
    for dataset, model in pairs:
        random = found.get((dataset, model, "random", "learned"))
        best = [found.get((dataset, model, p, "learned")) for p in ("blpa", "bekm")]
        known = [value for value in best if value is not None]
        if random is not None and known:
            top = max(known, key=lambda value: value.mean)
            gap = top.mean - random.mean
            gaps.append((dataset, model, gap, gap > 0 and beyond(top, random)))
    claims = []
    inside = [gap for gap in gaps if gap[0] in STRUCTURED]
    outside = [gap for gap in gaps if gap[0] in paper.DATASETS and gap[0] not in STRUCTURED]
    if inside:
        good = sum(better for *_, better in inside)
        mean = float(np.mean([gap for _, _, gap, _ in inside]))
        claims.append(
            Claim(
                "On Cora and Citeseer the better of BLPA and BEKM has a much better F1 than random "
                "shards (LBAggr).",
                judged(good, len(inside)),
                f"Better beyond noise in {counted(good, len(inside), 'cases')}; "
                f"{signed(mean)} on average.",
            )
        )
    if outside:
        good = sum(gap <= COMPARABLE for _, _, gap, _ in outside)
        mean = float(np.mean([gap for _, _, gap, _ in outside]))
        claims.append(
            Claim(
                "On Pubmed, CS and Physics random shards are about as good as BLPA and BEKM.",
                judged(good, len(outside)),
                f"Within {COMPARABLE} in {counted(good, len(outside), 'cases')}; the better of "
                f"BLPA and BEKM is {signed(mean)} on average.",
            )
        )
    return claims


def _aggregation_claims(
    options: Options, pairs: list[tuple[str, str]], found: dict[Key, Mean]
) -> list[Claim]:
    partitions = [p for p in ("random", "blpa", "bekm") if p in options.main_partitions]
    lines: list[tuple[str, str, float, float, float]] = []
    for dataset, model in pairs:
        for partition in partitions:
            mean, majority, learned = (
                found.get((dataset, model, partition, label))
                for label in ("mean", "majority", "learned")
            )
            if mean is not None and majority is not None and learned is not None:
                lines.append((model, partition, mean.mean, majority.mean, learned.mean))
    if not lines:
        return []
    total = len(lines)
    better = sum(line[4] > max(line[2], line[3]) for line in lines)
    worst = sum(line[3] <= min(line[2], line[4]) for line in lines)
    gain = float(np.mean([line[4] - line[2] for line in lines]))
    claims = [
        Claim(
            "LBAggr improves F1 over mean and majority in most cases.",
            judged(better, total, holds=0.6, partly=0.35),
            f"Better than both in {counted(better, total, 'cases')}; "
            f"{signed(gain)} over the mean on average.",
        ),
        Claim(
            "Majority voting is the worst of the three in most cases.",
            judged(worst, total, holds=0.6, partly=0.35),
            f"Worst in {counted(worst, total, 'cases')}.",
        ),
    ]
    by_model = _gains(lines, 0)
    if len(by_model) > 1:
        most, least = (
            max(by_model, key=by_model.__getitem__),
            min(by_model, key=by_model.__getitem__),
        )
        good = (most == "gcn") + (least == "gin")
        claims.append(
            Claim(
                "GCN gains the most from LBAggr, GIN the least.",
                judged(good, 2, partly=0.5),
                "Gain over the mean: "
                + ", ".join(f"{shown(m).upper()} {signed(g)}" for m, g in by_model.items())
                + ".",
            )
        )
    by_partition = _gains(lines, 1)
    if len(by_partition) > 1:
        top = max(by_partition, key=by_partition.__getitem__)
        claims.append(
            Claim(
                "BLPA gains the most from LBAggr.",
                judged(int(top == "blpa"), 1),
                "Gain over the mean: "
                + ", ".join(f"{p} {signed(g)}" for p, g in by_partition.items())
                + ".",
            )
        )
    return claims


def _gains(lines: list[Any], column: int) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for line in lines:
        groups.setdefault(line[column], []).append(line[4] - line[2])
    return {name: float(np.mean(gains)) for name, gains in groups.items()}


def _choice_claims(pairs: list[tuple[str, str]], found: dict[Key, Mean]) -> list[Claim]:
    good = total = above = compared = 0
    best: tuple[float, str] = (-1.0, "")
    for dataset, model in pairs:
        blpa, bekm, scratch = (
            found.get((dataset, model, *where))
            for where in (("blpa", "learned"), ("bekm", "learned"), (SCRATCH, "mean"))
        )
        lead = gained(blpa, bekm)
        if lead is not None:
            total += 1
            good += (lead > 0) == (model == "gcn")
        gap = gained(bekm, scratch)
        if gap is not None:
            compared += 1
            above += gap > 0
            best = max(best, (gap, f"{shown(dataset)} {shown(model).upper()}"))
    claims = []
    if total:
        claims.append(
            Claim(
                "BLPA is the better choice for GCN, BEKM for the other models.",
                judged(good, total),
                f"True in {counted(good, total, 'cases')}.",
            )
        )
    if compared:
        claims.append(
            Claim(
                "BEKM with LBAggr is sometimes slightly better than training from scratch.",
                judged(int(above > 0), 1),
                f"Above scratch in {counted(above, compared, 'cases')}; at best {signed(best[0])} "
                f"({best[1]}).",
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
