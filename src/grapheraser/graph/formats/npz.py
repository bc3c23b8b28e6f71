"""The compact npz format: a graph in one file of arrays, with all that it has.

    x                                  features, where they are dense; or as CSR
    x_data x_indices x_indptr x_shape
    edge_index                         ids of sources and targets; every undirected edge once
    y                                  classes, -1 where they are not known; or rows of targets

and where the graph has them

    ids                                of the nodes; default 0 .. n-1
    names names_indptr                 the names of the nodes, in UTF-8 one after the other
    role                               1 train, 2 test, 3 validation, 0 context
    num_classes
    class_names class_names_indptr     likewise; or an array of strings
    labels                             the kind, where these are no classes; see `graph.labels`
    target_names target_names_indptr   likewise
    label_range                        of numbers
    inferred                           parts of the schema that were found in the data
    encoding                           how columns of a table became features, as JSON
    types                              of nodes, and relations, as JSON; see `graph.types`
    edge_weight edge_attr directed
    train_idx val_idx test_idx         a published split, see `load_dataset`
    source                             where the data are from, for people to read
"""

from __future__ import annotations

import json
import math
import os
import warnings
import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.errors import CorruptRunError, GraphError
from grapheraser.graph.arrays import as_int64
from grapheraser.graph.build import are_ids
from grapheraser.graph.encoding import Encoding
from grapheraser.graph.ids import Names, packed_names, unpacked_names
from grapheraser.graph.pages.structure import check_structure
from grapheraser.graph.roles import PARTS, SHARDED_ROLES, UNLABELLED
from grapheraser.graph.types import Types
from grapheraser.untrusted import parse_json

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

Arrays = dict[str, NDArray[Any]]

_SPARSE = ("x_data", "x_indices", "x_indptr", "x_shape")
_NEEDED = ("edge_index", "y")
_CARRIED = ("edge_weight", "edge_attr")
_TEXTS = ("names", "class_names", "target_names")
_FOR_OTHERS = ("train_idx", "val_idx", "test_idx", "source")
_KIND = ("num_classes", "inferred", "labels", "label_range")
_OPTIONAL = (*_CARRIED, "directed", "ids", "role", *_KIND, "encoding", "types")


def from_npz(
    _cls: type[Graph],
    /,
    path: str | Path,
    *,
    num_classes: int | None = None,
    name: str | None = None,
) -> Graph:
    """Read the compact format, a file of arrays; see `graph.formats.npz` for its keys.

    A file that says nothing of a split has all labelled nodes for training.

    Args:
        path: of the file.
        num_classes: default what the file says, or the largest label + 1.
        name: for people; default that of the file.
    """
    arrays = _read(Path(path))
    if num_classes is not None:
        arrays["num_classes"] = num_classes
        arrays["inferred"] = [item for item in arrays["inferred"] if item != "classes"]
    encoding, types = arrays.pop("encoding"), arrays.pop("types")
    if types is not None:
        return _typed(_cls, arrays, types, name or Path(path).stem)
    graph = _cls.from_arrays(**arrays, each_edge_once=True, name=name or Path(path).stem)
    return graph.with_encoding(encoding)


def _typed(cls: type[Graph], arrays: dict[str, Any], types: Types, name: str) -> Graph:
    """Make a typed graph of the arguments of `Graph.from_arrays`."""
    names = arrays["ids"] if arrays["ids"].dtype.kind == "O" else None
    if names is not None:
        arrays["ids"] = types.ids_of_names(names)
    graph = cls.from_arrays(**arrays, each_edge_once=True, name=name)
    named = None if names is None else names[np.argsort(arrays["ids"])]
    made = graph.with_fields(types=types, names=named)
    try:
        check_structure(made.pages, made.label_kind, types)
    except CorruptRunError as error:
        raise GraphError(f"{name}: {error.message}") from error
    return made


def _read(path: Path) -> dict[str, Any]:
    """Read the arguments of `Graph.from_arrays`."""
    arrays = _arrays(path)
    try:
        found = {"x": _features(arrays), "edge_index": arrays["edge_index"], "y": arrays["y"]}
        found |= {key: arrays[key] for key in _CARRIED if key in arrays}
        found |= _of_nodes(arrays) | _of_classes(arrays)
        directed = bool(_single(arrays, "directed", (0, 1)))
        types = parse_json(str(_single(arrays, "types"))) if "types" in arrays else None
        kinds = Types.from_dict(types if types is None else _mapping(types))
        return {**found, "directed": directed, "encoding": _encoding(arrays), "types": kinds}
    except ValueError as error:
        raise GraphError(f"{path}: {error}.") from error


