"""From a list of changes to an edit: all of it checked against a graph, and merged.

Deletions come first, so an edge that is deleted and added in one list is replaced.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.canonical import digest_of
from grapheraser.errors import GraphError, ParameterError, UnknownNodeError, named
from grapheraser.graph.changes import (
    AddEdges,
    AddNodes,
    GraphChange,
    SetFeatures,
    SetLabels,
    as_changes,
    with_classes,
)
from grapheraser.graph.edge_values import NO_VALUES
from grapheraser.graph.ids import as_called, name_id, shown, with_names
from grapheraser.graph.names import NO_NAMES, Names
from grapheraser.graph.new_edges import Entries, NewEdges, joined_edges, merged_edges
from grapheraser.graph.packing import Rows
from grapheraser.graph.pages import Pages
from grapheraser.graph.requests import NOTHING, Removal, Request, canonical_form, coalesce, in_graph
from grapheraser.graph.roles import CONTEXT, TRAIN, UNLABELLED
from grapheraser.kernels.paged import located, roles_at

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edit:
    """A checked, merged list of changes.

    Attributes:
        removal: what goes, before anything else happens; may be empty.
        nodes: sorted ids of the new nodes.
        x, y, role, names: of them.
        entries: of the adjacency, that come or carry something else.
        features: sorted ids of the nodes whose features are set.
        new_x: their features.
        labels: sorted ids of the nodes whose labels are set.
        new_y: their labels.
        named: all that was handed in, as plain values by kind.
    """

    removal: Removal
    nodes: Ids
    x: sp.csr_array
    y: Ids
    role: NDArray[np.int8]
    entries: Entries
    features: Ids
    new_x: sp.csr_array
    labels: Ids
    new_y: Ids
    names: Names
    named: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of the changes as made, whatever their order; the requester can compute it."""
        return digest_of(self.named)

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
        """How much is added and set, by kind."""
        return {
            "added_nodes": len(self.nodes),
            "added_edges": len(self.entries.rows) // 2,
            "set_features": len(self.features),
            "set_labels": len(self.labels),
        }


def edit_of(graph: Graph, changes: GraphChange | Sequence[GraphChange]) -> Edit:
    """Check every change against ``graph`` and merge them; `updated` applies the result."""
    parts = [with_classes(part, graph.class_names) for part in as_changes(changes)]
    requests = in_graph(graph, [part for part in parts if isinstance(part, Request)])
    named_any = any(canonical_form(requests).values())
    removal = coalesce(graph, requests) if named_any else NOTHING
    nodes, x, y, names = _new_nodes(graph, [part for part in parts if isinstance(part, AddNodes)])
    features, new_x = _set_rows(graph, parts)
    labels, new_y = _set_labels(graph, parts)
    _refuse_contradictions(graph, removal, features, labels)
    joined = joined_edges(
        [part.edges for part in parts if isinstance(part, AddNodes | AddEdges)], graph.edge_kind
    )
    _check_ends(graph, removal, nodes, joined)
    entries, notes = merged_edges(graph, removal, joined)
    for note in notes:
        warnings.warn(f"graph '{graph.name}': {note}.", stacklevel=2)
    if not (named_any or len(nodes) or len(features) or len(labels) or len(joined.pairs)):
        raise ParameterError("the list of changes names nothing to add, to set or to forget.")
    role = np.where(y == UNLABELLED, CONTEXT, TRAIN).astype(np.int8)
    edit = Edit(removal, nodes, x, y, role, entries, features, new_x, labels, new_y, names)
    return replace(edit, named=_named(requests, edit, joined))


def edited_pages(pages: Pages, edit: Edit) -> Pages:
    """The pages of a graph with all that an edit adds and sets; its removal is done already."""
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
    role[role == CONTEXT] = TRAIN
    return pages.with_labels(places, edit.new_y, role)


def _new_nodes(graph: Graph, parts: Sequence[AddNodes]) -> tuple[Ids, sp.csr_array, Ids, Names]:
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
    y = np.concatenate([ids[:0], *(part.y for part in parts)])[order]
    _check_classes(graph, y)
    return ids, x, y, names[order] if len(names) else names


def _set_rows(graph: Graph, parts: Sequence[GraphChange]) -> tuple[Ids, sp.csr_array]:
    found = [part for part in parts if isinstance(part, SetFeatures)]
    ids, x = _stacked(graph, "SetFeatures", found)
    _check_known(graph, ids, _names_in(found))
    return ids, x


def _set_labels(graph: Graph, parts: Sequence[GraphChange]) -> tuple[Ids, Ids]:
    found = [part for part in parts if isinstance(part, SetLabels)]
    none = np.zeros(0, dtype=np.int64)
    ids = np.concatenate([none, *(part.ids for part in found)])
    _once("SetLabels", ids, _names_in(found))
    y = np.concatenate([none, *(part.y for part in found)])
    _check_known(graph, ids, _names_in(found))
    _check_classes(graph, y)
    order = np.argsort(ids)
    return ids[order], y[order]


def _stacked(
    graph: Graph, owner: str, parts: Sequence[AddNodes | SetFeatures]
) -> tuple[Ids, sp.csr_array]:
    """Sorted ids and the feature rows of several changes of one kind."""
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
    """The names that nodes were given by, by id."""
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


def _refuse_contradictions(graph: Graph, removal: Removal, features: Ids, labels: Ids) -> None:
    """Refuse to change what the same list forgets."""
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


def _named(requests: Sequence[Request], edit: Edit, joined: NewEdges) -> dict[str, Any]:
    """All that was handed in, as plain values by kind."""
    form = {name: part for name, part in canonical_form(requests).items() if part}
    form |= {
        "add_nodes": _plain_rows(edit.nodes, edit.x, edit.y),
        "add_edges": sorted(
            [*pair, *values]
            for pair, values in zip(joined.pairs.tolist(), joined.values.tolist(), strict=True)
        ),
        "set_features": _plain_rows(edit.features, edit.new_x),
        "set_labels": np.stack([edit.labels, edit.new_y], axis=1).tolist(),
    }
    return {name: part for name, part in form.items() if part}


def _plain_rows(ids: Ids, x: sp.csr_array, y: Ids | None = None) -> list[dict[str, Any]]:
    rows = []
    for at, node in enumerate(ids.tolist()):
        part = slice(x.indptr[at], x.indptr[at + 1])
        row = {"id": node, "columns": x.indices[part].tolist(), "values": x.data[part].tolist()}
        rows.append(row if y is None else row | {"label": int(y[at])})
    return rows
