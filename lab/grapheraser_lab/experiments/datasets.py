"""The data sets, with edges counted as the paper counts them (table:datasets)."""

from __future__ import annotations

from typing import Any

from grapheraser.reports.tables import Entry, Table
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import Summary, experiment, no_models
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import shown
from grapheraser_lab.framework.shared_cells import measured


def _cells(options: Options) -> dict[str, Cell]:
    return {d: Cell.of("facts", **options.data(d, 0)) for d in options.datasets}


def counted(edges: int, entries: int, published: int) -> str:
    """How the paper must have counted, from what it prints.

    >>> counted(81894, 163788, 163788)
    'both directions'
    """
    if published == entries:
        return "both directions"
    near = abs(published - edges) <= 0.05 * edges
    return "each link once, doubles and loops included" if near else "otherwise"


@experiment(
    "datasets", "The data sets", "table:datasets", "seconds", _cells, models=no_models, most_runs=1
)
def summarise(options: Options, results: Results) -> Summary:
    """Counts beside the paper's."""
    found = measured(results, _cells(options))
    rows: list[dict[str, Any]] = []
    lines = []
    for dataset, value in found.items():
        told = paper.GRAPHS.get(dataset)
        rows.append(
            {
                "dataset": shown(dataset),
                "run": 0,
                **{name: value[name] for name in sorted(value)},
                "paper_edges": None if told is None else told[1],
            }
        )
        names = ("nodes", "edges", "entries", "classes", "features")
        figures = [f"{value[name]:,}" for name in names]
        below = dict(zip(("nodes", "edges", "classes", "features"), told or (), strict=False))
        line: list[Entry | str] = [shown(dataset)]
        line += [
            Entry(text, f"paper {below[name]:,}" if name in below else "")
            for name, text in zip(names, figures, strict=True)
        ]
        how = "-" if told is None else counted(value["edges"], value["entries"], told[1])
        line += [how, f"{value['training_edges']:,}", f"{100 * value['most_frequent']:.1f} %"]
        lines.append(tuple(line))
    table = Table(
        "Data sets",
        (
            "data set",
            "nodes",
            "edges, each once",
            "in both directions",
            "classes",
            "features",
            "the paper counts",
            "edges between training nodes",
            "most frequent class",
        ),
        tuple(lines),
        "Ours are undirected edges without doubles and loops. The paper counts the links of the "
        "citation graphs once, as their files list them, and each edge of the coauthor graphs "
        "twice.",
    )
    return Summary(rows, [table])
