"""F1 from scratch and for every partition and aggregation (table:node_unlearning_utility)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import Experiment, Summary, register
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import Mean, entry, run_rows, tidy
from grapheraser.experiments.framework.options import FREE, Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.rules import Claim, Rule, by_reading
from grapheraser.experiments.framework.shared_cells import (
    AS_WRITTEN,
    CONVEX,
    SCRATCH,
    every_cell,
    f1_means,
    standing,
    utility_cells,
)
from grapheraser.experiments.paper import published as paper
from grapheraser.experiments.paper import utility_rules as rules
from grapheraser.experiments.paper.lbaggr_rules import LBAGGR
from grapheraser.reports.tables import Entry, Table

Key = tuple[str, str, str, str]
LABEL_FREE = "BEKM without labels"
MARKS = (
    "Mean ± standard deviation over the runs; † collapsed: no better than the most frequent class. "
    "Below: the paper's figure and the difference; ▲ and ▼ mark differences of more than two "
    "standard deviations and 0.01."
)


def groups(options: Options) -> dict[tuple[str, str, str], list[Cell]]:
    """The cells of every data set, model and partition."""
    return {
        (dataset, model, partition): utility_cells(options, dataset, model, partition)
        for dataset, model in options.pairs
        for partition in (SCRATCH, *options.main_partitions)
    }


def cells(options: Options) -> list[Cell]:
    """Scratch and every partition, for all data sets, models and runs."""
    return every_cell(groups(options))


def means(options: Options, results: Results) -> dict[Key, Mean]:
    """By data set, model, partition and aggregation (scratch has ``mean``)."""
    all_groups = groups(options)
    by_label = {
        label: f1_means(results, all_groups, text)
        for label, text in options.aggregation_names.items()
    }
    return {
        (*key, label): by_label[label][key]
        for key in all_groups
        for label in (["mean"] if key[2] == SCRATCH else by_label)
        if key in by_label[label]
    }


def summarise(options: Options, results: Results) -> Summary:
    """Two tables (the paper's aggregations, ours), bars, and the paper's conclusions."""
    found = means(options, results)
    columns = ("dataset", "model", "partition", "aggregation")
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
    return Summary(
        rows,
        tables,
        claims(options, found),
        lambda: _figure(options, found),
        notes=_notes(options),
        runs=run_rows(found, columns),
    )


def _notes(options: Options) -> list[str]:
    if options.protocol != "paper":
        return []
    return [
        "learned is LBAggr as the paper writes it, and does nothing: the softmax after each step "
        "brings scores between 0 and 1 back to nearly the same for all shards (importance prints "
        "them). Its column is that of the mean but for rounding. convex minimises the same "
        "objective; released is what the paper's code minimises, over log posteriors, whose plain "
        "average is log-mean. The paper's sentences on LBAggr are judged under all three."
    ]


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
    note = f"{MARKS} Bold: the best of the row apart from scratch."
    return Table(title, tuple(header), tuple(rows), note)


def _figure(options: Options, found: dict[Key, Mean]) -> Any:
    label = options.how.chosen
    series = {SCRATCH: (SCRATCH, "mean")}
    series |= {f"{shown(p)} / {label}": (p, label) for p in options.main_partitions}
    if options.protocol == "paper":
        series["blpa / routed"] = ("blpa", "routed")
    return draw_f1(options, series, found, paper.utility)


def as_read(found: dict[Key, Mean], *, free: bool) -> dict[Key, Mean]:
    """The figures under one reading of BEKM: with the embedding as written, or without labels."""
    gone = "bekm" if free else FREE
    return {
        (d, m, "bekm" if p == FREE else p, label): value
        for (d, m, p, label), value in found.items()
        if p != gone
    }


def bekm_readings(
    options: Options, found: dict[Key, Mean], judge: Callable[[dict[Key, Mean], int], list[Claim]]
) -> list[Claim]:
    """A claim about BEKM under each reading of its embedding, collapsed figures left out."""
    readings = {AS_WRITTEN: False, LABEL_FREE: True} if options.how.free else {AS_WRITTEN: False}
    return by_reading(
        {name: judge(*standing(as_read(found, free=free))) for name, free in readings.items()}
    )


def about_partitions(options: Options, found: dict[Key, Mean]) -> list[Claim]:
    """The paper's sentences on partitions, each under both readings of BEKM."""
    label = options.how.chosen
    found = {key: mean for key, mean in found.items() if key[3] == label or key[2] == SCRATCH}

    def advised(model: str) -> str:
        return "blpa" if model.split(":", maxsplit=1)[0] == "gcn" else "bekm"

    judges: list[Callable[[dict[Key, Mean], int], list[Claim]]] = [
        lambda kept, out: rules.over_random(kept, label, left_out=out),
        lambda kept, out: rules.random_comparable(kept, label, left_out=out),
        lambda kept, out: rules.comparable_to_scratch(kept, label, advised, left_out=out),
        lambda kept, out: rules.choice_of_method(kept, label, left_out=out),
        lambda kept, out: rules.above_scratch(kept, label, left_out=out),
        lambda kept, out: rules.most_over_random(kept, label, left_out=out),
    ]
    return [claim for judge in judges for claim in bekm_readings(options, found, judge)]


def _about_lbaggr(options: Options, found: dict[Key, Mean]) -> list[Claim]:
    """Under every reading of LBAggr; the partitions are those of the paper's table."""
    readings = {AS_WRITTEN: ("learned", "mean")}
    if options.protocol == "paper":
        readings |= {CONVEX: ("convex", "mean"), "released code": ("released", "log-mean")}

    def judged(one: Rule, labels: tuple[str, str]) -> list[Claim]:
        there, out = standing(
            {
                key: mean
                for key, mean in found.items()
                if key[2] in ("random", "blpa", "bekm", FREE) and key[3] in (*labels, "majority")
            }
        )
        return one(there, *labels, left_out=out)

    return [
        claim
        for one in LBAGGR
        for claim in by_reading({name: judged(one, labels) for name, labels in readings.items()})
    ]


def claims(options: Options, found: dict[Key, Mean]) -> list[Claim]:
    """Everything that the paper concludes from the table, and what we do."""
    default = options.how.readings["*"][0]
    way = ("blpa", "routed") if options.protocol == "paper" else (default, options.how.chosen)
    return [
        *about_partitions(options, found),
        *_about_lbaggr(options, found),
        *rules.closest_to_scratch(found, *way),
    ]


register(
    Experiment(
        "utility",
        "F1 of every partition and aggregation",
        "table:node_unlearning_utility",
        "Cora and Citeseer a minute a run, all five data sets about 15 min",
        cells,
        summarise,
    )
)