def _mapping(given: Any) -> dict[str, Any]:
    keys = {"names", "relations", "widths", "weighted"}
    if not isinstance(given, dict) or given.keys() != keys:
        raise ValueError(f"'types' must have {', '.join(sorted(keys))}")
    return given


def _arrays(path: Path) -> Arrays:
    try:
        with open(path, "rb") as file, np.load(checked(file), allow_pickle=False) as z:
            features = ("x",) if "x" in z.files else _SPARSE
            missing = [key for key in (*features, *_NEEDED) if key not in z.files]
            if missing:
                raise GraphError(f"{path}: keys {missing} are missing (found {z.files}).")
            texts = [key for name in _TEXTS for key in (name, f"{name}_indptr")]
            known = (*features, *_NEEDED, *_OPTIONAL, *texts)
            unused = [key for key in z.files if key not in (*known, *_FOR_OTHERS)]
            if unused:
                warnings.warn(f"{path}: keys {unused} are not used.", stacklevel=5)
            return {key: z[key] for key in known if key in z.files}
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file.") from None
    except GraphError:
        raise
    except (
        Exception
    ) as error:  # zip, zlib, struct and NumPy each raise their own for a damaged file
        raise GraphError(f"{path}: not a readable npz file ({error}).") from error


def checked(file: BinaryIO) -> BinaryIO:
    """Return an npz file; refuse one whose arrays are larger than they say, or than the memory.

    A file that is packed well may be a thousand times larger once it is read.
    """
    with zipfile.ZipFile(file) as archive:
        total = sum(member.file_size for member in archive.infolist())
        if total > _memory():
            raise ValueError(f"its arrays have {total:,} bytes, more than this machine's memory")
        for member in (one for one in archive.infolist() if one.filename.endswith(".npy")):
            with archive.open(member) as content:
                major, _ = np.lib.format.read_magic(content)
                header = np.lib.format.read_array_header_1_0
                header = header if major == 1 else np.lib.format.read_array_header_2_0
                shape, _, dtype = header(content)
            if math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError(f"{member.filename!r} is larger than it says")
    file.seek(0)
    return file


