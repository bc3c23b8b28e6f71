"""Check raw arrays and turn them into the fields of a graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.checks import whole
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.arrays import as_array, as_int64, fresh
from grapheraser.graph.contents import Contents
from grapheraser.graph.edge_values import PLAIN, EdgeInput, checked_edges
from grapheraser.graph.ids import Names, as_given, ids_among, ids_and_names, shown
from grapheraser.graph.label_input import NOT_SAID, LabelInput, kind_of, targets_of
from grapheraser.graph.labels import CLASSES, LabelKind
from grapheraser.graph.roles import CONTEXT, TEST, TRAIN, UNLABELLED, VALIDATION

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

_MAX_COUNT = 2**31 - 1
KEYED_IDS = "keyed"
_ROLES = {TRAIN: "training", TEST: "test", VALIDATION: "validation"}
ClassNames = tuple[str, ...] | tuple[int, ...]
# Ids of the training, test and validation nodes, where they are given.
Split = tuple[ArrayLike | None, ArrayLike | None, ArrayLike | None]


def from_arrays(
    _cls: type[Graph],
    /,
    x: ArrayLike | sp.sparray | sp.spmatrix,
    edge_index: ArrayLike,
    y: ArrayLike | sp.sparray | Sequence[Any],
    *,
    ids: ArrayLike | None = None,
    train: ArrayLike | None = None,
    test: ArrayLike | None = None,
    validation: ArrayLike | None = None,
    num_classes: int | None = None,
    class_names: Sequence[str | int] | None = None,
    each_edge_once: bool = False,
    edge_weight: ArrayLike | None = None,
    edge_attr: ArrayLike | None = None,
    directed: bool = False,
    inferred: Sequence[str] = (),
    name: str = "graph",
    labels: str | None = None,
    target_names: Sequence[str] | None = None,
    label_range: float | Sequence[float] | None = None,
) -> Graph:
    """Build a graph from arrays, checking all of them.

    Args:
        x: features ``[n, num_features]``, dense or scipy sparse.
        edge_index: ``[2, m]`` node ids or names, sources and targets; one direction or both,
            unless the graph is ``directed``.
        y: class per node ``[n]``, -1 where it is not known; or words, None where not known.
            Several labels ``[n, t]`` of 0, 1 and -1 where they are not known, or a set of names
            per node. Numbers: floats ``[n]`` or ``[n, t]``, NaN where they are not known.
        ids: the node ids of the rows, or their names; default ``0 .. n-1``; ``"keyed"`` for keyed
            ids that stand for these (see `with_keyed_ids`).
        train: ids of the training nodes; default all labelled nodes that are neither in
            ``test`` nor in ``validation``.
        test: ids of the test nodes; default none.
        validation: ids of the validation nodes; default none.
        num_classes: default as many as there are in ``y``, found in the data: then receipts say
            ``exact given schema``.
        class_names: of the classes, in their order; default all words in ``y``, sorted, or the
            ids that are there where these leave gaps (5, 15, 25): likewise.
        each_edge_once: the input lists every undirected edge once; no note is made of missing
            reverses.
        edge_weight: ``[m]``, finite; duplicate edges, and in an undirected graph both
            directions of an edge, get the mean of theirs, with a warning.
        edge_attr: features of the edges ``[m, d]``, finite; likewise.
        directed: keep the directions of the edges.
        inferred: what else was found in the data that these arrays were made of, and would be
            other without some of it, such as ``["categories"]`` of a column; receipts name it.
        name: for people.
        labels: what ``y`` holds: ``"classes"``, ``"several"`` or ``"numbers"``; default what its
            type and shape say, with a note where they leave a doubt.
        target_names: of the targets, in their order, where ``y`` has several labels or numbers.
        label_range: the largest magnitude that a number may have, of all targets or of each;
            default that of the data: then receipts say ``exact given schema``.
    """
    given = EdgeInput(edge_weight, edge_attr, directed, each_edge_once)
    split = (train, test, validation)
    said = LabelInput(labels, target_names, label_range, num_classes, class_names)
    is_keyed = isinstance(ids, str) and ids == KEYED_IDS
    known = None if is_keyed else ids, split, given, said, inferred
    fields = checked_fields(x, edge_index, y, *known)
    warn_of(fields["notes"] if fields["edge_kind"] != PLAIN else fields["doubts"], name)
    graph = graph_of(_cls, fields, name)
    return graph.with_keyed_ids() if is_keyed else graph


def graph_of(cls: type[Graph], fields: dict[str, Any], name: str) -> Graph:
    """Make a graph of the fields that `checked_fields` returns."""
    schema = ("label_kind", "notes", "inferred")
    known = {part: fields.pop(part) for part in schema}
    del fields["doubts"]  # they are among the notes
    return cls.of_contents(Contents.of_arrays(**fields), **known, name=name)


def warn_of(notes: Sequence[str], name: str) -> None:
    """Warn of what was put right; call it from what the user calls."""
    for note in notes:
        warnings.warn(f"graph '{name}': {note}.", stacklevel=3)


def checked_fields(
    x: Any,
    edge_index: ArrayLike,
    y: Any,
    ids: ArrayLike | None,
    split: Split,
    given: EdgeInput,
    said: LabelInput = NOT_SAID,
    inferred: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the fields of a `Graph`, all of them fresh; see `from_arrays`."""
    features = check_features(x)
    n = features.shape[0]
    node_ids, names = (np.arange(n), None) if ids is None else _check_ids(ids, n)
    kind, y, found, notes = _checked_labels(y, n, said)
    labels, targets = kind.encoded(y)
    chosen = [_of_role(role, part, node_ids) for role, part in zip(_ROLES, split, strict=True)]
    if n and (np.diff(node_ids) < 0).any():
        order = np.argsort(node_ids, kind="stable")
        node_ids, features = node_ids[order], features[order]
        labels, targets = labels[order], targets[order]
        names = None if names is None else names[order]
    adjacency = checked_edges(edge_index, node_ids, given)
    role = _check_roles(node_ids, labels, chosen, names)
    fields = fresh(
        ids=node_ids,
        x=features,
        y=labels,
        targets=targets,
        role=role,
        label_kind=kind,
        names=names,
        inferred=_checked_inferred([*found, *inferred]),
        **adjacency._asdict(),
    )
    return fields | {"notes": (*notes, *fields["notes"]), "doubts": tuple(notes)}


