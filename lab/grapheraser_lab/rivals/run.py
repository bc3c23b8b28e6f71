"""All cells of the comparison, and the report that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from grapheraser.environment import versions
from grapheraser.graph import TEST, Graph, Nodes
from grapheraser.graph.arrays import fresh
from grapheraser.seeding import generator
from grapheraser_lab.framework.cell import KINDS, Cell, Kind, hardware
from grapheraser_lab.framework.runner import measured_cells
from grapheraser_lab.rivals.gif import GifSettings
from grapheraser_lab.rivals.gnndelete import DeleteSettings
from grapheraser_lab.rivals.measure import fitted, graph_of, judged
from grapheraser_lab.rivals.methods import GIF, GNNDELETE, METHODS, RETRAINING

DATASETS = ("cora", "citeseer", "pubmed", "cs")
# An attack and a stream take hundreds of requests.
SMALL = ("cora", "citeseer")
ATTACKED, STREAMED, EVERY = 80, 1000, 100


def run(
    datasets: Iterable[str] = DATASETS,
    methods: Iterable[str] = tuple(METHODS),
    *,
    small: Iterable[str] = SMALL,
    seeds: int = 3,
    attacked: int = ATTACKED,
    streamed: int = STREAMED,
    every: int = EVERY,
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
        folder: where finished cells are kept.
        progress: told how far it is.

    Returns: a JSON-able report; ``shares``, ``membership`` and ``stream`` have a row for each data
    set, method and seed, ``tuning`` what was tried on validation nodes.
    """
    names, wanted = list(datasets), list(methods)
    tuned = _tuned(names, [name for name in wanted if name in GRIDS], folder, progress)
    cells = []
    for name in names:
        for method in wanted:
            for seed in range(seeds):
                settings = tuned.get((name, method), {}).get("best", {})
                config = {"dataset": name, "method": method, "seed": seed, "tuned": settings}
                cells.append(Cell.of("peers-shares", **config))
                if name in small:
                    cells.append(Cell.of("peers-membership", **config, requests=attacked))
                # Retraining does not drift: what it comes to is measured beside every other method.
                if name in small and method != RETRAINING:
                    asked = {"requests": streamed, "every": every}
                    cells.append(Cell.of("peers-stream", **config, **asked))
    results = measured_cells(cells, folder, progress=progress)
    parts: dict[str, list[dict[str, Any]]] = {"shares": [], "membership": [], "stream": []}
    for cell in cells:
        where = {key: cell[key] for key in ("dataset", "method", "seed")}
        parts[cell.kind.removeprefix("peers-")].append(where | results[cell].value)
    return {
        "benchmark": "peers",
        "versions": versions(),
        "hardware": hardware(),
        "attacked": attacked,
        "tuning": [
            {"dataset": name, "method": method, **value} for (name, method), value in tuned.items()
        ],
        **parts,
    }


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


HELD_OUT, FORGOTTEN = 0.1, 0.05
GRIDS: dict[str, list[dict[str, Any]]] = {
    GIF: [
        asdict(GifSettings(scale=scale, damp=damp))
        for scale, damp in product((300.0, 1e3, 3e3, 1e4, 3e4, 1e5), (0.0, 0.01))
    ],
    GNNDELETE: [
        asdict(DeleteSettings(lr=lr, steps=steps))
        for lr, steps in product((0.001, 0.01), (100, 300))
    ],
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


def validation_graph(graph: Graph, seed: int) -> Graph:
    """The training graph with some of its nodes held out as test nodes."""
    training = graph.training_graph
    role = training.role.copy()
    drawn = generator(seed, "peers", "validation").random(len(role)) < HELD_OUT
    role[drawn] = TEST
    return training.with_fields(**fresh(role=role))


def _worth(method: str, one: Mapping[str, Any]) -> float:
    """Less is better; a series that diverged is worth nothing."""
    if one["apart"] is None:
        return float("inf")
    return float(one["apart"] if method == GIF else -one["f1"])


KINDS.add("peers-tuning", Kind(tuned))