def _memory() -> int:
    """Bytes of memory of this machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**40


def _of_nodes(arrays: Arrays) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "names" in arrays and "ids" in arrays:
        raise ValueError("nodes have ids, or names, and not both")
    if "names" in arrays:
        found["ids"] = _texts(arrays, "names")
    elif "ids" in arrays:
        found["ids"] = arrays["ids"]
    if "role" in arrays:
        role = arrays["role"]
        if role.shape != arrays["y"].shape[:1] or not np.isin(role, SHARDED_ROLES["all"]).all():
            raise ValueError("'role' must be 0, 1, 2 or 3 for each node")
        found |= {part: role == code for part, code in PARTS.items()}
    return found


def _of_classes(arrays: Arrays) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "num_classes" in arrays:
        found["num_classes"] = int(_single(arrays, "num_classes"))
    if "class_names" in arrays:
        ids = arrays["class_names"].dtype.kind == "i" and arrays["class_names"].ndim == 1
        names = arrays["class_names"] if ids else _texts(arrays, "class_names")
        found["class_names"] = names.tolist()
    if "target_names" in arrays:
        found["target_names"] = _texts(arrays, "target_names").tolist()
    if "labels" in arrays:
        found["labels"] = str(_single(arrays, "labels"))
    if "label_range" in arrays:
        found["label_range"] = arrays["label_range"]
    inferred = arrays.get("inferred", np.zeros(0, dtype=str))
    if inferred.ndim != 1 or inferred.dtype.kind != "U":
        raise ValueError("'inferred' must be an array of strings")
    return found | {"inferred": inferred.tolist()}


def _encoding(arrays: Arrays) -> Encoding | None:
    """Read the rule of the features, a JSON text."""
    text = str(_single(arrays, "encoding")) if "encoding" in arrays else "null"
    rule = Encoding.of_list(parse_json(text))
    if rule is not None and rule.starts[-1:] != _features(arrays).shape[1:]:
        raise ValueError("'encoding' must make as many columns as there are features")
    return rule


def _texts(arrays: Arrays, key: str) -> Names:
    """Read strings, or those that are kept as bytes and where each begins."""
    if arrays[key].dtype.kind == "U" and arrays[key].ndim == 1:
        return arrays[key].astype(object)
    content, pointers = arrays[key], arrays.get(f"{key}_indptr", np.zeros(0, dtype=np.int64))
    sound = content.dtype == np.uint8 and pointers.dtype.kind in "iu" and pointers.ndim == 1
    if not sound or not len(pointers) or pointers[0] != 0 or pointers[-1] != len(content):
        raise ValueError(f"'{key}' must be bytes, and '{key}_indptr' where each text begins")
    if (np.diff(pointers) < 0).any():
        raise ValueError(f"'{key}_indptr' must be ascending")
    head = pointers.astype(np.int64).tobytes()
    block = np.frombuffer(head + content.tobytes(), dtype=np.uint8)
    return unpacked_names(block, len(pointers) - 1)


def _single(arrays: Arrays, key: str, allowed: tuple[int, ...] | None = None) -> Any:
    given = arrays.get(key, np.zeros(1, dtype=bool))
    if given.size != 1 or (allowed is not None and not np.isin(given, allowed).all()):
        wanted = "a single 0 or 1" if allowed else "a single number"
        raise ValueError(f"'{key}' must be {wanted} (found {given.tolist()})")
    return given.item()


def _features(arrays: Arrays) -> sp.csr_array | NDArray[Any]:
    """Read the feature matrix; `Graph.from_arrays` checks its content."""
    if "x" in arrays:
        return arrays["x"]
    try:
        return _csr(arrays)
    except ValueError as error:
        raise ValueError(f"the feature matrix is malformed ({error})") from error


def _csr(arrays: Arrays) -> sp.csr_array:
    indices, indptr, shape = (arrays[f"x_{key}"] for key in ("indices", "indptr", "shape"))
    for array in (indices, indptr, shape):
        if array.dtype.kind not in "iu":
            raise ValueError(f"its shape and indices must be integers, found dtype {array.dtype}")
    if shape.shape != (2,):
        raise ValueError(f"its shape must be two numbers, found {shape.tolist()}")
    places = (as_int64(indices, "columns"), as_int64(indptr, "row pointers"))
    return sp.csr_array((arrays["x_data"], *places), shape=(int(shape[0]), int(shape[1])))


# -- writing --------------------------------------------------------------------------------------


def to_npz(graph: Graph, path: str | Path) -> None:
    """Write the compact format with all that the graph has; its name is that of the file.

    The same graph gives the same bytes.
    """
    with open(path, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, array in arrays_of(graph).items():
            content = BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            member = zipfile.ZipInfo(f"{key}.npy")  # of a fixed date
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content.getvalue())


def arrays_of(graph: Graph) -> Arrays:
    """Return all that a graph has, by the keys of the format."""
    x, at = graph.x, graph.edge_index
    chosen = np.ones(at.shape[1], dtype=bool) if graph.directed else at[0] < at[1]
    found: Arrays = {"x": x.toarray()} if graph.pages.dense else {}
    if not graph.pages.dense:
        parts = (x.data, x.indices, x.indptr, np.array(x.shape))
        found = dict(zip(_SPARSE, parts, strict=True))
    found |= {"edge_index": graph.ids[at[:, chosen]], "y": graph.y}
    found |= {"ids": graph.ids} if graph.names is None else _packed("names", graph.names)
    found |= {"role": graph.role}
    kind = graph.label_kind
    if kind.is_classes:
        found["num_classes"] = np.array([graph.num_classes])
    else:
        found["labels"] = np.array([kind.name])
    if kind.is_numbers:
        found["label_range"] = kind.label_range
    carried = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
    found |= {key: values[chosen] for key, values in carried.items() if values is not None}
    found |= {"directed": np.array([True])} if graph.directed else {}
    found |= {"inferred": np.array(graph.inferred)} if graph.inferred else {}
    if graph.encoding is not None:
        found |= {"encoding": np.array([json.dumps(graph.encoding.to_list())])}
    if graph.types is not None:
        found |= {"types": np.array([json.dumps(graph.types.to_dict())])}
    if are_ids(graph.class_names):
        ids = np.array([*graph.class_names, UNLABELLED])
        found |= {"class_names": ids[:-1], "y": ids[graph.y]}
    elif graph.class_names:
        names = "class_names" if kind.is_classes else "target_names"
        found |= _packed(names, np.array(graph.class_names, dtype=object))
    return found


def _packed(key: str, texts: Names) -> Arrays:
    block, end = packed_names(texts), 8 * (len(texts) + 1)
    return {key: block[end:], f"{key}_indptr": block[:end].view(np.int64)}
