"""The compact npz format of public graphs: CSR features, every edge once, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.arrays import as_int64


def read_npz(path: Path) -> tuple[sp.csr_array, NDArray[Any], NDArray[Any]]:
    """Read features, edges and labels; see `Graph.from_npz`."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as z:
            keys = ("x_data", "x_indices", "x_indptr", "x_shape", "edge_index", "y")
            missing = [key for key in keys if key not in z.files]
            if missing:
                raise GraphError(f"{path}: keys {missing} are missing (found {z.files}).")
            arrays: dict[str, NDArray[Any]] = {key: z[key] for key in keys}
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
    return x, arrays["edge_index"], arrays["y"]


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
