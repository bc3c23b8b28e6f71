"""The number of shards: time and F1 for k from 2 to 100 (figure:num_of_shards)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from grapheraser.reports.tables import Table
from grapheraser.reports.wording import duration
from grapheraser_lab.experiments.efficiency import times_of
from grapheraser_lab.figures.curves import Curves, draw_curves, shared_limits
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Summary, experiment
from grapheraser_lab.framework.f1_curves import (
    Line,
    along,
    curve_rows,
    curve_table,
    lines_of,
)
from grapheraser_lab.framework.means import Mean, heights, spreads
from grapheraser_lab.framework.noise import all_of, paired
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding, by_reading, rule
from grapheraser_lab.framework.shared_cells import f1_means, measured, requests_cell, utility_cells

NUMBERS = (2, 5, 10, 20, 50, 100)
SLIGHT = 0.05

_RESTORED = (
    "The times are means of 10 to 100 requests, from an earlier report that kept nothing else: "
    "each counts as one run here, and their noise is not known."
)

Key = tuple[str, str, str, float]


@rule(
    "shards/time",
    "The average unlearning time cost decreases when the number of shards increases for all the "
    "GNN models.",
    "Every GNN, from each number of shards to the next: the time of a request falls, beyond noise.",
    noun="step",
)
def time_falls(times: Line) -> Finding:
    """Step by step."""
    cases = []
    for line in lines_of(times):
        for (k, before), (more, after) in pairwise(along(times, *line)):
            fall = paired(before, after).positive
            cases.append(Case(f"{named(*line)} {k:g} to {more:g}", fall))
    return Finding(cases, "The table has every time.")


def _drops(scores: Line) -> dict[tuple[str, str, str], Mean]:
    """F1 at the fewest shards minus F1 at the most, as a figure with runs."""
    found = {}
    for line in lines_of(scores):
        curve = along(scores, *line)
        if len(curve) > 1:
            first, last = curve[0][1], curve[-1][1]
            theirs = dict(last.by_run)
            by_run = tuple((run, f1 - theirs[run]) for run, f1 in first.by_run if run in theirs)
            gap = paired(first, last)
            runs = max(1, len(by_run))
            gone = first.collapsed or last.collapsed
            found[line] = Mean(gap.mean, gap.error * runs**0.5, runs, 0, by_run, gone)
    return found


@rule(
    "shards/f1",
    "On the other hand, the F1 score of all the four GNN models slightly decrease.",
    f"Every GNN, from the fewest to the most shards: F1 falls beyond noise, by at most {SLIGHT}.",
)
def f1_falls_slightly(scores: Line) -> Finding:
    """Falls, and little."""
    cases = []
    for line in lines_of(scores):
        curve = along(scores, *line)
        if len(curve) > 1:
            gap = paired(curve[0][1], curve[-1][1])
            cases.append(Case(named(*line), all_of([gap.above(0.0), gap.at_most(SLIGHT)])))
    told = ", ".join(f"{named(*line)} {drop.mean:+.3f}" for line, drop in _drops(scores).items())
    return Finding(cases, f"The drops: {told}.")


@rule(
    "shards/gcn",
    "Comparing the four GNN models, the utility of GCN model drops the most.",
    "Every data set: GCN's drop is above that of each other GNN by at least 0.01, beyond noise.",
    noun="data set",
)
def gcn_drops_most(scores: Line) -> Finding:
    """Run by run."""
    drops = _drops(scores)
    cases = []
    for dataset in dict.fromkeys(line[0] for line in drops):
        own = [drop for (d, m, _), drop in drops.items() if (d, m) == (dataset, "gcn")]
        others = [drop for (d, m, _), drop in drops.items() if d == dataset and m != "gcn"]
        if own and others:
            answer = all_of(paired(own[0], other).above() for other in others)
            cases.append(Case(shown(dataset), answer))
    told = ", ".join(f"{named(*line)} {drop.mean:+.3f}" for line, drop in drops.items())
    return Finding(cases, f"The drops: {told}.")


def _swept(found: Mapping[Key, Mean]) -> dict[Key, Mean]:
    """Lines of which more than one number of shards is there."""
    counts = Counter(key[:3] for key in found)
    return {key: mean for key, mean in found.items() if counts[key[:3]] > 1}


def _f1_cells(options: Options) -> dict[Key, list[Cell]]:
    return {
        (*line, k): utility_cells(options, *line, num_shards=k)
        for line in options.lines
        for k in NUMBERS
    }


def _time_cells(options: Options) -> dict[Key, Cell]:
    return {
        (*line, k): requests_cell(options, *line, num_shards=k, nodes_only=True)
        for line in options.lines
        for k in NUMBERS
    }


@experiment(
    "shards",
    "The number of shards",
    "figure:num_of_shards",
    "Cora and Citeseer 20 min; Physics about an hour",
    _time_cells,
    _f1_cells,
    datasets=("cora", "citeseer", "physics"),
    most_runs=SWEEP_RUNS,
)
def summarise(options: Options, results: Results) -> Summary:
    """Time of a node request and F1, by k."""
    cells = _f1_cells(options)
    solved = options.solved.items()
    every = {name: _swept(f1_means(results, cells, text)) for name, text in solved}
    scores = next(iter(every.values()))
    known = {name: some for name, some in every.items() if some or some is scores}
    asked = measured(results, _time_cells(options))
    times = _swept({key: times_of(value["nodes"]["seconds"]) for key, value in asked.items()})
    rows: list[dict[str, Any]] = [
        {**row, "reading": name}
        for name, some in known.items()
        for row in curve_rows(some, "shards")
    ]
    time_table = Table(
        "Time to forget a node, by the number of shards",
        ("data set", "model", "method", *(f"{k}" for k in NUMBERS)),
        tuple(
            (
                *map(shown, line),
                *(
                    duration(times[(*line, k)].mean if (*line, k) in times else None)
                    for k in NUMBERS
                ),
            )
            for line in lines_of(times)
        ),
        _requests_told(times),
    )
    tables = [
        curve_table(some, f"Micro F1 ({name}), by the number of shards", note="† collapsed.")
        for name, some in known.items()
    ]
    judged = [
        {name: judge(some) for name, some in known.items()}
        for judge in (f1_falls_slightly, gcn_drops_most)
    ]
    kept = any("restored" in value for value in asked.values())
    return Summary(
        rows,
        [time_table, *tables],
        [
            *time_falls(times),
            *(claim for some in judged for claim in by_reading(some, leads=options.how.leads)),
        ],
        lambda: _figure(options, scores, times),
        notes=[_RESTORED] if kept else [],
    )


def _requests_told(times: Line) -> str:
    """How many requests the mean of each column is of."""
    counts: dict[float, set[int]] = {}
    for (*_, k), mean in times.items():
        counts.setdefault(k, set()).add(mean.runs)
    told = ", ".join(
        f"{k:g} shards {' or '.join(map(str, sorted(found)))}"
        for k, found in sorted(counts.items())
    )
    return f"Means; requests measured: {told}." if told else ""


def _figure(options: Options, scores: Line, times: Line) -> Any:
    panels = []
    for dataset in options.datasets:
        for what, found in (("seconds to forget a node", times), ("micro F1", scores)):
            series: dict[str, Any] = {}
            for d, model, method in lines_of(found):
                if d == dataset:
                    curve = along(found, d, model, method)
                    values = [value for _, value in curve]
                    name = f"{shown(model)} / {method}"
                    series[name] = ([x for x, _ in curve], heights(values), spreads(values))
            panels.append(Curves(f"{shown(dataset)}: {what}", series, log_y=found is times))
    limits = shared_limits([panel for panel in panels if not panel.log_y])
    return draw_curves(panels, "number of shards", "", columns=2, log_x=True, limits=limits)
