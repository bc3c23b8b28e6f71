"""Link prediction before and after forgetting: this project's own, beside the paper's tables.

1, 5 and 10 % of the nodes, or of the edges, are forgotten by a closed-form `LinkEraser`; a GCN
encoder in plain PyG is trained from scratch on what is left, its learning rate chosen by validation
edges. Judged on a tenth of the edges, held out, and as many pairs without an edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.reports.tables import Entry, Table
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Summary, experiment, no_models
from grapheraser_lab.framework.f1_curves import (
    curve_figure,
    curve_rows,
    curve_table,
    drops,
)
from grapheraser_lab.framework.means import Mean, mean_of
from grapheraser_lab.framework.noise import paired
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding, rule
from grapheraser_lab.framework.shared_cells import CLOSED, SCRATCH, chosen, link_cells

SHARES = (0.0, 0.01, 0.05, 0.1)
KINDS = ("nodes", "edges")
FORGOTTEN = "forgotten"
ENCODER = "gcn"
DATASETS = ("cora", "citeseer", "pubmed", "facebook_pages", "amazon_computers", "cs")
# AUC that forgetting a tenth may take, where the data itself is less.
DROP = 0.02

# Data set, what is forgotten, series, share.
Key = tuple[str, str, str, float]
Runs = dict[Key, list[list[Cell]]]
# AUC that counts as less than the encoder's.
BEHIND = 0.005


@rule(
    "links/little-lost",
    "Forgetting a tenth of the nodes or edges costs links little.",
    f"Every data set, nodes and edges: the closed form's AUC drops by at most {DROP}.",
    ours=True,
)
def little_lost(auc: Mapping[Key, Mean]) -> Finding:
    """Run by run."""
    ours = {key: mean for key, mean in auc.items() if key[2] == CLOSED}
    lost = drops(ours, SHARES[0], (SHARES[-1],))
    cases = [Case(named(*key[:2]), gap.at_most(DROP)) for key, gap in lost.items()]
    worst = max(lost.values(), key=lambda gap: gap.mean, default=None)
    return Finding(cases, f"The largest drop: {worst}.")


@rule(
    "links/as-good",
    "What can be counted tells links as well as a GNN that is tuned from scratch.",
    f"Every data set and share: the closed form's AUC is at most {BEHIND} below the encoder's.",
    ours=True,
)
def as_good(auc: Mapping[Key, Mean]) -> Finding:
    """Run by run."""
    gaps = {
        key: paired(auc[key[0], key[1], SCRATCH, key[3]], mean)
        for key, mean in auc.items()
        if key[2] == CLOSED and (key[0], key[1], SCRATCH, key[3]) in auc
    }
    cases = [Case(named(k[0], k[1], _percent(k[3])), g.at_most(BEHIND)) for k, g in gaps.items()]
    worst = max(gaps.values(), key=lambda gap: gap.mean, default=None)
    return Finding(cases, f"The encoder's lead at the most: {worst}.")


def _groups(options: Options) -> Runs:
    """For each figure, the cells of each run; an encoder has one for each learning rate."""
    return {
        (dataset, what, series, share): [
            link_cells(
                _data(options, dataset, run),
                CLOSED if series == CLOSED else ENCODER,
                2 * options.epochs,
                forget={"what": what, "share": share} if share else None,
                dropouts=(0.5,),
            )
            for run in range(options.runs)
        ]
        for dataset in options.datasets
        for what in KINDS
        for series in (CLOSED, SCRATCH)
        for share in SHARES
    }


def _data(options: Options, dataset: str, run: int) -> dict[str, Any]:
    """Labels have no part in links, and so no split of the nodes."""
    data = options.data(dataset, run)
    return {key: value for key, value in data.items() if key != "split_seed"}


# What was measured, by run.
Values = Mapping[Key, Mapping[int, Mapping[str, Any]]]


def _values(options: Options, results: Results) -> Values:
    """Return what was measured in each run, with the chosen learning rate."""
    found: dict[Key, dict[int, Mapping[str, Any]]] = {}
    for key, runs in _groups(options).items():
        for number, run in enumerate(runs):
            known = {cell: value for cell in run if (value := results.value(cell)) is not None}
            if known:
                found.setdefault(key, {})[number] = known[chosen(known)]
    return found


def _means(values: Values, name: str) -> dict[Key, Mean]:
    means = {
        key: mean_of({run: _figure(value, name) for run, value in some.items()})
        for key, some in values.items()
    }
    return {key: mean for key, mean in means.items() if mean is not None}


def _figure(value: Mapping[str, Any], name: str) -> float | None:
    return value["hits"]["50"] if name == "hits" else value.get(name)


@experiment(
    "links",
    "Link prediction before and after forgetting",
    "",
    "Cora 5 min a run, all six data sets hours on two cores and minutes on a GPU",
    _groups,
    datasets=DATASETS,
    models=no_models,
    only_named=("paper", "literal"),
    most_runs=SWEEP_RUNS,
)
def summarise(options: Options, results: Results) -> Summary:
    """AUC and Hits@50 by the share that is forgotten, and the seconds that it takes."""
    values = _values(options, results)
    auc, hits = _means(values, "auc"), _means(values, "hits")
    note = f"{SCRATCH}: a GCN encoder in PyG, trained on what is left, tuned on validation edges."
    tables = [
        _curves(auc, "AUC on held-out edges, by the share forgotten", note),
        _curves(hits, "Hits@50, by the share forgotten"),
        _seconds(values),
    ]
    claims = [*little_lost(auc), *as_good(auc)]
    titles = {key[:2]: f"{shown(key[0])}, {key[1]} forgotten" for key in auc}
    return Summary(
        curve_rows(auc, "share", "auc", FORGOTTEN),
        tables,
        claims,
        lambda: curve_figure(auc, "share forgotten", "AUC", titles=titles),
        notes=(note,),
    )


def _curves(found: Mapping[Key, Mean], title: str, note: str = "") -> Table:
    return curve_table(found, title, tell=_percent, second=FORGOTTEN, note=note)


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _seconds(values: Values) -> Table:
    """How long it takes to fit, to forget a tenth, and to train from scratch in PyG."""
    fit, forget = _means(values, "seconds"), _means(values, "forgetting_seconds")
    rows: list[tuple[Entry | str, ...]] = []
    for dataset, what in dict.fromkeys(key[:2] for key in values):
        keys = (dataset, what, CLOSED), (dataset, what, SCRATCH)
        figures = (
            fit.get((*keys[0], SHARES[0])),
            forget.get((*keys[0], SHARES[-1])),
            fit.get((*keys[1], SHARES[-1])),
        )
        shown_figures = ("-" if mean is None else f"{mean.mean:.2f}" for mean in figures)
        rows.append((shown(dataset), what, *shown_figures))
    header = ("data set", FORGOTTEN, "closed form: fit", "forget 10 %", "GCN from scratch")
    note = (
        "Closed form: processor time of one thread. Encoder: one training at one rate by the "
        "clock, on a GPU where the end of the report names one; other cores worked meanwhile."
    )
    return Table("Seconds", header, tuple(rows), note)
