"""The paper's own figures to print beside ours, from ``lab/results/published.toml``.

Nothing in this package is tuned towards them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_DATA: dict[str, Any] = tomllib.loads(
    (Path(__file__).resolve().parents[2] / "results" / "published.toml").read_text()
)
DATASETS, MODELS = tuple[str, ...](_DATA["datasets"]), tuple[str, ...](_DATA["models"])
RUNS = 10
SCRATCH = "scratch"


class Published(NamedTuple):
    """A mean, and its standard deviation where the paper gives one."""

    mean: float
    std: float | None = None


def _published(text: str) -> Published:
    mean, std = text.split("/")
    return Published(int(mean) / 1000, int(std) / 1000)


@dataclass(frozen=True)
class Grid:
    """A table of the paper: a figure for each (data set, model) and column."""

    columns: tuple[str, ...]
    values: dict[tuple[str, str, str], Published]

    def get(self, dataset: str, model: str, column: str) -> Published | None:
        return self.values.get((dataset, model, column))


def _grid(table: dict[str, str]) -> Grid:
    names = tuple(table["columns"].split())
    values = {
        (dataset, model, name): _published(cell)
        for dataset, model, *cells in _lines(table["values"])
        for name, cell in zip(names, cells, strict=True)
    }
    return Grid(names, values)


def _lines(text: str) -> Iterator[list[str]]:
    return (line.split() for line in text.splitlines() if line.strip())


def _by_dataset(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each data set with the words that a row begins with, and what the row has of it."""
    for words in _lines(_DATA["by-dataset"][name]):
        keys, cells = words[: -len(DATASETS)], words[-len(DATASETS) :]
        yield from (((d, *keys), cell) for d, cell in zip(DATASETS, cells, strict=True))


UTILITY, EDGE_UTILITY = _grid(_DATA["utility"]), _grid(_DATA["edge-utility"])
PARTITIONERS = _grid(_DATA["partitioners"])


def utility(dataset: str, model: str, partition: str, aggregation: str) -> Published | None:
    """Micro F1 of that partition and aggregation, or from scratch, where the paper has it."""
    column = SCRATCH if partition == SCRATCH else f"{partition}/{aggregation}"
    return UTILITY.get(dataset, model, column)


# By (data set, model), and by (data set, model, sample).
MLP = {key: _published(cell) for key, cell in _by_dataset("mlp")}
SAMPLES = {key: _published(cell) for key, cell in _by_dataset("samples")}
SECONDS = {key: float(cell) for key, cell in _by_dataset("seconds")}

# The text beside figure:node_unlearning_efficiency: scratch over shards.
SPEEDUP = {"cora": 4.16, "citeseer": 3.08, "pubmed": 5.40, "cs": 19.25, "physics": 35.9}

# The abstract: the smallest and the largest data set.
SPEEDUP_RANGE = (2.06, 35.94)

# The text beside figure:shard_size_distribution, on Cora: nodes, and shares of the nodes.
LPA_LARGEST, LPA_SMALLEST = 113, 2
KMEANS_LARGEST, KMEANS_SMALLEST = 0.1024, 0.0105

# The text beside figure:unlearning_adaptive: GCN on Pubmed, none and half of the nodes deleted.
ROBUSTNESS_PUBMED_GCN = (0.72, 0.56)

# table:datasets: nodes, edges, classes, features.
GRAPHS = {
    "cora": (2708, 5429, 7, 1433),
    "citeseer": (3327, 4732, 6, 3703),
    "pubmed": (19717, 44338, 3, 500),
    "cs": (18333, 163788, 15, 6805),
    "physics": (34493, 495924, 5, 8415),
}

ATTACK: dict[tuple[str, ...], tuple[float, float]] = {
    (dataset, model): (float(cells[2 * i]), float(cells[2 * i + 1]))
    for dataset, *cells in _lines(_DATA["attack"]["values"])
    for i, model in enumerate(MODELS)
}
