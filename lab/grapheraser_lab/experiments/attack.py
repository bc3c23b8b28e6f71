"""Unlearning power: whoever sees the model before and after guesses who was deleted.

The paper's two scenarios, and what lies between them. The attack is that of Chen et al. ("When
Machine Unlearning Jeopardizes Privacy"), in `audit.attacks.membership`; the attacker's own run is
on the same graph with another split, so they know everything but who was trained on.

Each run attacks another model with other requests; intervals are over the runs. Where BEKM is read
in two ways the one without labels is attacked: what has collapsed answers everybody alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.audit.attacks.shadow import KEPT, RECUT, RECUT_RESEEDED
from grapheraser.reports.tables import ABOVE, Entry, Table
from grapheraser.reports.wording import plural
from grapheraser_lab.figures.bars import Bars, draw_bars
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Summary, experiment
from grapheraser_lab.framework.means import Mean, heights, mean_of
from grapheraser_lab.framework.noise import Difference, paired, quantile
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Claim, Finding, by_reading, rule

# (scenario, nodes a request, requests) by column; the paper does not say how many it deletes, its
# code deletes one. Columns that are compared have equal requests, on every data set.
ONE_NODE = "A_I, 1 node"
COLUMNS: dict[str, tuple[str, int, int]] = {
    ONE_NODE: (KEPT, 1, 100),
    "A_I": (KEPT, 10, 12),
    "A_II": (RECUT, 10, 12),
    "A_II, new seed": (RECUT_RESEEDED, 10, 12),
}
# Measured once on the larger graphs, with other requests than A_I: shown, and compared to nothing.
APART = {"A_II, 60 nodes": 60, "A_II, new seed, 60 nodes": 60}
SHOWN = (*COLUMNS, *APART)
PAPER_COLUMN = {"A_I": 0, "A_II": 1}
CLOSE = 0.05

# AUC by data set, model and scenario.
Key = tuple[str, str, str]
Found = Mapping[Key, Mean]


def over_guessing(mean: Mean) -> Difference:
    """How far an AUC is above 0.5, over the runs."""
    return Difference(mean.mean - 0.5, mean.error, max(0, mean.runs - 1))


def _averages(found: Found, *columns: str) -> str:
    """Average every column over the cells that have them all: else sizes of graphs are compared."""
    pairs = [
        p for p in dict.fromkeys(key[:2] for key in found) if all((*p, c) in found for c in columns)
    ]
    words = [f"{c} {np.mean([found[*p, c].mean for p in pairs]):.3f}" for c in columns if pairs]
    return f"AUC on average over {plural(len(pairs), 'cell')}: {', '.join(words) or '-'}."


@rule(
    "attack/guessing",
    "The attack AUC of both A_I and A_II are close to 0.5 (random guessing).",
    f"Every data set and GNN: AUC is at most {0.5 + CLOSE} over the runs.",
)
def close_to_guessing(found: Found, *columns: str) -> Finding:
    """Requests of one node, the released code's default; or of ten, in both scenarios."""
    cases = [
        Case(named(*key), over_guessing(mean).at_most(CLOSE))
        for key, mean in found.items()
        if key[2] in columns
    ]
    return Finding(cases, _averages(found, *columns))


@rule(
    "attack/extra",
    "GraphEraser does not leak much extra information.",
    f"Every data set and GNN: AUC in scenario A_I is at most {CLOSE} above that in A_II (the "
    "paper's measure of extra leakage), run by run, for requests of equal size.",
)
def little_extra(found: Found) -> Finding:
    """A kept partition against a new one."""
    gaps = {
        key[:2]: paired(mean, found[key[0], key[1], "A_II"])
        for key, mean in found.items()
        if key[2] == "A_I" and (key[0], key[1], "A_II") in found
    }
    cases = [Case(named(*key), gap.at_most(CLOSE)) for key, gap in gaps.items()]
    worst = max(gaps.values(), key=lambda gap: gap.mean, default=None)
    told = f"{_averages(found, *PAPER_COLUMN)} The largest difference: {worst}."
    if gaps and all(gap.mean == gap.error == 0 for gap in gaps.values()):
        told += " True by construction: both scenarios end in the same bits."
    return Finding(cases, told)


@rule(
    "attack/new-seed",
    "Retraining everything from a new seed leaves the attacker guessing.",
    f"Every data set and GNN: AUC is at most {0.5 + CLOSE} over the runs.",
    ours=True,
)
def new_seed_hides(found: Found) -> Finding:
    """At the full price."""
    there = {key: mean for key, mean in found.items() if key[2] == "A_II, new seed"}
    cases = [Case(named(*k[:2]), over_guessing(m).at_most(CLOSE)) for k, m in there.items()]
    return Finding(cases, _averages(found, "A_II, new seed"))


@rule(
    "attack/one-node",
    "Whoever compares both versions can see a request for a single node.",
    f"Every data set and GNN: AUC is at least {0.5 + CLOSE}, and above 0.5 beyond noise.",
    ours=True,
)
def one_node_shows(found: Found) -> Finding:
    """Two versions from one seed differ in the deleted record alone."""
    there = {key: mean for key, mean in found.items() if key[2] == ONE_NODE}
    cases = [Case(named(*k[:2]), over_guessing(m).above(CLOSE)) for k, m in there.items()]
    return Finding(cases, _averages(found, ONE_NODE))


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return {
        (dataset, model): [_cell(options, dataset, model, run) for run in range(options.runs)]
        for dataset, model in options.pairs
    }


