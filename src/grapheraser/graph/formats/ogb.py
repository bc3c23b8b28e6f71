"""OGB's folders of node property prediction, read from their raw files: no pickles, no ogb.

raw/edge.csv.gz                    a source and a target on each line, counted from 0
raw/node-feat.csv.gz               a row of numbers for each node
raw/node-label.csv.gz              a class on each line, empty or nan where it is not known
raw/num-node-list.csv.gz           the number of nodes
raw/edge-feat.csv.gz               a row of numbers for each edge, where edges have features
split/NAME/{train,valid,test}.csv.gz   rows of the nodes of each part
"""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.roles import UNLABELLED

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

_PARTS = {"train": "train", "validation": "valid", "test": "test"}
_READ = ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list", "edge-feat")


def is_ogb(folder: Path) -> bool:
    """Tell whether a folder has this layout."""
    return (folder / "raw").is_dir()


def from_ogb(
    _cls: type[Graph],
    /,
    folder: str | Path,
    *,
    split: str | None = None,
    directed: bool = False,
    num_classes: int | None = None,
    name: str | None = None,
) -> Graph:
    """Read the folder of one of OGB's graphs from its raw files, without pickles.

    Args:
        folder: with ``raw/edge.csv.gz`` and so on; see `graph.formats.ogb`.
        split: the folder of its split; default the only one there is.
        directed: keep the directions of the edges.
        num_classes: default the largest label + 1.
        name: for people; default that of the folder.
    """
    arrays = _arrays_of(Path(folder), split)
    return _cls.from_arrays(
        **arrays, directed=directed, num_classes=num_classes, name=name or Path(folder).name
    )


def _arrays_of(folder: Path, split: str | None) -> dict[str, Any]:
    """Read the arguments of `Graph.from_arrays`."""
    raw = folder / "raw"
    _check_layout(folder, raw)
    edges = _numbers(raw / "edge.csv.gz", np.int64)
    if edges.shape[1:] != (2,) and edges.size:
        raise GraphError(f"{raw / 'edge.csv.gz'}: an edge is two numbers (found {edges.shape[1]}).")
    x = _numbers(raw / "node-feat.csv.gz", np.float32)
    counted = raw / "num-node-list.csv.gz"
    if counted.exists() and _numbers(counted, np.int64).tolist() != [[len(x)]]:
        raise GraphError(
            f"{counted}: a graph of {len(x)} nodes has features "
            f"(found {_numbers(counted, np.int64).ravel().tolist()} nodes).",
            hint="folders of many graphs are not read: a graph is one graph.",
        )
    labels = labels_of(raw)
    y = np.full(len(x), UNLABELLED) if labels is None else labels
    found = {"x": x, "edge_index": edges.reshape(-1, 2).T, "y": y}
    if (raw / "edge-feat.csv.gz").exists():
        found["edge_attr"] = _numbers(raw / "edge-feat.csv.gz", np.float32)
    _warn_of(raw)
    return found | split_of(folder / "split", split)


def _check_layout(folder: Path, raw: Path) -> None:
    if (raw / "relations").exists() or (raw / "triplet-type-list.csv.gz").exists():
        raise GraphError(f"{folder}: heterogeneous graphs are not supported.")
    for name in ("edge", "node-feat"):
        file = raw / f"{name}.csv.gz"
        if not file.exists():
            raise GraphError(
                f"{file}: no such file.",
                hint="a folder of OGB has raw/edge.csv.gz and raw/node-feat.csv.gz."
                if not (raw / "data.npz").exists()
                else "this data set comes as binary files: make arrays of them, and "
                "Graph.from_arrays a graph.",
            )


def labels_of(raw: Path) -> NDArray[np.int64] | None:
    """Read the classes of all nodes, -1 where they are not known; None where there is no file."""
    file = raw / "node-label.csv.gz"
    if not file.exists():
        return None
    labels = _numbers(file, np.float64)
    if labels.shape[1:] != (1,):
        raise GraphError(
            f"{file}: a node has one class (found {labels.shape[1]} columns, several labels per "
            "node).",
            hint="keep one column of the file.",
        )
    flat = np.where(np.isnan(labels[:, 0]), UNLABELLED, labels[:, 0])
    if (flat != np.trunc(flat)).any():
        line = int(np.flatnonzero(flat != np.trunc(flat))[0]) + 1
        raise GraphError(f"{file}:{line}: labels must be classes (found {flat[line - 1]}).")
    return flat.astype(np.int64)


def split_of(folder: Path, name: str | None) -> dict[str, Any]:
    """Read the rows of the nodes of each part of a split; nothing where there is none."""
    found = (
        sorted(part.name for part in folder.iterdir() if part.is_dir()) if folder.exists() else []
    )
    if name is None and len(found) > 1:
        raise GraphError(f"{folder}: several splits.", hint=f"choose one of {', '.join(found)}.")
    if name is None and not found:
        return {}
    chosen = folder / (name or found[0])
    if name is not None and name not in found:
        raise GraphError(f"{folder}: no split '{name}' (found {', '.join(found) or 'none'}).")
    files = {part: chosen / f"{file}.csv.gz" for part, file in _PARTS.items()}
    if not any(file.exists() for file in files.values()):
        warnings.warn(f"{chosen}: only splits in csv.gz files are read.", stacklevel=4)
        return {}
    return {part: _numbers(file, np.int64).ravel() for part, file in files.items()}


def _warn_of(raw: Path) -> None:
    names = [file.name.removesuffix(".csv.gz") for file in sorted(raw.glob("*.csv.gz"))]
    for name in names:
        if name not in _READ:
            warnings.warn(
                f"{raw / name}.csv.gz is not used: make it part of the features if the model "
                "should see it.",
                stacklevel=4,
            )


def _numbers(file: Path, kind: Any) -> NDArray[Any]:
    """Read a file of numbers, a row on each line ``[lines, columns]``; empty lines are NaN."""
    return next(number_blocks(file, kind, None))


def number_blocks(file: Path, kind: Any, rows: int | None) -> Iterator[NDArray[Any]]:
    """Read a file of numbers in blocks of so many rows; None: at once.

    Only the first block may be empty.
    """
    try:
        with gzip.open(file, "rt") as lines:
            filled = (line if line.strip() else "nan\n" for line in lines)
            first, found = True, np.zeros((0, 0))
            while first or len(found):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # of a file without lines
                    found = np.loadtxt(filled, dtype=kind, delimiter=",", ndmin=2, max_rows=rows)
                if first or len(found):
                    yield found
                first = False
    except FileNotFoundError:
        raise GraphError(f"{file}: no such file.") from None
    except (OSError, EOFError, ValueError) as error:
        raise GraphError(f"{file}: not a readable table of numbers ({error}).") from error
