"""The compact npz format of public graphs: CSR features, every edge once, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.arrays import as_int64

_NEEDED = ("x_data", "x_indices", "x_indptr", "x_shape", "edge_index", "y")
_CARRIED = ("edge_weight", "edge_attr", "directed")


def read_npz(path: Path) -> dict[str, Any]:
    """The arguments of `Graph.from_arrays`; see `Graph.from_npz`."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as z:
            missing = [key for key in _NEEDED if key not in z.files]
            if missing:
                raise GraphError(f"{path}: keys {missing} are missing (found {z.files}).")
            there = [key for key in (*_NEEDED, *_CARRIED) if key in z.files]
            arrays: dict[str, NDArray[Any]] = {key: z[key] for key in there}
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file.") from None
    except GraphError:
        raise
    except (
        Exception
    ) as error:  # zip, zlib, struct and NumPy each raise their own for a damaged file
        raise GraphError(f"{path}: not a readable npz file ({error}).") from error
    try:
        x = _csr(arrays)
    except ValueError as error:
        raise GraphError(f"{path}: the feature matrix is malformed ({error}).") from error
    found = {"x": x, "edge_index": arrays["edge_index"], "y": arrays["y"]}
    found |= {key: arrays[key] for key in _CARRIED[:2] if key in arrays}
    return found | {"directed": _directed(path, arrays)}


def _directed(path: Path, arrays: dict[str, NDArray[Any]]) -> bool:
    given = arrays.get("directed", np.zeros(1, dtype=bool))
    if given.size != 1 or not np.isin(given, (0, 1)).all():
        raise GraphError(f"{path}: 'directed' must be a single 0 or 1 (found {given.tolist()}).")
    return bool(given.item())


def _csr(arrays: dict[str, NDArray[Any]]) -> sp.csr_array:
    """The feature matrix; `Graph.from_arrays` checks its content."""
    indices, indptr, shape = (arrays[f"x_{key}"] for key in ("indices", "indptr", "shape"))
    for array in (indices, indptr, shape):
        if array.dtype.kind not in "iu":
            raise ValueError(f"its shape and indices must be integers, found dtype {array.dtype}")
    if shape.shape != (2,):
        raise ValueError(f"its shape must be two numbers, found {shape.tolist()}")
    places = (as_int64(indices, "columns"), as_int64(indptr, "row pointers"))
    return sp.csr_array((arrays["x_data"], *places), shape=(int(shape[0]), int(shape[1])))