def _cell(options: Options, dataset: str, model: str, run: int) -> Cell:
    method = options.how.partition(options.readings(model)[-1])
    return Cell.of(
        "attack",
        **options.data(dataset, run),
        model=options.preset(model),
        partition=method,
        num_shards=options.shards(dataset),
        epochs=options.epochs,
        aggregation=options.served,
        looks={
            column: {"scenario": scenario, "nodes_per_request": nodes, "requests": requests}
            for column, (scenario, nodes, requests) in COLUMNS.items()
        },
        **options.sources(model, method, options.served),
    )


@experiment(
    "attack",
    "Membership inference against unlearning",
    "table:attack_unlearning",
    "Cora and Citeseer 12 min a run, all five about an hour; minutes with a GPU",
    _groups,
    most_runs=SWEEP_RUNS,
)
def summarise(options: Options, results: Results) -> Summary:
    """AUC by scenario, beside the paper's."""
    rows: list[dict[str, Any]] = []
    found: dict[Key, Mean] = {}
    for (dataset, model), group in _groups(options).items():
        values = {int(c["seed"]): v for c in group if (v := results.value(c)) is not None}
        for column in SHOWN:
            there = {run: v[column] for run, v in values.items() if column in v}
            rows += [_row(dataset, model, column, run, v) for run, v in there.items()]
            auc = {run: float(v["rates"]["auc"]["value"]) for run, v in there.items()}
            mean = mean_of(auc)
            if mean is not None:
                found[dataset, model, column] = mean
    return Summary(
        rows,
        [_table(options, found)],
        _claims(found),
        lambda: draw_bars(
            [_bars(options, found, dataset) for dataset in options.datasets],
            "attack AUC",
            limits=(0.3, 1),
            line=0.5,
        ),
        notes=[
            "The two versions of a run that keeps its seeds differ by the deleted data alone. That "
            "makes unlearning provable, and this attacker uses it; what retraining from a new seed "
            "hides of it, the columns of new seeds say. The comparison leaks, not the model after "
            "the request: that one is, bit for bit, the model that never saw the data."
        ],
    )


def _claims(found: Found) -> list[Claim]:
    sizes = {"requests of one node": (ONE_NODE,), "of ten": tuple(PAPER_COLUMN)}
    guessing = {name: close_to_guessing(found, *columns) for name, columns in sizes.items()}
    return [
        *by_reading(guessing, leads=True),
        *little_extra(found),
        *new_seed_hides(found),
        *one_node_shows(found),
    ]


def _row(dataset: str, model: str, column: str, run: int, value: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset": shown(dataset),
        "model": shown(model),
        "scenario": column,
        "request_nodes": APART[column] if column in APART else COLUMNS[column][1],
        "run": run,
        "auc": value["rates"]["auc"]["value"],
        "low": value["rates"]["auc"]["low"],
        "high": value["rates"]["auc"]["high"],
        "tpr_at_1_percent": value["rates"]["tpr"]["0.01"]["value"],
        "classical_auc": value["classical_auc"],
        "degradation_count": value["degradation_count"],
        "degradation_rate": value["degradation_rate"],
        "features": value["features"],
        "attack_model": value["model"],
        "members": value["rates"]["members"],
        "paper_auc": _published(dataset, model, column),
    }


def _table(options: Options, found: Found) -> Table:
    how = ", ".join(f"{shown(m)} {options.readings(m)[-1]}" for m in dict.fromkeys(options.models))
    columns = [c for c in SHOWN if c in COLUMNS or any(key[2] == c for key in found)]
    return Table(
        "Attack AUC (0.5 is guessing)",
        ("data set", "model", *columns),
        tuple(
            (shown(d), shown(m), *(_entry(found, d, m, column) for column in columns))
            for d, m in options.pairs
            if any((d, m, column) in found for column in columns)
        ),
        f"Attacked: {how}; aggregation {options.served}. A_I: the touched shards are retrained "
        "from their seeds, the partition is kept. A_II: everything is partitioned and retrained, "
        "from the same seed or a new one. Mean over the runs, in brackets its 95 % interval. A "
        "request takes 10 nodes unless the column says otherwise; a run has 12 requests, 100 of "
        "one node (50 in restored cells of Pubmed, CS and Physics). Where the partition depends on "
        "no data, A_I and A_II end in the same bits, so their AUC is the same; a run in which it "
        "is not fails. -: not measured with these requests.",
    )


def _published(dataset: str, model: str, column: str) -> float | None:
    pair = paper.ATTACK.get((dataset, model))
    return None if pair is None or column not in PAPER_COLUMN else pair[PAPER_COLUMN[column]]


def _half(mean: Mean) -> float:
    """Half the width of the interval over runs."""
    return quantile(mean.runs - 1) * mean.error if mean.runs > 1 else 0.0


def _entry(found: Found, dataset: str, model: str, column: str) -> Entry | str:
    published = _published(dataset, model, column)
    told = "" if published is None else f"paper {published:.3f}"
    mean = found.get((dataset, model, column))
    if mean is None:
        return Entry("-", told)
    low, high = max(0.0, mean.mean - _half(mean)), min(1.0, mean.mean + _half(mean))
    text = f"{mean.mean:.3f} ({low:.2f} to {high:.2f})" if mean.runs > 1 else f"{mean.mean:.3f}"
    above = published is not None and mean.runs > 1 and low > published
    return Entry(text, told, ABOVE if above else "")


def _bars(options: Options, found: Found, dataset: str) -> Bars:
    lines = {c: [found.get((dataset, model, c)) for model in options.models] for c in COLUMNS}
    return Bars(
        shown(dataset),
        [shown(model).upper() for model in options.models],
        {column: heights(line) for column, line in lines.items()},
        {c: [None if m is None else _half(m) for m in line] for c, line in lines.items()},
        {
            column: [_published(dataset, model, column) for model in options.models]
            for column in PAPER_COLUMN
        },
    )
