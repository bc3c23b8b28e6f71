"""An edit: a list of changes, checked against a graph and merged.

Deletions come first, so an edge that is deleted and added in one list is replaced.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.canonical import digest_of
from grapheraser.errors import (
    GraphError,
    NothingToForgetError,
    ParameterError,
    UnknownNodeError,
    named,
)
from grapheraser.graph.changes.parts import Rewritten, absent_parts
from grapheraser.graph.changes.requests import (
    NOTHING,
    RAISE,
    Removal,
    Request,
    canonical_form,
    coalesce,
    in_graph,
)
from grapheraser.graph.changes.updates import (
    AddEdges,
    AddNodes,
    GraphChange,
    NewEdges,
    SetFeatures,
    SetLabels,
    as_changes,
    with_features,
    with_keyed_ids,
    with_labels,
)
from grapheraser.graph.edge_values import (
    NO_VALUES,
    Counts,
    EdgeKind,
    Values,
    with_values,
)
from grapheraser.graph.encoding import filled
from grapheraser.graph.ids import NO_NAMES, Names, as_called, name_id, shown, with_names
from grapheraser.graph.labels import LabelKind
from grapheraser.graph.pages.packing import NO_TARGETS, Rows
from grapheraser.graph.pages.pages import Pages
from grapheraser.graph.roles import CONTEXT, TRAIN, UNLABELLED
from grapheraser.graph.types import Types
from grapheraser.kernels.paged import INCOMING, labels_at, located, roles_at, target_rows
from grapheraser.kinds import ADD_EDGES, ADD_NODES, SET_FEATURES, SET_LABELS

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

Ids = NDArray[np.int64]


class Entries(NamedTuple):
    """Entries of the adjacency, each edge from both ends, sorted."""

    # rows, columns: ids of a node and of its neighbour.
    rows: Ids
    columns: Ids
    values: Values  # what the entries carry; see `edge_values`
    there: NDArray[np.bool_]  # which of them the graph has already, with other values


@dataclass(frozen=True, eq=False)
class Edit:
    """A checked, merged list of changes."""

    removal: Removal  # what goes, before anything else happens; may be empty
    nodes: Ids  # sorted ids of the new nodes
    # x, y, role, names, targets: of them; see `Rows`.
    x: sp.csr_array
    y: Ids
    role: NDArray[np.int8]
    entries: Entries  # of the adjacency, that come or carry something else
    features: Ids  # sorted ids of the nodes whose features are set
    new_x: sp.csr_array  # their features
    labels: Ids  # sorted ids of the nodes whose labels are set
    # Their classes; or their targets ``[m, count]``, NaN where they stay as they are.
    new_y: NDArray[Any]
    names: Names
    targets: NDArray[np.uint8]
    label_kind: LabelKind
    # All that was handed in, as plain values by kind.
    named: dict[str, Any] = field(default_factory=dict)
    # Sorted ids among ``features`` that nobody named: a mean in their gaps changed.
    relearned: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def digest(self) -> str:
        """SHA-256 of the changes as made, whatever their order; the requester can compute it."""
        return self.removal.digest if self.only_forgets else digest_of(self.named)

    @property
    def only_forgets(self) -> bool:
        """True where nothing but a removal was asked for; see `relearning`."""
        return self.named is self.removal.named

    @property
    def pairs(self) -> Ids:
        """Edges ``[m, 2]`` (u < v) that come, or carry something else."""
        rows, columns = self.entries.rows, self.entries.columns
        return np.stack([rows, columns], axis=1)[rows < columns]

    @property
    def touched(self) -> Ids:
        """Sorted ids of the nodes that are new, or get other neighbours, features or labels."""
        parts = (self.nodes, self.entries.rows, self.features, self.labels)
        return np.unique(np.concatenate(parts))

    @property
    def counts(self) -> dict[str, int]:
        """Number of things that are added and set, by kind."""
        return {
            ADD_NODES.count: len(self.nodes),
            ADD_EDGES.count: len(self.entries.rows) // 2,
            SET_FEATURES.count: len(self.features) - len(self.relearned),
            SET_LABELS.count: len(self.labels),
        }


def edit_of(
    graph: Graph,
    changes: GraphChange | Sequence[GraphChange],
    *,
    relearn: bool = True,
    missing: str = RAISE,
) -> Edit:
    """Check every change against ``graph`` and merge them; `updated` applies the result.

    ``relearn`` says whether the means in place of gaps follow, ``missing`` what happens to requests
    for what is not there (see `coalesce`).
    """
    kind = graph.label_kind
    named = (with_labels(part, kind) for part in as_changes(changes))
    parts = [with_keyed_ids(with_features(part, graph.encoding), graph) for part in named]
    requests = in_graph(graph, [part for part in parts if isinstance(part, Request)])
    named_any = any(canonical_form(requests).values())
    removal = coalesce(graph, requests, missing=missing) if named_any else NOTHING
    absent = [one for part in parts if isinstance(part, Rewritten) for one in part.absent]
    if absent and missing == RAISE:
        raise absent_parts(absent)
    removal = replace(removal, skipped=(*removal.skipped, *absent)) if absent else removal
    edit, joined, notes = _merged(graph, removal, parts)
    for note in notes:
        warnings.warn(f"graph '{graph.name}': {note}.", stacklevel=2)
    if not (named_any or any(map(len, (edit.nodes, edit.features, edit.labels, joined.pairs)))):
        if absent:
            raise NothingToForgetError("the collection has nothing of what the request names.")
        raise ParameterError("the list of changes names nothing to add, to set or to forget.")
    edit = replace(edit, named=_named(requests, edit, joined, parts))
    return _with_means(graph, edit) if relearn else edit


def _merged(
    graph: Graph, removal: Removal, parts: Sequence[GraphChange]
) -> tuple[Edit, NewEdges, tuple[str, ...]]:
    """Merge a removal and changes; return the edges that come as well, and notes on them."""
    added = [part for part in parts if isinstance(part, AddNodes)]
    nodes, x, y, names, targets = _new_nodes(graph, added)
    features, new_x = _set_rows(graph, parts)
    labels, new_y = _set_labels(graph, parts)
    _refuse_contradictions(graph, removal, features, labels, new_y)
    come = [part.edges for part in parts if isinstance(part, AddNodes | AddEdges)]
    joined = joined_edges(come, graph.edge_kind)
    _check_ends(graph, removal, nodes, joined)
    kept = NewEdges(*removal.kept, False, {})
    every = joined_edges([kept, *come], graph.edge_kind) if len(kept.pairs) else joined
    entries, notes = merged_edges(graph, removal, every)
    role = np.where(y == UNLABELLED, CONTEXT, TRAIN).astype(np.int8)
    of_nodes = nodes, x, y, role, entries, features, new_x, labels, new_y, names, targets
    return Edit(removal, *of_nodes, graph.label_kind), joined, notes


def relearning(graph: Graph, removal: Removal) -> Edit | None:
    """Return the edit that a removal becomes where it sets something as well; else None.

    Gaps have other means then, or an edge keeps some of its relations.
    """
    means = graph.encoding is not None and graph.encoding.means
    if not means and not len(removal.kept[0]):
        return None
    edit, *_ = _merged(graph, removal, [])
    return _with_means(graph, replace(edit, named=removal.named))


def _with_means(graph: Graph, edit: Edit) -> Edit:
    """Return the edit with the means of the rows after it in place of all gaps."""
    encoding = graph.encoding
    if encoding is None or not encoding.means:
        return edit
    after = graph.updated(edit)
    x, at = filled(encoding, after.x, after.means)
    if not len(at):
        return edit
    others = np.setdiff1d(after.ids[at], edit.nodes)
    features = np.union1d(edit.features, others)
    return replace(
        edit,
        x=x[after.positions(edit.nodes)],
        features=features,
        new_x=x[after.positions(features)],
        relearned=np.setdiff1d(others, edit.features),
    )


def edited_pages(pages: Pages, edit: Edit) -> Pages:
    """Return the pages with all that an edit adds and sets; its removal is done already."""
    rows, columns, values, there = edit.entries
    values = values if pages.edge_kind.width else NO_VALUES
    new = np.isin(rows, edit.nodes)
    ends = np.searchsorted(rows[new], edit.nodes, side="right")
    nodes = Rows(
        edit.nodes,
        edit.y,
        edit.role,
        np.concatenate([[0], ends]).astype(np.int64),
        columns[new],
        edit.x.toarray() if pages.dense else edit.x,
        values[new] if len(values) else values,
        edit.names,
        edit.targets,
    )
    # In the order of ids, which is that of places.
    pairs = np.stack([located(pages.table, rows[~new]), columns[~new]], axis=1)
    if there.any():
        none = np.zeros(0, dtype=np.int64)
        pages = pages.without(none, pairs[there[~new]], none)
    pages = pages.with_rows(nodes, pairs, values[~new] if len(values) else values)
    pages = pages.with_features(located(pages.table, edit.features), edit.new_x)
    places = located(pages.table, edit.labels)
    role = roles_at(pages.table, places)
    kind = edit.label_kind
    if kind.is_classes:
        role[role == CONTEXT] = TRAIN
        return pages.with_labels(places, edit.new_y, role)
    raw = target_rows(pages.table, places, kind.row_bytes)
    old = kind.rows(kind.decoded(labels_at(pages.table, places), raw))
    merged: NDArray[np.float64] = np.where(np.isnan(edit.new_y), old, edit.new_y)
    y, targets = kind.encoded(_of_rows(kind, merged))
    role[(role == CONTEXT) & (y != UNLABELLED)] = TRAIN
    return pages.with_labels(places, y, role, targets)


def _of_rows(kind: LabelKind, rows: NDArray[np.float64]) -> NDArray[Any]:
    """Return labels from targets as numbers: the inverse of `LabelKind.rows`."""
    return np.where(np.isnan(rows), kind.unknown, rows)


def _new_nodes(
    graph: Graph, parts: Sequence[AddNodes]
) -> tuple[Ids, sp.csr_array, Ids, Names, NDArray[np.uint8]]:
    ids, x = _stacked(graph, "AddNodes", parts)
    names = np.concatenate([NO_NAMES, *(part.names for part in parts)])
    there = graph.contains(ids)
    if there.any():
        taken = _these(graph.names_of(ids[there]))
        raise GraphError(
            f"{taken} {'is' if there.sum() == 1 else 'are'} in the graph already "
            f"({int(there.sum())} of {len(ids)} new ids).",
            hint="change a node with SetFeatures, SetLabels, AddEdges and Edges.",
        )
    order = np.argsort(np.concatenate([ids[:0], *(part.ids for part in parts)]))
    kind = graph.label_kind
    if kind.is_classes:
        y = np.concatenate([ids[:0], *(part.y for part in parts)])[order]
        _check_classes(graph, y)
        return ids, x, y, names[order] if len(names) else names, NO_TARGETS
    rows = np.concatenate([np.zeros((0, kind.count)), *(part.rows(kind) for part in parts)])
    y, targets = kind.encoded(_of_rows(kind, rows[order]))
    return ids, x, y, names[order] if len(names) else names, targets


def _set_rows(graph: Graph, parts: Sequence[GraphChange]) -> tuple[Ids, sp.csr_array]:
    found = [part for part in parts if isinstance(part, SetFeatures)]
    ids, x = _stacked(graph, "SetFeatures", found)
    _check_known(graph, ids, _names_in(found))
    return ids, x


def _set_labels(graph: Graph, parts: Sequence[GraphChange]) -> tuple[Ids, NDArray[Any]]:
    found = [part for part in parts if isinstance(part, SetLabels)]
    none = np.zeros(0, dtype=np.int64)
    ids = np.concatenate([none, *(part.ids for part in found)])
    if not graph.label_kind.is_classes:
        _check_known(graph, ids, _names_in(found))
        return _set_targets(graph.label_kind, found)
    _once("SetLabels", ids, _names_in(found))
    y = np.concatenate([none, *(part.y for part in found)])
    _check_known(graph, ids, _names_in(found))
    _check_classes(graph, y)
    order = np.argsort(ids)
    return ids[order], y[order]


def _set_targets(kind: LabelKind, parts: Sequence[SetLabels]) -> tuple[Ids, NDArray[np.float64]]:
    """Merge targets to set, each of a node in one change only."""
    rows: dict[int, NDArray[np.float64]] = {}
    for part in parts:
        for node, row in zip(part.ids.tolist(), part.rows(kind), strict=True):
            before = rows.get(node, np.full(kind.count, np.nan))
            if np.isnan(row).all():
                raise GraphError(
                    f"a label to set must be known (found none for node {node}).",
                    hint="forget a label with ge.Labels.",
                )
            if (~np.isnan(before) & ~np.isnan(row)).any():
                raise ParameterError(
                    f"a list of changes must set each target of a node once. Got several for "
                    f"node {node}."
                )
            rows[node] = np.where(np.isnan(row), before, row)
    ids = np.array(sorted(rows), dtype=np.int64)
    return ids, np.array([rows[node] for node in ids.tolist()]).reshape(-1, kind.count)


def _stacked(
    graph: Graph, owner: str, parts: Sequence[AddNodes | SetFeatures]
) -> tuple[Ids, sp.csr_array]:
    """Stack several changes of one kind: sorted ids and their feature rows."""
    width = graph.num_features
    for part in parts:
        if len(part.ids) and part.x.shape[1] != width:
            raise GraphError(
                f"'x' of {owner} must have the {width} columns of the graph "
                f"(found {part.x.shape[1]}): new feature columns need a new fit."
            )
    some = [part for part in parts if len(part.ids)]
    if not some:
        return np.zeros(0, dtype=np.int64), sp.csr_array(np.zeros((0, width), dtype=np.float32))
    ids, rows = np.concatenate([part.ids for part in some]), [part.x for part in some]
    _once(owner, ids, _names_in(some))
    x = rows[0] if len(rows) == 1 else sp.csr_array(sp.vstack(rows, format="csr"))
    return (ids, x) if len(ids) == 1 else (ids[order := np.argsort(ids)], x[order])


def _once(owner: str, ids: Ids, called: Mapping[int, int]) -> None:
    once, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise ParameterError(
            f"a list of changes must name each node in one {owner} only. "
            f"Got {named(as_called(once[counts > 1], called))} in several."
        )


def _names_in(parts: Sequence[AddNodes | SetFeatures | SetLabels]) -> dict[int, int]:
    """Return the names that nodes were given by, by id."""
    return {
        node: name
        for part in parts
        for node, name in (
            with_names(map(name_id, part.names)) if isinstance(part, AddNodes) else part.called
        ).items()
    }


def _check_known(graph: Graph, ids: Ids, called: Mapping[int, int]) -> None:
    unknown = np.unique(ids[~graph.contains(ids)])
    if len(unknown):
        raise UnknownNodeError.of(as_called(unknown, called), len(ids))


def _check_classes(graph: Graph, y: Ids) -> None:
    outside = y >= graph.num_classes
    if outside.any():
        raise GraphError(
            f"labels must be in [0, {graph.num_classes - 1}] (found {y[outside][0]}): new classes "
            "need a new fit."
        )


def _refuse_contradictions(
    graph: Graph, removal: Removal, features: Ids, labels: Ids, new_y: NDArray[Any]
) -> None:
    """Refuse to change what the same list forgets."""
    for node, target in removal.targets.tolist():
        at = int(np.searchsorted(labels, node))
        if at < len(labels) and labels[at] == node and not np.isnan(new_y[at, target]):
            raise GraphError(
                f"the list of changes both changes and forgets label "
                f"'{graph.label_kind.target_names[target]}' of {_these(graph.names_of([node]))}."
            )
    for changed, gone, what in (
        (np.union1d(features, labels), removal.nodes, "forgets"),
        (features, removal.features, "forgets the features of"),
        (labels, removal.labels, "forgets the label of"),
    ):
        both = np.intersect1d(changed, gone)
        if len(both):
            raise GraphError(
                f"the list of changes both changes and {what} {_these(graph.names_of(both))}."
            )


def _check_ends(graph: Graph, removal: Removal, nodes: Ids, joined: NewEdges) -> None:
    """Refuse edges to nodes that are not there afterwards."""
    pairs, called = joined.pairs, joined.called
    ends = np.unique(pairs)
    gone = np.intersect1d(ends, removal.nodes)
    if len(gone):
        raise GraphError(
            f"the list of changes adds edges to {_these(graph.names_of(gone))}, which it forgets "
            "as well."
        )
    unknown = ends[~graph.contains(ends) & ~np.isin(ends, nodes)]
    if len(unknown):
        raise UnknownNodeError.of(as_called(unknown, called), len(ends))
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        (pair,) = as_called(pairs[loops][:1], called)
        raise GraphError(f"an edge must join two nodes (found [{pair[0]}, {pair[1]}]).")


def _these(ids: NDArray[Any]) -> str:
    return f"{'node' if len(ids) == 1 else 'nodes'} {named([shown(node) for node in ids])}"


def _named(
    requests: Sequence[Request], edit: Edit, joined: NewEdges, parts: Sequence[GraphChange]
) -> dict[str, Any]:
    """Return all that was handed in, as plain values by kind."""
    form = {name: part for name, part in canonical_form(requests).items() if part}
    told = [part for part in parts if isinstance(part, Rewritten)]
    for part in told:
        form |= part.told
    rewritten = np.concatenate([edit.features[:0], *(part.ids for part in told)])
    own = np.flatnonzero(~np.isin(edit.features, rewritten))
    form |= {
        ADD_NODES.name: _plain_rows(edit.nodes, edit.x, _plain_labels(edit)),
        ADD_EDGES.name: sorted(
            [*pair, *values]
            for pair, values in zip(joined.pairs.tolist(), joined.values.tolist(), strict=True)
        ),
        SET_FEATURES.name: _plain_rows(edit.features[own], edit.new_x[own]),
        SET_LABELS.name: [
            [node, label]
            for node, label in zip(edit.labels.tolist(), _plain(edit.new_y), strict=True)
        ],
    }
    return {name: part for name, part in form.items() if part}


def _plain_labels(edit: Edit) -> list[Any]:
    """Return the labels of the new nodes; None for targets that are not known."""
    kind = edit.label_kind
    if kind.is_classes:
        return _plain(edit.y)
    return _plain(kind.rows(kind.decoded(edit.y, edit.targets)))


def _plain(labels: NDArray[Any]) -> list[Any]:
    if labels.ndim == 1:
        return [int(label) for label in labels]
    return [[None if np.isnan(one) else float(one) for one in row] for row in labels]


def _plain_rows(ids: Ids, x: sp.csr_array, y: list[Any] | None = None) -> list[dict[str, Any]]:
    rows = []
    for at, node in enumerate(ids.tolist()):
        part = slice(x.indptr[at], x.indptr[at + 1])
        row = {"id": node, "columns": x.indices[part].tolist(), "values": x.data[part].tolist()}
        rows.append(row if y is None else row | {"label": y[at]})
    return rows


# -- edges to add --------------------------------------------------------------------------------


def joined_edges(parts: Sequence[NewEdges], kind: EdgeKind) -> NewEdges:
    """Join edges, which must carry what the edges of a graph do."""
    parts = [part for part in parts if len(part.pairs)]
    for part in parts:
        count, columns = len(part.pairs), part.values.shape[1] - part.weighted
        for name, wanted, found in (
            ("edge_weight", kind.weighted, part.weighted),
            ("edge_attr", kind.columns > 0, columns > 0),
        ):
            if wanted and not found:
                raise GraphError(
                    f"the edges of this graph have '{name}': each of the {count} new edges needs "
                    "one (found none)."
                )
            if found and not wanted:
                raise GraphError(
                    f"the edges of this graph have no '{name}' (found one for new edges)."
                )
        if columns != kind.columns:
            raise GraphError(f"'edge_attr' must have {kind.columns} columns (found {columns}).")
    width = kind.width - kind.directed
    return NewEdges(
        np.concatenate([np.zeros((0, 2), dtype=np.int64), *(part.pairs for part in parts)]),
        np.concatenate([np.zeros((0, width), np.float32), *(part.values for part in parts)]),
        kind.weighted,
        {node: name for part in parts for node, name in part.called.items()},
    )


def merged_edges(graph: Graph, removal: Removal, new: NewEdges) -> tuple[Entries, tuple[str, ...]]:
    """Return the entries that new edges make, and notes on what was merged.

    An edge that is given twice carries the mean; so does one that the graph has already, of what it
    carries and what is given. The graph is that before the removal, whose edges are not there.
    """
    kind, ends = graph.edge_kind, np.unique(new.pairs)
    new = new if graph.types is None else each_once(new, graph.types)
    at = np.searchsorted(ends, new.pairs.T).astype(np.int32)
    indptr, indices, values, counts = with_values(at, new.values, len(ends), kind.directed)
    rows, columns = np.repeat(ends, np.diff(indptr)), ends[indices]
    there = _are_there(graph, removal, rows, columns)
    if not kind.width:  # then there is nothing to change about an edge that is there
        made = Entries(rows[~there], columns[~there], values[~there], there[~there])
        return made, _notes(kind, counts, int(there.sum()) // 2)
    old = graph.values_between(rows[there], columns[there])
    if graph.types is not None:
        values[there] = graph.types.joined(old, values[there])
        return Entries(rows, columns, values, there), ()
    values[there], again = _means(kind, old, values[there])
    return Entries(rows, columns, values, there), _notes(kind, counts, again)


def each_once(new: NewEdges, types: Types) -> NewEdges:
    """Return new edges of a typed graph, each once, with all relations that were given for it."""
    pairs, at = np.unique(np.sort(new.pairs, axis=1), axis=0, return_inverse=True)
    values = np.zeros((len(pairs), types.width), dtype=np.float32)
    for edge, carried in zip(at.reshape(-1).tolist(), new.values, strict=True):
        values[edge] = types.joined(values[edge : edge + 1], carried[None])[0]
    return new._replace(pairs=pairs, values=values)


def _notes(kind: EdgeKind, counts: Counts, again: int) -> tuple[str, ...]:
    """Say in words what was merged; ``again`` edges are there already."""
    mean = kind.weighted or kind.columns > 0
    notes = {
        f"{counts.repeated} duplicate edges "
        + ("merged, with the mean of what they carry" if mean else "dropped"): counts.repeated,
        f"the two directions of {counts.differing} new edges carry other values: both get the "
        "mean": counts.differing,
        f"{again} of the edges to add are there already: "
        + ("they get the mean of both" if mean else "left as is"): again,
    }
    return tuple(note for note, count in notes.items() if count)


def _are_there(graph: Graph, removal: Removal, rows: Ids, columns: Ids) -> NDArray[np.bool_]:
    """Mark the entries, each edge from both ends, that the graph has after a removal."""
    once = rows < columns
    pairs = np.stack([rows[once], columns[once]], axis=1)
    found = np.zeros(len(pairs), dtype=bool)
    known = graph.contains(pairs.ravel()).reshape(-1, 2).all(axis=1)
    found[known] = graph.has_edges(pairs[known])
    if len(removal.edges):
        taken = set(map(tuple, removal.edges.tolist()))
        found &= np.array([tuple(pair) not in taken for pair in pairs.tolist()], dtype=bool)
    there, back = np.empty(len(rows), dtype=bool), np.flatnonzero(~once)
    there[once] = found
    there[back[np.lexsort((rows[back], columns[back]))]] = found
    return there


def _means(kind: EdgeKind, old: Values, new: Values) -> tuple[Values, int]:
    """Return the means of old and new values of entries, and how many edges that concerns."""
    means = ((old.astype(np.float64) + new) / 2).astype(np.float32)
    if not kind.directed:
        return means, len(new) // 2
    was, now = kind.directions(old), kind.directions(new)
    both = (was & now & INCOMING) != 0
    out = np.where((now & INCOMING != 0)[:, None], new, old)
    out[both] = means[both]
    out[:, 0] = was | now
    return out, int(both.sum())
