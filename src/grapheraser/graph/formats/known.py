"""A graph from a file or a folder in any format that is known, by what it looks like."""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapheraser.checks import one_of
from grapheraser.environment import needs_torch
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.formats.networks import READERS
from grapheraser.graph.formats.ogb import is_ogb
from grapheraser.graph.formats.tables import PARQUET

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

FORMATS = ("npz", "tables", "ogb", "networkx", "scipy", "pyg")
_TABLES = (".csv", ".tsv", ".txt", *PARQUET)
_NODES, _EDGES = "nodes", "edges"


def format_of(source: Path) -> str:
    """Tell the format of a file or folder."""
    if not source.exists():
        raise GraphError(f"{source}: no such file or folder.")
    if source.is_dir():
        if is_ogb(source):
            return "ogb"
        if _found(source, _NODES) or _found(source, _EDGES):
            return "tables"
    suffix = _suffix(source)
    if suffix == ".npz":
        return "scipy" if _is_scipy(source) else "npz"
    if suffix in _TABLES:
        return "tables"
    if suffix in READERS:
        return "networkx"
    if suffix in (".pt", ".pth"):
        return "pyg"
    raise GraphError(
        f"{source}: not a format that is known.",
        hint=f"name it: {', '.join(FORMATS)}. A folder of tables has nodes.csv and edges.csv.",
    )


def _suffix(source: Path) -> str:
    return Path(source.name.removesuffix(".gz")).suffix


def _is_scipy(source: Path) -> bool:
    try:
        with zipfile.ZipFile(source) as archive:
            return {"format.npy", "indptr.npy", "shape.npy"} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _found(folder: Path, stem: str) -> Path | None:
    """Find the table of this name in a folder."""
    for suffix in _TABLES:
        for name in (f"{stem}{suffix}", f"{stem}{suffix}.gz"):
            if (folder / name).exists():
                return folder / name
    return None


def from_file(
    _cls: type[Graph],
    /,
    source: str | Path,
    *,
    format: str | None = None,
    edges: str | Path | None = None,
    **options: Any,
) -> Graph:
    """Read a graph from a file or folder in any of the formats.

    Args:
        source: a compact npz, a table of nodes, a folder of tables (``nodes.csv`` and
            ``edges.csv``) or of OGB, a GraphML or GML file, a sparse adjacency saved by SciPy,
            or a PyG ``Data`` saved by ``torch.save``.
        format: npz, tables, ogb, networkx, scipy or pyg; default: what it looks like.
        edges: the table of edges, where ``source`` is a table of nodes.
        options: those of the format's own ``from_*``.
    """
    source, other = Path(source), None if edges is None else Path(edges)
    kind = format_of(source) if format is None else format
    one_of("format", "Graph.from_file", kind, FORMATS)
    if edges is not None and kind != "tables":
        raise ParameterError(f"'edges' of Graph.from_file goes with tables (found {kind}).")
    given = {key: value for key, value in options.items() if value is not None}
    _check_options(_cls, kind, given)
    options = {"name": source.name.split(".")[0], **given}
    if kind == "tables":
        return _cls.from_tables(*tables_in(source, other), **options)
    if kind == "networkx":
        from grapheraser.graph.formats.networks import read_network

        return _cls.from_networkx(read_network(source), **options)
    if kind == "scipy":
        return _cls.from_scipy(_read_adjacency(source), **options)
    if kind == "pyg":
        return _cls.from_pyg(_read_data(source), **options)
    return getattr(_cls, f"from_{kind}")(source, **options)


def _check_options(cls: type[Graph], kind: str, given: Iterable[str]) -> None:
    """Refuse an option that the format has no use for."""
    made_by: dict[str, Any] = {"networkx": cls.from_tables, "scipy": cls.from_scipy}
    known = set(inspect.signature(made_by.get(kind, getattr(cls, f"from_{kind}"))).parameters)
    known |= set(inspect.signature(cls.from_arrays).parameters) if kind == "scipy" else set()
    for option in given:
        if option not in known:
            raise ParameterError(
                f"'{option}' of Graph.from_file has no part in the format '{kind}'."
            )


def tables_in(source: Path, edges: Path | None) -> tuple[Path | None, Path]:
    """Find the table of nodes, where there is one, and that of edges."""
    if source.is_dir():
        nodes, found = _found(source, _NODES), edges or _found(source, _EDGES)
        if found is None:
            raise GraphError(f"{source}: there is no table 'edges', such as edges.csv.")
        return nodes, found
    if edges is not None:
        return source, edges
    raise GraphError(
        f"{source}: a table of nodes needs one of edges.",
        hint="name it (--edges FILE); or put both into a folder, as nodes.csv and edges.csv.",
    )


def _read_adjacency(source: Path) -> Any:
    import scipy.sparse as sp

    try:
        return sp.load_npz(source)
    except Exception as error:  # zip, zlib, struct and NumPy each raise their own
        raise GraphError(f"{source}: not a readable sparse matrix ({error}).") from error


def _read_data(source: Path) -> Any:
    """Read a PyG ``Data`` that was saved by `torch.save`; only a Data and tensors are unpickled."""
    import pickle

    needs_torch("a PyG Data in a file")
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    # torch forgets these again when it is done, and PyG needs those that it allowed itself.
    allowed = torch.serialization.get_safe_globals()
    needed = (Data, DataEdgeAttr, DataTensorAttr, GlobalStorage)
    try:
        with torch.serialization.safe_globals([kind for kind in needed if kind not in allowed]):
            found = torch.load(source, weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise GraphError(
            f"{source}: not a file that holds a PyG Data and nothing else "
            f"({type(error).__name__}).",
            hint="read it in Python, and write Graph.from_pyg(data).to_npz(path).",
        ) from error
    data = found[0] if isinstance(found, tuple | list) and found else found
    if not isinstance(data, Data):
        raise GraphError(f"{source}: not a PyG Data (found {type(data).__name__}).")
    return data
