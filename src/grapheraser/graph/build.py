"""From raw arrays to a checked graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.arrays import as_array, as_int64
from grapheraser.graph.csr import as_ids, csr_from_pairs
from grapheraser.graph.roles import NO_ROLE, TEST, TRAIN, UNLABELLED

_MOST = 2**31 - 1


def checked_fields(
    x: Any,
    edge_index: ArrayLike,
    y: ArrayLike,
    ids: ArrayLike | None,
    train: ArrayLike | None,
    test: ArrayLike | None,
    num_classes: int | None,
    each_edge_once: bool,
) -> dict[str, Any]:
    """The fields of a `Graph` from raw arrays; see `Graph.from_arrays`."""
    features = _check_features(x)
    n = features.shape[0]
    node_ids = np.arange(n, dtype=np.int64) if ids is None else _check_ids(ids, n)
    labels, classes = _check_labels(y, n, num_classes)
    order = np.argsort(node_ids, kind="stable")
    node_ids, features, labels = node_ids[order], sp.csr_array(features[order]), labels[order]
    indptr, indices, notes = _check_edges(edge_index, node_ids, each_edge_once)
    role = _check_roles(node_ids, labels, train, test)
    return {
        "ids": node_ids,
        "indptr": indptr,
        "indices": indices,
        "x": features,
        "y": labels,
        "role": role,
        "num_classes": classes,
        "notes": notes,
    }


def read_npz(path: Path) -> tuple[sp.csr_array, NDArray[Any], NDArray[Any]]:
    """Features, edges and labels of a compact npz file; see `Graph.from_npz`."""
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
    except Exception as error:  # zip, zlib, struct, numpy: each has its own for a damaged file
        raise GraphError(f"{path}: not a readable npz file ({error}).") from error
    try:
        x = _csr(arrays)
    except ValueError as error:
        raise GraphError(f"{path}: the feature matrix is malformed ({error}).") from error
    return x, arrays["edge_index"], arrays["y"]


def _csr(arrays: dict[str, NDArray[Any]]) -> sp.csr_array:
    """The features of a compact npz file; their content is checked with all others'."""
    indices, indptr, shape = (arrays[f"x_{key}"] for key in ("indices", "indptr", "shape"))
    for array in (indices, indptr, shape):
        if array.dtype.kind not in "iu":
            raise ValueError(f"its shape and indices must be integers, found dtype {array.dtype}")
    if shape.shape != (2,):
        raise ValueError(f"its shape must be two numbers, found {shape.tolist()}")
    places = (as_int64(indices, "columns"), as_int64(indptr, "row pointers"))
    return sp.csr_array((arrays["x_data"], *places), shape=(int(shape[0]), int(shape[1])))


def check_new_row(
    node: int, features: Any, label: int, num_features: int, num_classes: int
) -> sp.csr_array:
    """Check one node to be inserted; returns its feature row ``[1, num_features]``."""
    (node_id,) = as_ids([node])
    if node_id < 0:
        raise GraphError(f"node ids must be non-negative (found {node_id}).")
    row = _check_features(
        features if sp.issparse(features) else as_array(features, "features")[None]
    )
    if row.shape != (1, num_features):
        raise GraphError(f"a new node needs {num_features} features (found shape {row.shape}).")
    (_,), _ = _check_labels([label], 1, num_classes)
    if label == UNLABELLED:
        raise GraphError("training nodes need a label (found -1).")
    return row


def _check_features(x: Any) -> sp.csr_array:
    x = x if sp.issparse(x) else as_array(x, "features")
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise GraphError(f"features must be a numeric matrix (found {x.ndim}-d, dtype {x.dtype}).")
    if x.shape[1] > _MOST:
        raise GraphError(f"at most {_MOST} feature columns can be had (found {x.shape[1]}).")
    # What doesn't fit into a float32 becomes infinite, and is found below.
    with np.errstate(over="ignore"):
        features = sp.csr_array(x, dtype=np.float32, copy=True)
    try:
        features.check_format(full_check=True)
    except ValueError as error:
        raise GraphError(f"the feature matrix is malformed ({error}).") from error
    bad = ~np.isfinite(features.data)
    if bad.any():
        row = int(np.searchsorted(features.indptr, np.flatnonzero(bad)[0], side="right")) - 1
        raise GraphError(
            f"features must be finite (found {features.data[bad][0]} in row {row}; "
            f"{int(bad.sum())} such values)."
        )
    features.sum_duplicates()
    features.eliminate_zeros()
    features.indices = features.indices.astype(np.int32)
    features.indptr = features.indptr.astype(np.int32 if features.nnz < 2**31 else np.int64)
    return features