def _checked_labels(
    y: Any, n: int, said: LabelInput
) -> tuple[LabelKind, NDArray[Any], list[str], list[str]]:
    """Return the kind of labels, the labels, what of it was found in the data, and notes."""
    num_classes, class_names = said.num_classes, said.class_names
    y = y.toarray() if hasattr(y, "toarray") else y
    if getattr(getattr(y, "dtype", None), "na_value", None) is not None and y.dtype.kind in "biu":
        y = y.to_numpy(dtype=np.int64, na_value=UNLABELLED)  # of pandas, perhaps with gaps
    name = kind_of(y, said.labels)
    if name != CLASSES:
        if num_classes is not None or class_names:
            raise GraphError(
                f"'num_classes' and 'class_names' are for classes (found {LabelKind(name).words}).",
                hint="target_names=[...] names targets; labels='classes' says that y has classes.",
            )
        return targets_of(y, n, name, said)
    if said.target_names or said.label_range is not None:
        raise GraphError("'target_names' and 'label_range' are for several labels and numbers.")
    if said.labels is not None:
        y = _whole_floats(y)
    declared = bool(class_names)
    if num_classes is None and not class_names:
        class_names = found_class_ids(y)
    y, class_names = classes_of(y, class_names)
    # A number of classes says nothing of which words they are.
    declared |= num_classes is not None and not class_names
    if class_names and num_classes is None:
        num_classes = len(class_names)
    labels, classes = check_labels(y, n, num_classes)
    found = [] if declared or (labels == UNLABELLED).all() else ["classes"]
    if class_names and len(class_names) != classes:
        raise GraphError(f"there are {classes} classes (found names of {len(class_names)}).")
    notes = [] if declared or said.labels else number_words(class_names)
    return LabelKind(count=classes, names=tuple(class_names)), labels, found, notes


def number_words(names: ClassNames) -> list[str]:
    """Note names of classes that were found in the data, and all read as numbers."""
    if not names or are_ids(names) or not all(map(_is_number, map(str, names))):
        return []
    return [
        "labels are words that all read as numbers: taken as classes; y.astype(float) makes "
        "numbers of them, labels='classes' says that they are classes"
    ]


