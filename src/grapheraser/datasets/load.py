"""`load_dataset`: load a graph by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.checks import one_of
from grapheraser.datasets.demo import demo_graph
from grapheraser.datasets.papers import papers_graph
from grapheraser.datasets.public import (
    PUBLIC,
    compact_file,
    data_root,
    load_public,
    raw_file,
    with_public_split,
)
from grapheraser.errors import ParameterError, UnknownDatasetError
from grapheraser.graph import CONTEXT, TRAIN, UNLABELLED, Graph
from grapheraser.graph.pages.stored import is_stored

PUBLIC_SPLIT = "public"
# The embedded graphs, what `grapheraser datasets` says of them, and shards that suit them.
_GENERATED = {
    "demo": (demo_graph, "generated, 2,700 nodes", 20),
    "demo-large": (papers_graph, "generated, 24,000 nodes", 80),
}


def load_dataset(
    name: str | Path, root: str | Path | None = None, split_seed: int = 0, split: str = "auto"
) -> Graph:
    """Load a graph with 80 % of its labelled nodes for training and 20 % for testing.

    Args:
        name: ``demo`` or ``demo-large`` (both generated), one of the paper's graphs (cora,
            citeseer, pubmed, cs, physics), the name of a compact ``<name>.npz`` in the data
            folder, the path of such a file: a `Path`, or a string that ends in ``.npz``; or the
            folder of a graph store.
        root: the data folder; default ``GRAPHERASER_DATA``, or the user's cache.
        split_seed: the seed of the random split.
        split: ``"random"`` (80/20); ``"public"``, the one that comes with the data: for cora,
            citeseer and pubmed the published one of 20 training nodes per class, 500 validation
            and 1,000 test nodes, where all others are context nodes, and for a file its own; or
            ``"auto"``: a file's own where it has one, else random.
    """
    one_of("split", "load_dataset", split, ("auto", "random", PUBLIC_SPLIT))
    folder = data_root(root)
    if split == PUBLIC_SPLIT and split_seed != 0:
        raise ParameterError("'split_seed' of load_dataset is for the random split only.")
    if isinstance(name, str) and name in PUBLIC and split == PUBLIC_SPLIT:
        return _published(name, folder)
    graph = _loaded(name, root, folder)
    own = not np.array_equal(graph.role, np.where(graph.y == UNLABELLED, CONTEXT, TRAIN))
    if split == PUBLIC_SPLIT and not own:
        raise _no_split(name)
    if split == "random" or not own:
        return graph.with_split(test_share=0.2, seed=split_seed)
    if split_seed != 0:
        raise ParameterError(
            f"'split_seed' of load_dataset is for the random split; '{name}' has one of its own.",
            hint="split='random' draws another one.",
        )
    return graph


def _loaded(name: str | Path, root: str | Path | None, folder: Path) -> Graph:
    """A graph with the split that it comes with, if any."""
    if isinstance(name, str | Path) and name not in PUBLIC and is_stored(Path(name)):
        return Graph.open(name)
    if isinstance(name, Path):
        return Graph.from_npz(name)
    if not isinstance(name, str):
        raise ParameterError.of("name", "load_dataset", "a name or a path", name)
    if name in _GENERATED:
        return _GENERATED[name][0]()
    if name in PUBLIC:
        return load_public(PUBLIC[name], folder)
    if compact_file(name, folder).exists():
        return Graph.from_npz(compact_file(name, folder))
    if name.endswith(".npz"):
        return Graph.from_npz(name)
    known = [info.name for info in dataset_info(root)]
    raise UnknownDatasetError(
        f"unknown data set '{name}'. Known here: {', '.join(known)}.",
        hint=f"name a compact <name>.npz in {folder}, or give a path that ends in .npz; "
        "`grapheraser import` makes one of tables and other files.",
    )


def _published(name: str, folder: Path) -> Graph:
    public = PUBLIC[name]
    if public.num_train is None:
        raise _no_split(name)
    return with_public_split(load_public(public, folder), public, folder)


def _no_split(name: str | Path) -> ParameterError:
    known = ", ".join(graph.name for graph in PUBLIC.values() if graph.num_train is not None)
    return ParameterError(
        f"data set '{name}' has no public split. Those with one: {known}.",
        hint="leave split out for a random one, or set the masks of a PyG Data yourself.",
    )


def default_shards(name: str) -> int:
    """The number of shards that the paper uses for a graph; 80 for demo-large, 20 for others."""
    if name in _GENERATED:
        return _GENERATED[name][2]
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
    found = [DatasetInfo(name, words, True, None) for name, (_, words, _) in _GENERATED.items()]
    for public in PUBLIC.values():
        files = (compact_file(public.name, folder), raw_file(public, folder))
        path = next((str(file) for file in files if file.exists()), None)
        found.append(DatasetInfo(public.name, f"PyG {public.family}", path is not None, path))
    others = sorted(folder.glob("*.npz")) if folder.is_dir() else []
    found += [
        DatasetInfo(file.stem, "compact npz", True, str(file))
        for file in others
        if file.stem not in {*_GENERATED, *PUBLIC}
    ]
    return found