def _check_ids(ids: ArrayLike, n: int) -> NDArray[np.int64]:
    node_ids = as_ids(ids)
    if len(node_ids) != n:
        raise GraphError(f"ids must name every feature row: {n} rows (found {len(node_ids)} ids).")
    if n and node_ids.min() < 0:
        raise GraphError(f"node ids must be non-negative (found {node_ids.min()}).")
    values, counts = np.unique(node_ids, return_counts=True)
    if (counts > 1).any():
        raise GraphError(f"node ids must be unique (found {values[counts > 1][0]} twice).")
    return node_ids


def _check_labels(y: ArrayLike, n: int, num_classes: int | None) -> tuple[NDArray[np.int64], int]:
    labels = as_array(y, "labels")
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iu"):
        raise GraphError(
            f"labels must be a flat integer array (found {labels.ndim}-d, dtype {labels.dtype})."
        )
    if len(labels) != n:
        raise GraphError(f"labels must match the {n} feature rows (found {len(labels)}).")
    labels = as_int64(labels, "labels")
    classes = int(labels.max(initial=-1)) + 1 if num_classes is None else num_classes
    if isinstance(classes, bool) or not isinstance(classes, int | np.integer):
        raise ParameterError.of("num_classes", "Graph", "an int", classes)
    if classes > _MOST:
        raise GraphError(f"at most {_MOST} classes can be had (found {classes}).")
    classes = int(classes)
    outside = (labels < UNLABELLED) | (labels >= classes)
    if outside.any():
        raise GraphError(
            f"labels must be in [0, {classes - 1}], or -1 where unknown "
            f"(found {labels[outside][0]})."
        )
    return labels, max(classes, 1)


def _check_edges(
    edge_index: ArrayLike, ids: NDArray[np.int64], each_edge_once: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32], tuple[str, ...]]:
    pairs = as_array(edge_index, "edge_index")
    if pairs.size == 0:
        pairs = np.zeros((2, 0), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
        raise GraphError(
            f"edge_index must be an integer array of shape [2, m] "
            f"(found {list(pairs.shape)}, dtype {pairs.dtype})."
        )
    n = len(ids)
    flat = as_int64(pairs, "edge end points")
    at = np.minimum(np.searchsorted(ids, flat), max(n - 1, 0))
    unknown = ids[at] != flat if n else np.ones(flat.shape, dtype=bool)
    if unknown.any():
        allowed = f"one of the {n} node ids" if n else "absent: the graph has no nodes"
        raise GraphError(f"edge end points must be {allowed} (found {flat[unknown][0]}).")

    notes = []
    loops = at[0] == at[1]
    if loops.any():
        notes.append(f"{int(loops.sum())} self-loops dropped")
    at = at[:, ~loops]
    keys = at[0] * max(n, 1) + at[1]
    distinct = np.unique(keys)
    if len(distinct) < len(keys):
        notes.append(f"{len(keys) - len(distinct)} duplicate edges dropped")
    reverse = (distinct % max(n, 1)) * max(n, 1) + distinct // max(n, 1)
    one_way = int((~np.isin(reverse, distinct)).sum())
    if one_way and not each_edge_once:
        notes.append(f"the input was directed: {one_way} edges were given their reverse")
    indptr, indices = csr_from_pairs(
        np.concatenate([at[0], at[1]]), np.concatenate([at[1], at[0]]), n
    )
    return indptr, indices, tuple(notes)


def _check_roles(
    ids: NDArray[np.int64],
    labels: NDArray[np.int64],
    train: ArrayLike | None,
    test: ArrayLike | None,
) -> NDArray[np.int8]:
    role = np.full(len(ids), NO_ROLE, dtype=np.int8)
    test_ids = as_ids(()) if test is None else as_ids(test)
    for what, nodes in (("test", test_ids), ("train", as_ids(()) if train is None else train)):
        outside = ~np.isin(as_ids(nodes), ids)
        if outside.any():
            raise GraphError(f"{what} node {as_ids(nodes)[outside][0]} is not a node id.")
    in_test = np.isin(ids, test_ids)
    in_train = (labels != UNLABELLED) & ~in_test if train is None else np.isin(ids, as_ids(train))
    if (in_train & in_test).any():
        raise GraphError(f"node {ids[in_train & in_test][0]} is both a training and a test node.")
    if (in_train & (labels == UNLABELLED)).any():
        node = ids[in_train & (labels == UNLABELLED)][0]
        raise GraphError(f"training nodes need a label (node {node} has none).")
    role[in_train], role[in_test] = TRAIN, TEST
    return role
