"""In which order cells run, how long they take, and how much is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from grapheraser.progress import progress
from grapheraser.reports.wording import duration, plural
from grapheraser_lab.framework.cell import Cell

# Rough cost of a cell, for the order and the estimate of the time left only.
_NODES = {"cora": 2.7, "citeseer": 3.3, "pubmed": 20, "cs": 40, "physics": 90}
_MODELS = {"gcn": 1, "gin": 1.5, "gat": 4, "sage": 3, "mlp": 3, "sage:paper": 30, "mlp:paper": 25}
_KINDS = {
    "facts": 0.01,
    "partition": 0.2,
    "communities": 0.2,
    "insertion": 5,
    "links": 20,
    "requests": 10,
    "pyg-scratch": 10,
    "attack": 40,
}
_EVERY = 60.0


def cost(cell: Cell) -> float:
    """Roughly, in units of a GCN on Cora."""
    config = cell.config
    model = str(config.get("model", "gcn"))
    size = _NODES.get(str(config["dataset"]), 5) / _NODES["cora"]
    kind = model.split(":", maxsplit=1)[0]
    return size * _MODELS.get(model, _MODELS.get(kind, 10)) * _KINDS.get(cell.kind, 1)


def order(cell: Cell) -> tuple[Any, ...]:
    """One run after the other, small and cheap first, so that a first report is soon there."""
    config = cell.config
    size = _NODES.get(config["dataset"], 5)
    return config["seed"], size, config["dataset"], cost(cell), cell.digest


@contextmanager
def meter(cells: Sequence[Cell], say: Callable[[str], None]) -> Iterator[Callable[[Cell], None]]:
    """Yield a function to call with each finished cell: a bar for people, a line a minute.

    What is left is estimated from all cells but the first: until that is done, kernels are
    compiled and workers begin.
    """
    left, spent, count = sum(map(cost, cells)), 0.0, 0
    last = time.perf_counter()
    first: float | None = None
    with progress("cells", len(cells)) as advance:

        def finished(cell: Cell) -> None:
            nonlocal left, spent, count, last, first
            advance()
            left, count, now = left - cost(cell), count + 1, time.perf_counter()
            if first is None:
                first = now
                return
            spent += cost(cell)
            if now - last >= _EVERY:
                last = now
                more = duration((now - first) * left / spent)
                say(f"{count} of {plural(len(cells), 'cell')}, about {more} left")

        yield finished
