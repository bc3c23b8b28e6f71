"""Unlearning power: whoever sees the model before and after guesses who was deleted.

The paper's two scenarios, and what lies between them. The attack is that of Chen et al. ("When
Machine Unlearning Jeopardizes Privacy"), in `audit.attacks.membership`; the attacker's own run is
on the same graph with another split, so they know everything but who was trained on.

There is one run, whatever ``runs`` says: the intervals are over the requests of that run, or over
the nodes where there are only a few requests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.audit.attacks.shadow import (
    KEPT,
    RECUT,
    RECUT_RESEEDED,
)
from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import measured
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import Bars, draw_bars
from grapheraser.reports.tables import ABOVE, Entry, Table
from grapheraser.reports.wording import listed

# (scenario, nodes a request, requests) by column; the paper does not say how many it deletes.
COLUMNS: dict[str, tuple[str, int, int]] = {
    "A_I, 1 node": (KEPT, 1, 100),
    "A_I": (KEPT, 10, 12),
    "A_II": (RECUT, 10, 12),
    "A_II, new seed": (RECUT_RESEEDED, 10, 12),
}
# Partitioning and retraining a large graph takes minutes: few requests, of as many nodes in all.
LARGE = ("pubmed", "cs", "physics")
LARGE_COLUMNS = {
    **COLUMNS,
    "A_I, 1 node": (KEPT, 1, 50),
    "A_II": (RECUT, 60, 2),
    "A_II, new seed": (RECUT_RESEEDED, 60, 2),
}
PAPER_COLUMN = {"A_I": 0, "A_II": 1}
CLOSE = 0.55


def _cells(options: Options) -> dict[tuple[str, str], Cell]:
    return {(dataset, model): _cell(options, dataset, model) for dataset, model in options.pairs}


def _cell(options: Options, dataset: str, model: str) -> Cell:
    method = options.how.partition(options.recommended(model))
    columns = LARGE_COLUMNS if dataset in LARGE else COLUMNS
    return Cell.of(
        "attack",
        **options.data(dataset, 0),
        model=options.preset(model),
        partition=method,
        num_shards=options.shards(dataset),
        epochs=options.epochs,
        aggregation=options.learned,
        looks={
            column: {"scenario": scenario, "nodes_per_request": nodes, "requests": requests}
            for column, (scenario, nodes, requests) in columns.items()
        },
        **options.sources(model, method, options.learned),
    )


def cells(options: Options) -> list[Cell]:
    """Every data set and model; all scenarios of one share its two runs."""
    return list(_cells(options).values())


Found = dict[tuple[str, str, str], dict[str, Any]]


def summarise(options: Options, results: Results) -> Summary:
    """AUC by scenario, beside the paper's."""
    found: Found = {
        (*key, column): value[column]
        for key, value in measured(results, _cells(options)).items()
        for column in COLUMNS
    }
    rows = [
        {
            "dataset": shown(dataset),
            "model": shown(model),
            "scenario": column,
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
        for (dataset, model, column), value in found.items()
    ]
    table = Table(
        "Attack AUC (0.5 is guessing)",
        ("data set", "model", *COLUMNS),
        tuple(
            (shown(d), shown(m), *(_entry(found, d, m, column) for column in COLUMNS))
            for d, m in options.pairs
            if (d, m, "A_I") in found
        ),
        "A_I: the touched shards are retrained from their seeds, the partition is kept. A_II: "
        "everything is partitioned and retrained, from the same seed or a new one. In brackets "
        "95 % of a bootstrap over requests. A request takes 10 nodes unless the column says "
        f"otherwise; there are 12 requests, 100 of one node.{_large(options)}",
    )
    return Summary(
        rows,
        [table],
        _claims(options, found),
        lambda: draw_bars(
            [_bars(options, found, dataset) for dataset in options.datasets],
            "attack AUC",
            limits=(0.4, 1),
        ),
        notes=[
            "The two versions of a run that keeps its seeds differ by the deleted data alone. That "
            "makes unlearning provable, and this attacker uses it; retraining from a new seed "
            "drowns it in noise. The comparison leaks, not the model after the request: that one "
            "is, bit for bit, the model that never saw the data."
        ],
    )


def _large(options: Options) -> str:
    there = [shown(dataset) for dataset in options.datasets if dataset in LARGE]
    if not there:
        return ""
    return (
        f" On {listed(there)} everything is partitioned and retrained for 2 requests of 60 nodes "
        "instead (0.2 to 0.4 % of the training nodes; 10 are 0.4 or 0.5 % on the others): the "
        "same 120 nodes, but a bootstrap over nodes, which does not see how much requests differ. "
        "There are 50 requests for single nodes there."
    )


def _published(dataset: str, model: str, column: str) -> float | None:
    pair = paper.ATTACK.get((dataset, model))
    return None if pair is None or column not in PAPER_COLUMN else pair[PAPER_COLUMN[column]]


def _entry(found: Found, dataset: str, model: str, column: str) -> Entry | str:
    published = _published(dataset, model, column)
    told = "" if published is None else f"paper {published:.3f}"
    value = found.get((dataset, model, column))
    if value is None:
        return Entry("-", told)
    auc = value["rates"]["auc"]
    text = f"{auc['value']:.3f} ({auc['low']:.2f} to {auc['high']:.2f})"
    above = published is not None and auc["low"] > published
    return Entry(text, told, ABOVE if above else "")


def _claims(options: Options, found: Found) -> list[Claim]:
    def aucs(column: str) -> list[dict[str, float]]:
        keys = [(d, m, column) for d, m in options.pairs]
        return [found[key]["rates"]["auc"] for key in keys if key in found]

    def mean(some: list[dict[str, float]]) -> str:
        return f"{np.mean([auc['value'] for auc in some]):.3f}"

    kept, recut = aucs("A_I"), aucs("A_II")
    one, new = aucs("A_I, 1 node"), aucs("A_II, new seed")
    return [
        *judged_claim(
            "The attack is close to guessing in both scenarios.",
            [auc["value"] <= CLOSE for auc in (*kept, *recut)],
            lambda count: (
                f"AUC at most {CLOSE} in {count}; on average A_I {mean(kept)}, A_II {mean(recut)}."
            ),
        ),
        *judged_claim(
            "Keeping the partition leaks little more than a new one.",
            [a["low"] <= b["high"] for a, b in zip(kept, recut, strict=True)],
            lambda count: f"A_I is within the interval of A_II in {count}.",
        ),
        *judged_claim(
            "Retraining everything from a new seed leaves the attacker guessing.",
            [auc["low"] <= 0.5 for auc in new],
            lambda count: f"{count} hold 0.5; on average {mean(new)}.",
            noun="interval",
            ours=True,
        ),
        *judged_claim(
            "Whoever compares both versions can see a request for a single node.",
            [auc["low"] > 0.5 for auc in one],
            lambda count: f"{count} lie above 0.5; on average {mean(one)}.",
            noun="interval",
            ours=True,
        ),
    ]


def _bars(options: Options, found: Found, dataset: str) -> Bars:
    def line(column: str) -> list[float | None]:
        values = (found.get((dataset, model, column)) for model in options.models)
        return [None if v is None else v["rates"]["auc"]["value"] for v in values]

    return Bars(
        shown(dataset),
        [shown(model).upper() for model in options.models],
        {column: line(column) for column in COLUMNS},
        paper={
            column: [_published(dataset, model, column) for model in options.models]
            for column in PAPER_COLUMN
        },
    )


register(
    Experiment(
        "attack",
        "Membership inference against unlearning",
        "table:attack_unlearning",
        "Cora and Citeseer 12 min, all five about an hour; minutes with a GPU",
        cells,
        summarise,
    )
)
