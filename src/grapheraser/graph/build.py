"""Check raw arrays and turn them into the fields of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import whole
from grapheraser.errors import GraphError
from grapheraser.graph.arrays import as_array, as_int64, fresh
from grapheraser.graph.edge_input import EdgeInput, checked_edges
from grapheraser.graph.ids import as_given, ids_among, shown
from grapheraser.graph.names import Names, ids_and_names
from grapheraser.graph.roles import CONTEXT, TEST, TRAIN, UNLABELLED, VALIDATION

_MOST = 2**31 - 1
_ROLES = {TRAIN: "training", TEST: "test", VALIDATION: "validation"}
# Ids of the training, test and validation nodes, where they are given.
Split = tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None]


def checked_fields(
    x: Any,
    edge_index: ArrayLike,
    y: ArrayLike,
    ids: ArrayLike | None,
    split: Split,
    num_classes: int | None,
    given: EdgeInput,
    class_names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The fields of a `Graph`, all of them fresh; see `Graph.from_arrays`."""
    features = check_features(x)
    n = features.shape[0]
    node_ids, names = (np.arange(n), None) if ids is None else _check_ids(ids, n)
    y, class_names = classes_of(y, class_names)
    if class_names and num_classes is None:
        num_classes = len(class_names)
    labels, classes = check_labels(y, n, num_classes)
    if class_names and len(class_names) != classes:
        raise GraphError(f"there are {classes} classes (found names of {len(class_names)}).")
    chosen = [_of_role(role, part, node_ids) for role, part in zip(_ROLES, split, strict=True)]
    if n and (np.diff(node_ids) < 0).any():
        order = np.argsort(node_ids, kind="stable")
        node_ids, features, labels = node_ids[order], features[order], labels[order]
        names = None if names is None else names[order]
    adjacency = checked_edges(edge_index, node_ids, given)
    role = _check_roles(node_ids, labels, chosen, names)
    return fresh(
        ids=node_ids,
        x=features,
        y=labels,
        role=role,
        num_classes=classes,
        names=names,
        class_names=class_names,
        **adjacency._asdict(),
    )


def classes_of(y: Any, names: Sequence[str] | None) -> tuple[Any, tuple[str, ...]]:
    """Labels as integers, and the names of the classes where they have any.

    Labels that are words stand for the classes of these names, by default all words there are, in
    the order of the alphabet. None and the empty word are labels that are not known.
    """
    classes = tuple(map(str, names or ()))
    if len(set(classes)) < len(classes):
        raise GraphError(f"names of classes must be unique (found {', '.join(classes)}).")
    words = as_array(_boxed(y), "labels")
    plain = words.tolist() if words.ndim == 1 and words.dtype.kind in "UO" else []
    if not any(isinstance(word, str) for word in plain):
        return y, classes
    known = {word for word in plain if word is not None and word != ""}
    others = [word for word in known if not isinstance(word, str)]
    if others:
        raise GraphError(f"labels must be words, or integers, and not both (found {others[0]!r}).")
    classes = classes or tuple(sorted(known))
    number = {name: at for at, name in enumerate(classes)}
    unknown = sorted(known - number.keys())
    if unknown:
        raise GraphError(
            f"labels must be among the classes {', '.join(classes)} (found {unknown[0]!r})."
        )
    return np.array([number.get(word, UNLABELLED) for word in plain], dtype=np.int64), classes


def _boxed(y: Any) -> Any:
    """A list with words in it as an array of objects, lest NumPy make words of all."""
    if not isinstance(y, list | tuple) or not any(isinstance(label, str) for label in y):
        return y
    boxed = np.empty(len(y), dtype=object)
    boxed[:] = y
    return boxed


def check_features(x: Any) -> sp.csr_array | NDArray[np.float32]:
    """Float32 features that nobody else holds: dense where most entries are not 0, else CSR."""
    x = x if sp.issparse(x) else as_array(x, "features")
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise GraphError(f"features must be a numeric matrix (found {x.ndim}-d, dtype {x.dtype}).")
    if x.shape[1] > _MOST:
        raise GraphError(f"a graph has at most {_MOST} feature columns (found {x.shape[1]}).")
    # A value too large for float32 becomes infinite and is refused below.
    with np.errstate(over="ignore"):
        if not sp.issparse(x) and 2 * np.count_nonzero(x) > x.size:
            dense: NDArray[np.float32] = np.array(x, dtype=np.float32, order="C")
            _refuse_infinite(dense.ravel(), np.arange(0, dense.size + 1, dense.shape[1]))
            return dense
        features = sp.csr_array(x, dtype=np.float32, copy=True)
    try:
        features.check_format(full_check=True)
    except ValueError as error:
        raise GraphError(f"the feature matrix is malformed ({error}).") from error
    _refuse_infinite(features.data, features.indptr)
    features.sum_duplicates()
    features.eliminate_zeros()
    features.indices = features.indices.astype(np.int32)
    features.indptr = features.indptr.astype(np.int32 if features.nnz < 2**31 else np.int64)
    return features


