"""`load_dataset`: load a graph by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grapheraser.datasets.demo import demo_graph
from grapheraser.datasets.public import (
    PUBLIC,
    compact_file,
    data_root,
    load_public,
    raw_file,
)
from grapheraser.errors import ParameterError, UnknownDatasetError
from grapheraser.graph import Graph


def load_dataset(name: str | Path, root: str | Path | None = None, split_seed: int = 0) -> Graph:
    """Load a graph with 80 % of its labelled nodes for training and 20 % for testing.

    Args:
        name: ``demo`` (generated), one of the paper's graphs (cora, citeseer, pubmed, cs,
            physics), the name of a compact ``<name>.npz`` in the data folder, or the path of such
            a file: a `Path`, or a string that ends in ``.npz``.
        root: the data folder; default ``GRAPHERASER_DATA``, or the user's cache.
        split_seed: the seed of the split.
    """
    folder = data_root(root)
    if isinstance(name, Path):
        graph = Graph.from_npz(name)
    elif not isinstance(name, str):
        raise ParameterError.of("name", "load_dataset", "a name or a path", name)
    elif name == "demo":
        graph = demo_graph()
    elif name in PUBLIC:
        graph = load_public(PUBLIC[name], folder)
    elif compact_file(name, folder).exists():
        graph = Graph.from_npz(compact_file(name, folder))
    elif name.endswith(".npz"):
        graph = Graph.from_npz(name)
    else:
        known = [info.name for info in dataset_info(root)]
        raise UnknownDatasetError(
            f"unknown data set '{name}'. Known here: {', '.join(known)}.",
            hint=f"name a compact <name>.npz in {folder}, or give a path that ends in .npz.",
        )
    return graph.with_split(test_share=0.2, seed=split_seed)


def default_shards(name: str) -> int:
    """The number of shards that the paper uses for a graph; 20 for others."""
    return PUBLIC[name].num_shards if name in PUBLIC else 20


@dataclass(frozen=True)
class DatasetInfo:
    """A data set that `load_dataset` knows, and where its file is."""

    name: str
    source: str
    available: bool
    path: str | None

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def dataset_info(root: str | Path | None = None) -> list[DatasetInfo]:
    """List every name that `load_dataset` knows, and whether its file is on disk."""
    folder = data_root(root)
    found = [DatasetInfo("demo", "generated", True, None)]
    for public in PUBLIC.values():
        files = (compact_file(public.name, folder), raw_file(public, folder))
        path = next((str(file) for file in files if file.exists()), None)
        found.append(DatasetInfo(public.name, f"PyG {public.family}", path is not None, path))
    others = sorted(folder.glob("*.npz")) if folder.is_dir() else []
    found += [
        DatasetInfo(file.stem, "compact npz", True, str(file))
        for file in others
        if file.stem not in PUBLIC
    ]
    return found
