"""Nodes that come later (the paper's section on different scenarios; it has no figures)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.reports.tables import Table
from grapheraser_lab.figures.bars import draw_bars
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Summary, experiment
from grapheraser_lab.framework.f1_curves import bars_of, upper
from grapheraser_lab.framework.means import Mean, mean_of
from grapheraser_lab.framework.noise import paired
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding, rule

COUNT, AS_GOOD = 100, 0.02
STAGES = {"without": "without them", "after": "inserted", "fresh": "fitted with them"}

# By data set, model, partition and stage.
Key = tuple[str, str, str, str]


@rule(
    "insertion/as-good",
    "We can insert the node to the shard containing the highest number of its neighbors and "
    "retrain the corresponding shard model.",
    f"Every data set and GNN, {COUNT} nodes inserted one by one: F1 is at most {AS_GOOD} below "
    "that of partitioning and fitting with them from the start.",
)
def as_good_as_fresh(found: Mapping[Key, Mean]) -> Finding:
    """The paper proposes it and does not test it."""
    gaps = {
        key[:3]: paired(found[*key[:3], "fresh"], mean)
        for key, mean in found.items()
        if key[3] == "after" and (*key[:3], "fresh") in found
    }
    cases = [Case(named(*key), gap.at_most(AS_GOOD)) for key, gap in gaps.items()]
    worst = max(gaps.values(), key=lambda gap: gap.mean, default=None)
    return Finding(cases, f"The largest gap: {worst}.")


def _groups(options: Options) -> dict[tuple[str, str, str], list[Cell]]:
    """The reading without labels where there are two: the other collapses."""
    return {
        (d, m, method): [_cell(options, d, m, method, run) for run in range(options.runs)]
        for d, m in options.pairs
        for method in options.readings(m)[-1:]
    }


def _cell(options: Options, dataset: str, model: str, method: str, run: int) -> Cell:
    text = options.how.partition(method)
    return Cell.of(
        "insertion",
        **options.data(dataset, run),
        model=options.preset(model),
        partition=text,
        num_shards=options.shards(dataset),
        epochs=options.epochs,
        aggregation=options.chosen,
        count=COUNT,
        **options.sources(model, text, options.chosen),
    )


@experiment(
    "insertion",
    "Nodes inserted later",
    "",
    "Cora and Citeseer a minute a run",
    _groups,
    datasets=("cora", "citeseer", "pubmed"),
    most_runs=SWEEP_RUNS,
)
def summarise(options: Options, results: Results) -> Summary:
    """F1 before, after, and of a fit from the start."""
    found: dict[Key, Mean] = {}
    rows: list[dict[str, Any]] = []
    lines = []
    for key, group in _groups(options).items():
        values = results.by_run(group)
        if not values:
            continue
        tested = next(iter(values.values()))["test_nodes"]
        for stage in STAGES:
            mean = mean_of({run: v[stage] for run, v in values.items()}, tested)
            if mean is not None:
                found[*key, stage] = mean
        retrained = mean_of({run: v["retrained"] for run, v in values.items()})
        rows += [
            {
                "dataset": shown(key[0]),
                "model": shown(key[1]),
                "partition": key[2],
                "run": run,
                **{name: value[name] for name in (*STAGES, "retrained", "inserted", "largest")},
            }
            for run, value in values.items()
        ]
        told = "-" if retrained is None else f"{retrained.mean:.2f}"
        stages = (str(found[*key, stage]) for stage in STAGES)
        lines.append((*map(shown, key), *stages, told))
    table = Table(
        f"Micro F1 without {COUNT} training nodes, after they were inserted, and with them "
        f"({options.how.chosen})",
        ("data set", "model", "partition", *STAGES.values(), "shards retrained a node"),
        tuple(lines),
    )
    return Summary(rows, [table], as_good_as_fresh(found), lambda: _figure(options, found))


def _figure(options: Options, found: Mapping[Key, Mean]) -> Any:
    panels = []
    for dataset in options.datasets:
        lines = {
            name: [found.get((dataset, m, options.readings(m)[-1], stage)) for m in options.models]
            for stage, name in STAGES.items()
        }
        panels.append(bars_of(shown(dataset), upper(options.models), lines))
    return draw_bars(panels, "micro F1", limits=(0, 1))
