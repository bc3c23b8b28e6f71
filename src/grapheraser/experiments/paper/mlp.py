"""MLP against the GNNs: how much the structure matters (table:mlp)."""

from __future__ import annotations

from collections.abc import Mapping

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import Experiment, Summary, register
from grapheraser.experiments.framework.means import (
    Mean,
    entry,
    heights,
    run_rows,
    spreads,
    tidy_rows,
)
from grapheraser.experiments.framework.noise import paired
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named, shown
from grapheraser.experiments.framework.rules import Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import (
    SCRATCH,
    every_cell,
    f1_means,
    utility_cells,
)
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import Bars, draw_bars
from grapheraser.reports.tables import Entry, Table

LARGE, SMALL = 0.03, 0.02
STRUCTURED = ("cora", "citeseer")

# By data set and model.
Found = Mapping[tuple[str, str], Mean]


def _gaps(found: Found) -> dict[tuple[str, str], str]:
    return {
        (d, m): str(paired(mean, found[d, "mlp"]))
        for (d, m), mean in found.items()
        if m != "mlp" and (d, "mlp") in found
    }


def _told(found: Found) -> str:
    told = ", ".join(f"{named(*key)} {gap}" for key, gap in _gaps(found).items())
    return f"GNN minus MLP: {told}."


@rule(
    "mlp/below",
    "For the Cora and Citeseer datasets, the F1 score of the MLP model is significantly lower than "
    "that of the GNN models.",
    f"Cora and Citeseer, every GNN: it is above the MLP by at least {LARGE}, beyond noise.",
)
def mlp_below(found: Found) -> Finding:
    """Every GNN, not only the best."""
    cases = [
        Case(named(d, m), paired(mean, found[d, "mlp"]).above(LARGE))
        for (d, m), mean in found.items()
        if d in STRUCTURED and m != "mlp" and (d, "mlp") in found
    ]
    return Finding(cases, _told({key: mean for key, mean in found.items() if key[0] in STRUCTURED}))


@rule(
    "mlp/adequate",
    "The MLP model can achieve adequate F1 score compared to the GNN models on Pubmed, CS, and "
    "Physics datasets.",
    f"Pubmed, CS and Physics, every GNN: it is above the MLP by at most {SMALL}.",
)
def mlp_adequate(found: Found) -> Finding:
    """Every GNN."""
    there = {key: mean for key, mean in found.items() if key[0] in ("pubmed", "cs", "physics")}
    cases = [
        Case(named(d, m), paired(mean, there[d, "mlp"]).at_most(SMALL))
        for (d, m), mean in there.items()
        if m != "mlp" and (d, "mlp") in there
    ]
    return Finding(cases, _told(there))


def _models(options: Options) -> tuple[str, ...]:
    return tuple(dict.fromkeys(("mlp", *options.models)))


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return {
        (dataset, model): utility_cells(options, dataset, model, SCRATCH)
        for dataset in options.datasets
        for model in _models(options)
    }


def cells(options: Options) -> list[Cell]:
    """Training from scratch only."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 of each model on each data set, and the gap between the best GNN and the MLP."""
    found = f1_means(results, _groups(options))
    rows = tidy_rows(found, ("dataset", "model"), lambda *key: paper.MLP.get(key))
    table_rows: list[tuple[Entry | str, ...]] = [
        (
            shown(model),
            *(entry(found.get((d, model)), paper.MLP.get((d, model))) for d in options.datasets),
        )
        for model in _models(options)
    ]
    header = ("model", *(shown(dataset) for dataset in options.datasets))
    table = Table("Micro F1 from scratch", header, tuple(table_rows), "▲ and ▼ as in utility.")
    got = {m: [found.get((d, m)) for d in options.datasets] for m in _models(options)}
    told = {m: [paper.MLP.get((d, m)) for d in options.datasets] for m in _models(options)}
    return Summary(
        rows,
        [table],
        [*mlp_below(found), *mlp_adequate(found)],
        lambda: draw_bars(
            [
                Bars(
                    "training from scratch",
                    [shown(dataset) for dataset in options.datasets],
                    {shown(m): heights(line) for m, line in got.items()},
                    {shown(m): spreads(line) for m, line in got.items()},
                    {shown(m): heights(line) for m, line in told.items() if any(line)},
                )
            ],
            "micro F1",
            limits=(0, 1),
        ),
        runs=run_rows(found, ("dataset", "model")),
    )


register(
    Experiment(
        "mlp",
        "MLP against the GNNs",
        "table:mlp",
        "nothing beside utility but the MLP: seconds to 2 min a run",
        cells,
        summarise,
        models=_models,
    )
)