def _is_number(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False


def _whole_floats(y: Any) -> Any:
    """Take floats for the classes that they are said to be, NaN for none."""
    found = y if isinstance(y, list | tuple) else as_array(y, "labels")
    if getattr(found, "dtype", np.dtype(object)).kind != "f":
        return y
    known = np.where(np.isnan(found), UNLABELLED, found)
    return known.astype(np.int64) if (known == np.rint(known)).all() else y


def _checked_inferred(items: list[Any]) -> tuple[str, ...]:
    """Return the parts of the schema that were found in the data, each once, in order."""
    for item in items:
        if not isinstance(item, str) or not item.isidentifier():
            raise ParameterError.of("inferred", "Graph", "names such as 'categories'", item)
    return tuple(sorted(set(items)))


def found_class_ids(y: Any) -> tuple[int, ...]:
    """Return the ids of the classes where some number below the largest is none of them.

    Ids 5, 15 and 25 are three classes, which these ids name; 0 to 6 are seven and need no names.
    """
    labels = as_array(_boxed(y), "labels")
    if labels.dtype.kind not in "iu" or labels.ndim > 2 or labels.shape[1:] not in ((), (1,)):
        return ()
    known = [label for label in np.unique(labels).tolist() if label != UNLABELLED]
    sound = bool(known) and known[0] >= 0 and known[-1] < 2**63
    return tuple(known) if sound and known[-1] >= len(known) else ()


def classes_of(y: Any, names: Sequence[str | int] | None) -> tuple[Any, ClassNames]:
    """Return labels as integers from 0 on, and the names of the classes where they have any.

    Labels that are words stand for the classes of these names, by default all words there are, in
    the order of the alphabet; integers, where names are integers. None, the empty word and -1 are
    labels that are not known.
    """
    classes = class_names_of(names or ())
    given = as_array(_boxed(y), "labels")
    flat = given.reshape(-1) if given.shape[1:] == (1,) else given
    by_id = flat.ndim == 1 and flat.dtype.kind in "iu" and are_ids(classes)
    plain = flat.tolist() if by_id or (given.ndim == 1 and given.dtype.kind in "UO") else []
    if not by_id and not any(isinstance(word, str) for word in plain):
        return y, classes
    known = set(plain) - ({UNLABELLED} if by_id else {None, ""})
    others = [] if by_id else [word for word in known if not isinstance(word, str)]
    if others:
        raise GraphError(f"labels must be words, or integers, and not both (found {others[0]!r}).")
    if not by_id:
        classes = tuple(map(str, classes)) or tuple(sorted(known))
    number = {name: at for at, name in enumerate(classes)}
    unknown = sorted(known - number.keys())
    if unknown:
        raise unknown_class(unknown[0], classes)
    return np.array([number.get(word, UNLABELLED) for word in plain], dtype=np.int64), classes


def unknown_class(label: Any, classes: ClassNames, more: str = "") -> GraphError:
    """Return the error that a label is none of the classes."""
    listed = ", ".join(map(str, classes))
    return GraphError(f"labels must be among the classes {listed} (found {label!r}){more}.")


def class_names_of(names: Sequence[Any]) -> ClassNames:
    """Return names of classes: integers where all of them are, else strings."""
    ids = all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in names)
    classes: ClassNames = tuple(map(int, names)) if ids else tuple(map(str, names))
    if len(set(classes)) < len(classes):
        found = ", ".join(map(str, classes))
        raise GraphError(f"names of classes must be unique (found {found}).")
    return classes


def are_ids(names: ClassNames) -> TypeGuard[tuple[int, ...]]:
    """Tell whether classes are named by integers."""
    return bool(names) and isinstance(names[0], int)


def _boxed(y: Any) -> Any:
    """Turn a list with words in it into an array of objects, lest NumPy make words of all."""
    if not isinstance(y, list | tuple) or not any(isinstance(label, str) for label in y):
        return y
    boxed = np.empty(len(y), dtype=object)
    boxed[:] = y
    return boxed


def check_features(x: Any) -> sp.csr_array | NDArray[np.float32]:
    """Return own float32 features: dense where most entries are not 0, else CSR."""
    x = x if sp.issparse(x) else as_array(x, "features")
    if x.ndim != 2 or x.dtype.kind not in "fiub":
        raise GraphError(f"features must be a numeric matrix (found {x.ndim}-d, dtype {x.dtype}).")
    if x.shape[1] > _MAX_COUNT:
        raise GraphError(f"a graph has at most {_MAX_COUNT} feature columns (found {x.shape[1]}).")
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
    """Return the ids of all rows, and the names that they were given by."""
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
    """Return the labels of n nodes, and how many classes there are."""
    labels = as_array(y, "labels")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.reshape(-1)
    if labels.ndim == 2:
        raise GraphError(
            f"a node has one class: labels must be a flat integer array (found shape "
            f"{list(labels.shape)}, several labels per node).",
            hint="labels='several' takes 0, 1 and -1 of each; of one-hot rows, y.argmax(axis=1).",
        )
    if labels.size and labels.dtype.kind == "f":
        raise GraphError(
            f"labels must be classes, in a flat integer array (found dtype {labels.dtype}): "
            "numbers are not classes.",
            hint="y.astype(int) where they are classes; labels='numbers' takes numbers.",
        )
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iub"):
        raise GraphError(
            f"labels must be a flat integer array (found {labels.ndim}-d, dtype {labels.dtype})."
        )
    if len(labels) != n:
        raise GraphError(f"labels must match the {n} feature rows (found {len(labels)}).")
    labels = as_int64(labels, "labels")
    given = int(labels.max(initial=-1)) + 1 if num_classes is None else num_classes
    classes = whole("num_classes", "Graph", given)
    if classes > _MAX_COUNT:
        raise GraphError(f"a graph has at most {_MAX_COUNT} classes (found {classes}).")
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
    """Return the role of each node, from the ids of the training, test and validation nodes."""
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
    """Return the ids of a part of the split; a mask is about the rows as they were given."""
    if nodes is None:
        return None
    found = ids_among(nodes, lambda: ids, "the rows of a graph")
    outside = ~np.isin(found, ids)
    if outside.any():
        (node,) = as_given(nodes, found[outside][:1].tolist())
        raise GraphError(f"{_ROLES[role]} node {node} is not a node id.")
    return found
