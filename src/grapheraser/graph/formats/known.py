"""A graph from a file or a folder in any format that is known, by what it looks like."""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grapheraser.checks import one_of
from grapheraser.environment import needs_torch
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.formats.networks import READERS, read_network
from grapheraser.graph.formats.ogb import is_ogb
from grapheraser.graph.formats.tables import PARQUET, headless, opened, table_of

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph
    from grapheraser.graph.types import Relation

FORMATS = ("npz", "tables", "typed", "facts", "ogb", "networkx", "scipy", "pyg")
_TABLES = (".csv", ".tsv", ".txt", *PARQUET)
_NODES, _EDGES = "nodes", "edges"
_FACT = ("head", "relation", "tail")


def format_of(source: Path) -> str:
    """Tell the format of a file or folder."""
    if not source.exists():
        raise GraphError(f"{source}: no such file or folder.")
    found = _folder_format(source) if source.is_dir() else _file_format(source)
    if found:
        return found
    raise GraphError(
        f"{source}: not a format that is known.",
        hint=f"name it: {', '.join(FORMATS)}. A folder of tables has nodes.csv and edges.csv.",
    )


def _folder_format(source: Path) -> str:
    if is_ogb(source):
        return "ogb"
    if (source / _NODES).is_dir():
        return "typed"
    return "tables" if _found(source, _NODES) or _found(source, _EDGES) else ""


def _file_format(source: Path) -> str:
    suffix = _suffix(source)
    if suffix == ".npz":
        return "scipy" if _is_scipy(source) else "npz"
    if _is_table(source):
        return "facts" if _is_facts(source) else "tables"
    if suffix in (".pt", ".pth"):
        return "pyg"
    return "networkx" if suffix in READERS else ""


def _suffix(source: Path) -> str:
    return Path(source.name.removesuffix(".gz")).suffix


def _is_table(source: Path) -> bool:
    return _suffix(source) in _TABLES


def _is_scipy(source: Path) -> bool:
    try:
        with zipfile.ZipFile(source) as archive:
            return {"format.npy", "indptr.npy", "shape.npy"} <= set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _is_facts(source: Path) -> bool:
    """Tell whether a table says in its first line that it holds facts."""
    if source.suffix in PARQUET:
        return False
    try:
        with opened(source) as file:
            words = file.readline().replace("\t", ",").replace(";", ",").split(",")
    except (OSError, EOFError, UnicodeDecodeError):
        return False
    return {word.strip() for word in words} >= {*_FACT}


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
            ``edges.csv``; of a typed graph ``nodes/TYPE.csv`` and ``edges/SOURCE-NAME-TARGET.csv``)
            or of OGB, a table of facts (``head``, ``relation``, ``tail``), a GraphML or GML file, a
            sparse adjacency saved by SciPy, or a PyG ``Data`` or ``HeteroData`` saved by
            ``torch.save``.
        format: npz, tables, typed, facts, ogb, networkx, scipy or pyg; default: what it looks like.
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
    if kind == "typed" and "target" not in options:
        raise ParameterError("a typed graph needs 'target', the type whose nodes have labels.")
    read: dict[str, Callable[[], tuple[Any, ...]]] = {
        "tables": lambda: tables_in(source, other),
        "typed": lambda: _typed_tables_in(source),
        "facts": lambda: (_facts_in(source),),
        "networkx": lambda: (read_network(source),),
        "scipy": lambda: (_read_adjacency(source),),
        "pyg": lambda: (_read_data(source),),
    }
    parts = read[kind]() if kind in read else (source,)
    made: Graph = _maker(_cls, kind)(*parts, **options)
    return made


def _maker(cls: type[Graph], kind: str) -> Any:
    return getattr(cls, "from_typed_tables" if kind == "typed" else f"from_{kind}")


def _check_options(cls: type[Graph], kind: str, given: Iterable[str]) -> None:
    """Refuse an option that the format has no use for."""
    first = cls.from_tables if kind == "networkx" else _maker(cls, kind)
    known = set(inspect.signature(first).parameters)
    more: dict[str, Any] = {"scipy": cls.from_arrays, "typed": cls.from_tables}
    known |= set(inspect.signature(more[kind]).parameters) if kind in more else set()
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


def _typed_tables_in(source: Path) -> tuple[dict[str, Path], dict[Relation, Path]]:
    """Find the tables of types and of relations, which are named after them."""
    nodes, edges = (
        {p.name.split(".")[0]: p for p in sorted((source / kind).glob("*")) if _is_table(p)}
        for kind in (_NODES, _EDGES)
    )
    relations = {}
    for name, path in edges.items():
        first, _, rest = name.partition("-")
        middle, _, last = rest.rpartition("-")
        if not middle:
            raise GraphError(f"{path}: a table of edges is named SOURCE-NAME-TARGET.")
        relations[first, middle, last] = path
    return nodes, relations


def _facts_in(source: Path) -> list[tuple[Any, ...]]:
    """Read facts from a table; its first line may be one of them."""
    table = table_of(source, "facts")
    if len(table.columns) == len(_FACT) and not {*_FACT} & table.columns.keys():
        table = headless(table, _FACT)
    return list(zip(*(table.column(name, name) for name in _FACT), strict=True))


def _read_adjacency(source: Path) -> Any:
    import scipy.sparse as sp

    try:
        return sp.load_npz(source)
    except Exception as error:  # zip, zlib, struct and NumPy each raise their own
        raise GraphError(f"{source}: not a readable sparse matrix ({error}).") from error


def _read_data(source: Path) -> Any:
    """Read a PyG ``Data`` or ``HeteroData`` that was saved by `torch.save`.

    Nothing is unpickled but these and tensors.
    """
    import pickle

    needs_torch("a PyG Data in a file")
    import torch
    from torch_geometric.data import Data, HeteroData
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import BaseStorage, EdgeStorage, GlobalStorage, NodeStorage

    # torch forgets these again when it is done, and PyG needs those that it allowed itself.
    allowed = torch.serialization.get_safe_globals()
    stores = BaseStorage, GlobalStorage, NodeStorage, EdgeStorage
    needed = (Data, HeteroData, DataEdgeAttr, DataTensorAttr, *stores)
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
    if not isinstance(data, Data | HeteroData):
        raise GraphError(f"{source}: not a PyG Data (found {type(data).__name__}).")
    return data
