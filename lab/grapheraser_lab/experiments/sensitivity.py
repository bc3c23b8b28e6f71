"""Effects of the settings that the text does not give (our own).

Each variation changes one setting of a `:paper` preset; `readings` changes several at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grapheraser.reports.tables import Entry, Table
from grapheraser_lab.experiments.settings import settings_table
from grapheraser_lab.experiments.utility import MARKS
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Summary, experiment
from grapheraser_lab.framework.means import LEAST, Mean, entry, run_rows
from grapheraser_lab.framework.options import FREE, Options
from grapheraser_lab.framework.resolve import shown
from grapheraser_lab.framework.shared_cells import SCRATCH, f1_means, utility_cells, utility_groups

PRESET = "preset"
PARTITIONS = (SCRATCH, "random", "blpa", FREE)
STEPS = {
    "rate 1": "lbaggr(reading=steps, rate=1.0)",
    "rate 10": "lbaggr(reading=steps, rate=10.0)",
    "1,000 steps": "lbaggr(reading=steps, steps=1000)",
    "lambda 0": "learned(solver=paper, penalty=0.0)",
}


@dataclass(frozen=True)
class Variation:
    """One other setting: options of the model, or rows of features divided by their sum."""

    options: str = ""
    features: str = ""


_NO_DROPOUT = Variation("dropout=0.0, input_dropout=0.0, attention_dropout=0.0")
_BY_ROW = Variation(features="rows")
# By model and name.
VARIATIONS: dict[tuple[str, str], Variation] = {
    **{(model, PRESET): Variation() for model in (*paper.MODELS, "mlp")},
    **{(model, "no dropout"): _NO_DROPOUT for model in paper.MODELS},
    **{(model, "features by row"): _BY_ROW for model in (*paper.MODELS, "mlp")},
    ("gat", "no input dropout"): Variation("input_dropout=0.0"),
    ("gat", "no attention dropout"): Variation("attention_dropout=0.0"),
    ("gcn", "self-loops"): Variation("self_loops=True"),
    ("gcn", "rate and decay of the code"): Variation("lr=0.05, weight_decay=0.0001"),
    ("gin", "decay of the code"): Variation("weight_decay=0.0001"),
    ("sage", "64 hidden units"): Variation("hidden=64"),
    ("mlp", "ReLU"): Variation("activation=relu"),
}

# By data set, model, variation and partition.
Key = tuple[str, str, str, str]


def _groups(options: Options) -> dict[Key, list[Cell]]:
    found = {}
    for (model, name), variation in VARIATIONS.items():
        if model != "mlp" and model not in options.models:
            continue
        # The preset has the cells of `utility`.
        given: dict[str, Any] = {"features": variation.features}
        if name != PRESET:
            given["aggregations"] = [options.chosen]
        preset = f"{model}:paper({variation.options})" if variation.options else model
        for dataset in options.datasets:
            for partition in PARTITIONS if model != "mlp" else (SCRATCH,):
                found[dataset, model, name, partition] = utility_cells(
                    options, dataset, preset, partition, **given
                )
    return found


def _step_groups(options: Options) -> dict[tuple[str, str, str], list[Cell]]:
    texts = ["mean", options.chosen, *STEPS.values()]
    return utility_groups(options, PARTITIONS[1:], aggregations=texts)


@experiment(
    "sensitivity",
    "Settings, their sources, and what they decide",
    "",
    "Cora and Citeseer 2 min a run",
    _groups,
    _step_groups,
    datasets=("cora", "citeseer"),
    most_runs=SWEEP_RUNS,
    protocols=("literal",),
)
def summarise(options: Options, results: Results) -> Summary:
    """The settings, F1 under each variation, and which verdicts change."""
    groups = _groups(options)
    scratch = {key: group for key, group in groups.items() if key[3] == SCRATCH}
    found = f1_means(results, groups, options.chosen) | f1_means(results, scratch)
    found = {key: found[key] for key in groups if key in found}
    columns = ("dataset", "model", "variation", "partition")
    return Summary(
        run_rows(found, columns),
        [settings_table(), _table(options, found), _steps(options, results)],
    )


def _table(options: Options, found: Mapping[Key, Mean]) -> Table:
    rows: list[tuple[Entry | str, ...]] = []
    for model, name in VARIATIONS:
        for d in options.datasets:
            there = [found.get((d, model, name, p)) for p in PARTITIONS]
            if any(there):
                told = [paper.utility(d, model, p, "learned") for p in PARTITIONS]
                cells_ = (entry(m, t) for m, t in zip(there, told, strict=True))
                rows.append((shown(model), name, shown(d), *cells_))
    header = ("model", "variation", "data set", *PARTITIONS)
    return Table("Micro F1 with another setting", header, tuple(rows), MARKS)


def _steps(options: Options, results: Results) -> Table:
    groups = _step_groups(options)
    texts = {"mean": "mean", "preset": options.chosen, **STEPS}
    found = {name: f1_means(results, groups, text) for name, text in texts.items()}
    rows: tuple[tuple[Entry | str, ...], ...] = tuple(
        (shown(d), shown(m), p, *(entry(found[name].get((d, m, p))) for name in texts))
        for d, m, p in groups
        if any((d, m, p) in some for some in found.values())
    )
    same = [key for key in found["rate 10"] if key in found["mean"]]

    def moved(name: str) -> list[float]:
        return [
            found[name][key].mean - found["mean"][key].mean for key in same if key in found[name]
        ]

    fallen = sum(gap < -LEAST for gap in moved("rate 10"))
    note = (
        f"At a rate of 1 LBAggr is {max(map(abs, moved('rate 1')), default=0.0):.3f} from the mean "
        f"at the most; at a rate of 10 the scores leave 1/k, and F1 falls in {fallen} of "
        f"{len(same)} cells. Rates and steps on whole neighbourhoods, the preset on thinned ones."
    )
    return Table(
        "LBAggr as written, with other steps",
        ("data set", "model", "partition", *texts),
        rows,
        note,
    )
