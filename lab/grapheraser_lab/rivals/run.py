"""All cells of the comparison, and the report that they make."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from grapheraser.graph import Nodes
from grapheraser.seeding import generator
from grapheraser_lab.bench.comparison import validation_graph
from grapheraser_lab.framework.cell import KINDS, Cell, Kind
from grapheraser_lab.framework.runner import measured_cells
from grapheraser_lab.rivals.gif import GifSettings
from grapheraser_lab.rivals.gnndelete import DeleteSettings
from grapheraser_lab.rivals.linear import LinearSettings
from grapheraser_lab.rivals.measure import fitted, graph_of, judged
from grapheraser_lab.rivals.megu import MutualSettings
from grapheraser_lab.rivals.methods import (
    CGU_TUNED,
    EDITOR,
    GIF,
    GNNDELETE,
    MEGU,
    METHODS,
    PROJECTOR,
    RETRAINING,
)
from grapheraser_lab.rivals.tables import SMALL

DATASETS = ("cora", "citeseer", "pubmed", "cs")
ATTACKED, STREAMED, EVERY = 80, 1000, 100
PARTS = ("shares", "membership", "stream", "adversarial")


def run(
    datasets: Iterable[str] = DATASETS,
    methods: Iterable[str] = tuple(METHODS),
    *,
    small: Iterable[str] = SMALL,
    seeds: int = 3,
    attacked: int = ATTACKED,
    streamed: int = STREAMED,
    every: int = EVERY,
    parts: Iterable[str] = PARTS,
    kept: str | Path | None = None,
    folder: str | Path = "runs/peers",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure what is not measured yet, and report on everything.

    Args:
        datasets: which data sets.
        methods: which methods, by their names in `METHODS`.
        small: those of the data sets that are attacked and streamed.
        seeds: split, training and requests are seeded with 0, 1, 2, ...
        attacked: requests for single nodes that an attacker sees.
        streamed: requests for single nodes, one after the other.
        every: how many of them lie between two looks.
        parts: of `PARTS`, what is measured.
        kept: a report of before; what is not measured now stays as it is there.
        folder: where finished cells are kept.
        progress: told how far it is.

    Returns: a JSON-able report; each of `PARTS` has a row for each data set, method and seed,
    ``tuning`` what was tried on validation nodes.
    """
    names, wanted, asked = list(datasets), list(methods), list(parts)
    tuned = _tuned(names, [name for name in wanted if name in GRIDS], folder, progress)
    special = {
        "membership": {"requests": attacked},
        "stream": {"requests": streamed, "every": every},
    }
    cells = [
        Cell.of(
            f"peers-{part}",
            dataset=name,
            method=method,
            seed=seed,
            tuned=tuned.get((name, method), {}).get("best", {}),
            **special.get(part, {}),
        )
        for name, method, seed, part in product(names, wanted, range(seeds), asked)
        # Retraining does not drift: what it comes to is measured beside every other method.
        if part == "shares" or (name in small and (part, method) != ("stream", RETRAINING))
    ]
    results = measured_cells(cells, folder, progress=progress)
    found: dict[str, list[dict[str, Any]]] = {
        "tuning": [{"dataset": d, "method": m, **value} for (d, m), value in tuned.items()],
        **{part: [] for part in PARTS},
    }
    for cell in cells:
        where = {key: cell[key] for key in ("dataset", "method", "seed")}
        found[cell.kind.removeprefix("peers-")].append(where | results[cell].value)
    old = {} if kept is None else json.loads(Path(kept).read_text())
    return {
        "benchmark": "peers",
        "attacked": attacked,
        **{part: _beside(old.get(part, []), rows) for part, rows in found.items()},
    }


def _beside(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of before, but for those that were measured again, and the new ones."""

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return row["dataset"], row["method"], row.get("seed")

    again = {key(row) for row in new}
    order = list(dict.fromkeys(row["dataset"] for row in (*old, *new)))
    rows = [*(row for row in old if key(row) not in again), *new]
    return sorted(rows, key=lambda row: order.index(row["dataset"]))


def _tuned(
    datasets: Iterable[str],
    methods: Iterable[str],
    folder: str | Path,
    progress: Callable[[str], None],
) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Settings by data set and method, chosen once, with the first seed."""
    cells = {
        (name, method): Cell.of(
            "peers-tuning", dataset=name, method=method, seed=0, grid=GRIDS[method]
        )
        for name in datasets
        for method in methods
    }
    results = measured_cells(cells.values(), folder, progress=progress)
    return {key: results[cell].value for key, cell in cells.items()}


# -- settings of the approximate methods, chosen on validation nodes for each data set ----------


FORGOTTEN = 0.05
GRIDS: dict[str, list[dict[str, Any]]] = {
    GIF: [
        asdict(GifSettings(scale=scale, damp=damp))
        for scale, damp in product((300.0, 1e3, 3e3, 1e4, 3e4, 1e5), (0.0, 0.01))
    ],
    GNNDELETE: [
        asdict(DeleteSettings(lr=lr, steps=steps))
        for lr, steps in product((0.001, 0.01), (100, 300))
    ],
    MEGU: [
        asdict(MutualSettings(kappa=kappa, lr=lr))
        for kappa, lr in product((0.01, 0.1), (0.01, 0.1, 0.5))
    ],
    CGU_TUNED: [asdict(LinearSettings(penalty=penalty)) for penalty in (1e-4, 1e-3, 1e-2)],
    EDITOR: [asdict(LinearSettings(penalty=penalty)) for penalty in (0.01, 0.1, 1.0, 10.0)],
    PROJECTOR: [asdict(LinearSettings(penalty=penalty)) for penalty in (1e-5, 1e-4, 1e-3, 1e-2)],
}


def tuned(config: Mapping[str, Any]) -> dict[str, Any]:
    """The best settings of the grid, and what each came to."""
    graph, seed, method = graph_of(config), int(config["seed"]), config["method"]
    held_out = validation_graph(graph, seed)
    gone = generator(seed, "peers", "tuning").permutation(held_out.train_nodes)
    request = Nodes(gone[: round(FORGOTTEN * len(gone))])
    tried = []
    for settings in config["grid"]:
        after = fitted({**config, "tuned": settings}, held_out).forget(request)
        tried.append({"settings": settings, **judged(after, after.retrained())})
    best = min(tried, key=lambda one: _worth(method, one))
    return {"best": best["settings"], "tried": tried}


def _worth(method: str, one: Mapping[str, Any]) -> float:
    """Less is better; a series that diverged is worth nothing."""
    if one["apart"] is None:
        return float("inf")
    return float(one["apart"] if method == GIF else -one["f1"])


KINDS.add("peers-tuning", Kind(tuned))
