"""`load_dataset`: load a graph by name."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from grapheraser.checks import one_of
from grapheraser.datasets.demo import demo_graph
from grapheraser.datasets.papers import papers_graph
from grapheraser.environment import needs_torch
from grapheraser.errors import (
    DatasetNotFoundError,
    GraphError,
    MissingExtraError,
    ParameterError,
    UnknownDatasetError,
)
from grapheraser.graph import CONTEXT, TRAIN, UNLABELLED, Graph
from grapheraser.graph.formats.npz import checked
from grapheraser.graph.pages.stored import is_stored

# Validation nodes of every published split.
_VALIDATION = 500


@dataclass(frozen=True)
class PublicGraph:
    """A public graph."""

    name: str  # its name in `load_dataset`
    folder: str  # its name in PyG, which is also the folder of its raw files
    family: str  # PyG's class for it, Planetoid or Coauthor
    num_shards: int  # the paper's k
    num_classes: int  # as published
    num_train: int | None = None  # training nodes of the published split, where there is one

    @property
    def raw_file(self) -> str:
        """The raw file whose presence stands for all of them."""
        if self.family == "Planetoid":
            return f"ind.{self.folder.lower()}.graph"
        return f"ms_academic_{self.folder[:4].lower()}.npz"


PUBLIC = {
    graph.name: graph
    for graph in (
        PublicGraph("cora", "Cora", "Planetoid", 20, 7, 140),
        PublicGraph("citeseer", "CiteSeer", "Planetoid", 20, 6, 120),
        PublicGraph("pubmed", "PubMed", "Planetoid", 50, 3, 60),
        PublicGraph("cs", "CS", "Coauthor", 30, 15),
        PublicGraph("physics", "Physics", "Coauthor", 100, 5),
    )
}


def data_root(root: str | Path | None = None) -> Path:
    """The folder of data sets: the argument, ``GRAPHERASER_DATA``, or the user's cache.

    For a user without a home, as in some containers, a folder among the temporary files.
    """
    if isinstance(root, str | Path):
        return Path(root)
    if root is not None:
        raise ParameterError.of("root", "load_dataset", "the path of a folder", root)
    if given := os.environ.get("GRAPHERASER_DATA"):
        return Path(given)
    try:
        return Path.home() / ".cache" / "grapheraser" / "data"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"grapheraser-{os.getuid()}" / "data"


def compact_file(name: str, root: Path) -> Path:
    """The path of a graph's compact npz file."""
    return root / f"{name}.npz"


def raw_file(public: PublicGraph, root: Path) -> Path:
    """The path of a graph's raw file."""
    return root / public.folder / "raw" / public.raw_file


def load_public(public: PublicGraph, root: Path) -> Graph:
    """Load a public graph; all of its sources give the same one."""
    compact = compact_file(public.name, root)
    if compact.exists():
        graph = Graph.from_npz(compact, num_classes=public.num_classes, name=public.name)
        return _binary(graph) if public.family == "Coauthor" else graph
    raw = raw_file(public, root)
    if not raw.exists():
        _download(public, root)
    return _read_coauthor(raw, public) if public.family == "Coauthor" else _planetoid(public, root)


def with_public_split(graph: Graph, public: PublicGraph, root: Path) -> Graph:
    """A Planetoid graph with its published split, whose test nodes a raw file lists."""
    path = raw_file(public, root).with_name(f"ind.{public.folder.lower()}.test.index")
    if not path.exists():
        _download(public, root)
    try:
        test = np.array(path.read_text().split(), dtype=np.int64)
    except (OSError, ValueError) as error:
        raise GraphError(f"{path}: not a readable list of test nodes ({error}).") from error
    start = public.num_train or 0
    return Graph.from_arrays(
        graph.x,
        graph.edges.T,
        graph.y,
        train=np.arange(start),
        validation=np.arange(start, start + _VALIDATION),
        test=test,
        num_classes=graph.num_classes,
        each_edge_once=True,
        name=public.name,
    )


def _binary(graph: Graph) -> Graph:
    """Replace the keyword counts of compact Coauthor files by PyG's ones."""
    x = sp.csr_array((np.ones_like(graph.x.data), graph.x.indices, graph.x.indptr), graph.x.shape)
    arrays, classes = (x, graph.edges.T, graph.y), graph.num_classes
    return Graph.from_arrays(*arrays, num_classes=classes, each_edge_once=True, name=graph.name)


def _planetoid(public: PublicGraph, root: Path) -> Graph:
    needs_torch(f"{raw_file(public, root).parent}: reading these files")
    from torch_geometric.datasets import Planetoid

    data = Planetoid(root=str(root), name=public.folder)[0]
    # The paper uses random splits, not the public one.
    data.train_mask = data.val_mask = data.test_mask = None
    return Graph.from_pyg(data, num_classes=public.num_classes, name=public.name)


def _read_coauthor(path: Path, public: PublicGraph) -> Graph:
    """Read PyG's raw file; PyG itself makes the features dense (Physics: 1.2 GB)."""
    try:
        with open(path, "rb") as file, np.load(checked(file), allow_pickle=False) as z:
            x = _csr(z, "attr")
            links = _csr(z, "adj").tocoo()
            labels = z["labels"]
    except (
        Exception
    ) as error:  # zip, zlib, struct and NumPy each raise their own for a damaged file
        raise GraphError(f"{path}: not a readable file ({error}).") from error
    x.data = np.ones_like(x.data)
    edges = np.stack([links.row, links.col])
    arrays, classes = (x, edges, labels), public.num_classes
    return Graph.from_arrays(*arrays, num_classes=classes, each_edge_once=True, name=public.name)


def _csr(z: Any, prefix: str) -> sp.csr_array:
    rows, columns = (int(size) for size in z[f"{prefix}_shape"])
    parts = tuple(z[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    matrix = sp.csr_array(parts, shape=(rows, columns))
    matrix.eliminate_zeros()
    return matrix


def _download(public: PublicGraph, root: Path) -> None:
    """Let PyG download the raw files; if that fails, list the paths that were searched."""
    try:
        needs_torch("a download")
        import torch_geometric.datasets

        getattr(torch_geometric.datasets, public.family)(root=str(root), name=public.folder)
    except Exception as error:
        install = f" For a download, {error.hint}" if isinstance(error, MissingExtraError) else ""
        raise DatasetNotFoundError(
            f"data set '{public.name}' is not on disk and could not be downloaded "
            f"({type(error).__name__}). Searched:\n"
            f"  {compact_file(public.name, root)}\n  {raw_file(public, root)}",
            hint="put one of these files there, or set GRAPHERASER_DATA to a folder that has it."
            + install,
        ) from error


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