def _refuse_infinite(values: NDArray[np.float32], indptr: NDArray[Any]) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.searchsorted(indptr, np.flatnonzero(~finite)[0], side="right")) - 1
        raise GraphError(
            f"features must be finite (found {values[~finite][0]} in row {row}; "
            f"{int((~finite).sum())} such values)."
        )


def _check_ids(ids: ArrayLike, n: int) -> tuple[NDArray[np.int64], Names | None]:
    """The ids of all rows, and the names that they were given by."""
    node_ids, names = ids_and_names(ids)
    if len(node_ids) != n:
        raise GraphError(f"ids must name every feature row: {n} rows (found {len(node_ids)} ids).")
    if names is not None:
        return node_ids, names
    if n and node_ids.min() < 0:
        raise GraphError(f"node ids must be non-negative (found {node_ids.min()}).")
    values, counts = np.unique(node_ids, return_counts=True)
    if (counts > 1).any():
        raise GraphError(f"node ids must be unique (found {values[counts > 1][0]} twice).")
    return node_ids, None


def check_labels(y: ArrayLike, n: int, num_classes: int | None) -> tuple[NDArray[np.int64], int]:
    """The labels of n nodes, and how many classes there are."""
    labels = as_array(y, "labels")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.reshape(-1)
    if labels.ndim == 2:
        raise GraphError(
            f"a node has one class: labels must be a flat integer array (found shape "
            f"{list(labels.shape)}, several labels per node).",
            hint="choose one column, y[:, 0]; of one-hot rows, y.argmax(axis=1).",
        )
    if labels.size and labels.dtype.kind == "f":
        raise GraphError(
            f"labels must be classes, in a flat integer array (found dtype {labels.dtype}): "
            "numbers are not predicted.",
            hint="y.astype(int) where they are classes; np.digitize(y, edges) makes classes.",
        )
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iu"):
        raise GraphError(
            f"labels must be a flat integer array (found {labels.ndim}-d, dtype {labels.dtype})."
        )
    if len(labels) != n:
        raise GraphError(f"labels must match the {n} feature rows (found {len(labels)}).")
    labels = as_int64(labels, "labels")
    given = int(labels.max(initial=-1)) + 1 if num_classes is None else num_classes
    classes = whole("num_classes", "Graph", given)
    if classes > _MOST:
        raise GraphError(f"a graph has at most {_MOST} classes (found {classes}).")
    outside = (labels < UNLABELLED) | (labels >= classes)
    if outside.any():
        raise GraphError(
            f"labels must be in [0, {classes - 1}], or -1 where unknown "
            f"(found {labels[outside][0]})."
        )
    return labels, max(classes, 1)


def _check_roles(
    ids: NDArray[np.int64],
    labels: NDArray[np.int64],
    chosen: Sequence[NDArray[np.int64] | None],
    names: Names | None,
) -> NDArray[np.int8]:
    """The role of each node, from the ids of the training, test and validation nodes."""
    train, *rest = (None if nodes is None else np.isin(ids, nodes) for nodes in chosen)
    none = np.zeros(len(ids), dtype=bool)
    test, validation = (none if nodes is None else nodes for nodes in rest)
    if train is None:
        train = (labels != UNLABELLED) & ~test & ~validation
    called = ids if names is None else names
    role = np.full(len(ids), CONTEXT, dtype=np.int8)
    for code, nodes in ((TRAIN, train), (TEST, test), (VALIDATION, validation)):
        twice = nodes & (role != CONTEXT)
        if twice.any():
            words = " and a ".join(_ROLES[c] for c in (int(role[twice][0]), code))
            raise GraphError(f"node {shown(called[twice][0])} is both a {words} node.")
        role[nodes] = code
    bare = train & (labels == UNLABELLED)
    if bare.any():
        raise GraphError(f"training nodes need a label (node {shown(called[bare][0])} has none).")
    return role


def _of_role(role: int, nodes: ArrayLike | None, ids: NDArray[np.int64]) -> Any:
    """The ids of a part of the split; a mask is about the rows as they were given."""
    if nodes is None:
        return None
    found = ids_among(nodes, lambda: ids, "the rows of a graph")
    outside = ~np.isin(found, ids)
    if outside.any():
        (node,) = as_given(nodes, found[outside][:1].tolist())
        raise GraphError(f"{_ROLES[role]} node {node} is not a node id.")
    return found
