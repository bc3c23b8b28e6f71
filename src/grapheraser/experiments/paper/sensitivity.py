"""What the settings that the text does not give decide (our own).

Each variation changes one setting of a `:paper` preset. Where the verdict on a model changes with
it, the claim says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    SWEEP_RUNS,
    Experiment,
    Summary,
    register,
)
from grapheraser.experiments.framework.means import Mean, entry, run_rows, tidy_rows
from grapheraser.experiments.framework.options import FREE, Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.rules import OPEN, Claim
from grapheraser.experiments.framework.shared_cells import (
    SCRATCH,
    every_cell,
    f1_means,
    standing,
    utility_cells,
)
from grapheraser.experiments.paper import published as paper
from grapheraser.experiments.paper import utility_rules as rules
from grapheraser.experiments.paper.mlp import mlp_below
from grapheraser.experiments.paper.settings import settings_table
from grapheraser.experiments.paper.utility import MARKS
from grapheraser.reports.tables import Entry, Table

PRESET = "preset"
PARTITIONS = (SCRATCH, "random", "blpa", FREE)
STEPS = {
    "rate 1": "stepped(rate=1.0)",
    "rate 10": "stepped(rate=10.0)",
    "1,000 steps": "stepped(steps=1000)",
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
    return {
        (dataset, model, partition): utility_cells(
            options, dataset, model, partition, aggregations=texts
        )
        for dataset, model in options.pairs
        for partition in PARTITIONS[1:]
    }


def cells(options: Options) -> list[Cell]:
    """Every variation on random, BLPA and label-free BEKM shards, and from scratch."""
    return [*every_cell(_groups(options)), *every_cell(_step_groups(options))]


def summarise(options: Options, results: Results) -> Summary:
    """The settings, F1 under each variation, and which verdicts change."""
    groups = _groups(options)
    scratch = {key: group for key, group in groups.items() if key[3] == SCRATCH}
    found = f1_means(results, groups, options.chosen) | f1_means(results, scratch)
    found = {key: found[key] for key in groups if key in found}
    columns = ("dataset", "model", "variation", "partition")
    changes = changed_verdicts(found, options.how.chosen)
    return Summary(
        tidy_rows(found, columns),
        [settings_table(), _table(options, found), _steps(options, results), _changes(changes)],
        runs=run_rows(found, columns),
        decides=decided(changes),
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
    note = "Whatever the rate, the steps and lambda: the softmax keeps LBAggr at the mean."
    return Table(
        "LBAggr as written, with other steps",
        ("data set", "model", "partition", *texts),
        rows,
        note,
    )


# (rule, model, variation, verdict with the preset, verdict with the variation)
Change = tuple[str, str, str, str, str]


def changed_verdicts(found: Mapping[Key, Mean], label: str) -> list[Change]:
    """Sentences that are judged differently where one setting of one model is another.

    A verdict that can't be told on either side is no other verdict.
    """
    changes = []
    for model, name in VARIATIONS:
        if name == PRESET:
            continue
        before, after = (_judged(found, label, model, way) for way in (PRESET, name))
        changes += [
            (key, model, name, before[key], after[key])
            for key in before
            if key in after and before[key] != after[key] and OPEN not in (before[key], after[key])
        ]
    return changes


def _judged(found: Mapping[Key, Mean], label: str, model: str, name: str) -> dict[str, str]:
    """Verdicts on this model alone; of the MLP, on all GNNs beside it."""
    known, _ = standing(found)
    scratch = {
        (d, m): mean
        for (d, m, way, p), mean in known.items()
        if p == SCRATCH and way == (name if m == model else PRESET)
    }
    claims: list[Claim] = list(mlp_below(scratch))
    own = {
        (d, m, "bekm" if p == FREE else p, "mean" if p == SCRATCH else label): mean
        for (d, m, way, p), mean in known.items()
        if (m, way) == (model, name)
    }
    if model != "mlp":
        claims += rules.over_random(own, label)
        claims += rules.choice_of_method(own, label)
        claims += rules.above_scratch(own, label)
    return {claim.rule: claim.verdict for claim in claims}


def decided(changes: list[Change]) -> dict[str, str]:
    """By rule, a sentence on what decides it."""
    found: dict[str, list[str]] = {}
    for key, model, name, before, after in changes:
        found.setdefault(key, []).append(f"{model} with {name}: {after} instead of {before}")
    return {
        key: f"Settings that the text does not give decide it ({'; '.join(words)})."
        for key, words in found.items()
    }


def _changes(changes: list[Change]) -> Table:
    return Table(
        "Verdicts that change with a setting",
        ("sentence", "model", "variation", "with the preset", "with the variation"),
        tuple(changes),
        "Each sentence is judged on the one model that varies, on Cora and Citeseer, BEKM without "
        "labels.",
    )


register(
    Experiment(
        "sensitivity",
        "Settings, their sources, and what they decide",
        "",
        "Cora and Citeseer 2 min a run",
        cells,
        summarise,
        datasets=("cora", "citeseer"),
        most_runs=SWEEP_RUNS,
        protocols=("paper",),
    )
)
