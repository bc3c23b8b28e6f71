"""Typed graphs from tables and facts, and back; `pyg` reads a ``HeteroData``.

Each type of nodes is read as a graph without edges, by what reads untyped graphs; `assembled` puts
them together and joins them by relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.errors import GraphError
from grapheraser.graph.arrays import as_array, fresh, read_only
from grapheraser.graph.build import warn_of
from grapheraser.graph.csr import row_pointers
from grapheraser.graph.edge_values import EdgeKind, Values, checked_values, merged
from grapheraser.graph.formats.tables import table_of
from grapheraser.graph.ids import as_ids, names_of
from grapheraser.graph.types import Relation, Types
from grapheraser.kernels.paged import edge_value_rows, neighbour_rows
from grapheraser.kernels.sets import ranks
from grapheraser.kernels.typed import PER_COLUMN

if TYPE_CHECKING:
    from grapheraser.graph.graph import Graph

Ids = NDArray[np.int64]
_NONE = np.zeros((2, 0), dtype=np.int64)
ENTITY = "entity"
_BLOCK = 2**16  # edges that are read at once


class RelationEdges(NamedTuple):
    """The edges of a relation."""

    # sources, targets: positions among the nodes of their types.
    sources: Ids
    targets: Ids
    weights: NDArray[np.float64] | None = None  # of each; None where they have none


def assembled(
    cls: type[Graph],
    parts: Mapping[str, Graph],
    joins: Mapping[Relation, RelationEdges],
    target: str,
    *,
    name: str = "graph",
    inferred: Iterable[str] = (),
) -> Graph:
    """Put a graph together from the nodes of each type and the edges of each relation.

    ``parts`` have no edges, and that of the target type has labels and roles.
    """
    if target not in parts:
        raise GraphError(f"'target' is one of {', '.join(parts)} (found {target!r}).")
    order = (target, *sorted(name for name in parts if name != target))
    relations = tuple(joins)
    weighted = tuple(joins[each].weights is not None for each in relations)
    named = any(part.named for part in parts.values())
    widths = tuple(parts[each].num_features for each in order)
    types = Types(order, relations, widths, weighted)
    nodes = [_Nodes.of(types, index, parts[each], named) for index, each in enumerate(order)]
    ids = np.concatenate([each.ids for each in nodes])
    starts = np.cumsum([0, *(len(each.ids) for each in nodes)])
    adjacency, notes = _adjacency(types, ids, starts, [each.rank for each in nodes], joins)
    first = parts[target]
    others = len(ids) - first.num_nodes
    unknown = np.full((others, *first.y.shape[1:]), first.label_kind.unknown, dtype=first.y.dtype)
    own = nodes[0].order
    found = {item for part in parts.values() for item in part.inferred if item != "classes"}
    found |= {*inferred, *first.inferred}
    notes = tuple(note for part in parts.values() for note in part.notes) + notes
    graph = cls(
        ids,
        *adjacency[:2],
        fresh(x=_stacked(each.x for each in nodes))["x"],
        np.concatenate([first.y[own], unknown]),
        np.concatenate([first.role[own], np.zeros(others, dtype=np.int8)]),
        name=name,
        notes=notes,
        edge_kind=EdgeKind(columns=types.width),
        edge_values=read_only(adjacency[2]),
        names=np.concatenate([each.names for each in nodes]) if named else None,
        inferred=tuple(sorted(found)),
        label_kind=first.label_kind,
        types=types,
    )
    warn_of(notes, name)
    return graph


class _Nodes(NamedTuple):
    """The nodes of a type, in the order of their ids."""

    ids: Ids  # in the whole graph, sorted
    order: Ids  # of the rows of the part
    rank: Ids  # of a row of the part among the ids
    x: sp.csr_array  # features, in the columns of the whole graph
    names: NDArray[Any]  # with the type; empty where nodes have none

    @classmethod
    def of(cls, types: Types, index: int, part: Graph, named: bool) -> _Nodes:
        if named:
            calls = part.ids.tolist() if part.names is None else part.names.tolist()
            names = names_of(types.called(index, call) for call in calls)
            ids = np.array([types.name_id(index, str(call)) for call in calls], dtype=np.int64)
        else:
            names, ids = names_of(()), types.ids(index, part.ids)
        order = np.argsort(ids, kind="stable")
        if (np.diff(ids[order]) == 0).any():
            raise GraphError(f"two nodes of type '{types.names[index]}' have one id.")
        rank = np.empty(len(ids), dtype=np.int64)
        rank[order] = np.arange(len(ids))
        x = part.x[order]
        shape = (len(ids), types.starts[-1])
        wide = sp.csr_array((x.data, x.indices + types.starts[index], x.indptr), shape=shape)
        return cls(ids[order], order, rank, wide, names[order] if named else names)


def _stacked(parts: Iterable[sp.csr_array]) -> sp.csr_array:
    made = sp.csr_array(sp.vstack(list(parts), format="csr"), dtype=np.float32)
    made.indices = made.indices.astype(np.int32)
    return made


def _adjacency(
    types: Types,
    ids: Ids,
    starts: Ids,
    rank: Sequence[Ids],
    joins: Mapping[Relation, RelationEdges],
) -> tuple[tuple[Ids, NDArray[np.int32], Values], tuple[str, ...]]:
    """Return pointers, columns and values of the whole graph's adjacency, and notes."""
    n, loops, repeated = len(ids), 0, 0
    keys, bits, weights = [_NONE[0]], [_NONE[0]], [np.zeros(0)]
    for number, relation in enumerate(types.relations):
        part = joins[relation]
        a, b = types.index(relation[0]), types.index(relation[2])
        sources = starts[a] + rank[a][part.sources]
        targets = starts[b] + rank[b][part.targets]
        real = sources != targets
        loops += int((~real).sum())
        sources, targets = sources[real], targets[real]
        carried = np.zeros(len(real)) if part.weights is None else part.weights
        key = np.minimum(sources, targets) * n + np.maximum(sources, targets)
        bit = types.bit(number, sources, targets)
        both, mean = merged(key * 2 + (bit != types.bits[0, number]), carried[real][:, None])
        repeated += len(key) - len(both)
        keys.append(both // 2)
        bits.append(types.bits[both % 2, number])
        weights.append(mean[:, 0])
    every = np.concatenate(keys)
    pairs, edges = np.unique(every, return_inverse=True)
    values = types.values(edges, len(pairs), np.concatenate(bits), np.concatenate(weights))
    low, high = pairs // max(n, 1), pairs % max(n, 1)
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((columns, rows))
    indptr = row_pointers(rows[order], n)
    both_ways = values[order % max(len(pairs), 1)]
    said = {f"{loops} self-loops dropped": loops, f"{repeated} duplicate edges dropped": repeated}
    notes = tuple(note for note, count in said.items() if count)
    return (read_only(indptr), read_only(columns[order].astype(np.int32)), both_ways), notes


# -- tables ---------------------------------------------------------------------------------------


def from_typed_tables(
    _cls: type[Graph],
    /,
    nodes: Mapping[str, Any],
    edges: Mapping[tuple[str, str, str], Any],
    *,
    target: str,
    name: str = "graph",
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> Graph:
    """Build a typed graph from one table per type of node and one per relation.

    Args:
        nodes: by type; a table as `from_tables` takes it, with ``id`` and features, or a number:
            so many nodes from 0 on, without features. That of the target has ``label`` and, where
            there is one, ``split``.
        edges: by source type, name and target type; a table with ``source``, ``target`` and, where
            edges have weights, ``weight``.
        target: the type whose nodes have labels.
        name: for people.
        columns: by type, more arguments of `from_tables` for its table: ``id``, ``features``,
            ``categories`` and others.
        options: arguments of `from_tables` about labels, for the target's table.
    """
    parts = {}
    for kind, table in nodes.items():
        given = {"id": range(table)} if isinstance(table, int) else table
        own = dict((columns or {}).get(kind, {})) | (options if kind == target else {})
        parts[str(kind)] = _nodes_alone(_cls, given, own, f"{name}: {kind}")
    joins = {}
    for relation, table in edges.items():
        source, _, other = key = _relation(relation)
        for kind in (source, other):
            if kind not in parts:
                raise GraphError(f"relation {key} joins types of nodes (found {kind!r}).")
        ends = table_of(table, f"edges of {key}")
        weight = ends.columns.get("weight")
        weights = None if weight is None else np.array(weight, dtype=np.float64)
        at = [
            _positions(parts[kind], ends.column(side, side), key)
            for kind, side in ((source, "source"), (other, "target"))
        ]
        joins[key] = RelationEdges(at[0], at[1], checked_weights(weights, len(at[0])))
    return assembled(_cls, parts, joins, target, name=name)


def _nodes_alone(cls: type[Graph], table: Any, options: Mapping[str, Any], name: str) -> Graph:
    missing = options.get("missing")
    if "mean" in (missing.values() if isinstance(missing, Mapping) else (missing,)):
        raise GraphError("typed graphs take no means in the place of gaps: 'zero' or 'indicator'.")
    nothing: dict[str, list[int]] = {"source": [], "target": []}
    return cls.from_tables(table, nothing, name=name, **options).with_encoding(None)


def _relation(given: Sequence[str]) -> Relation:
    if isinstance(given, str) or len(given) != 3:
        raise GraphError(
            f"a relation is a source type, a name and a target type (found {given!r})."
        )
    source, name, target = map(str, given)
    return source, name, target


def _positions(part: Graph, given: Sequence[Any], relation: Relation) -> Ids:
    """Return the positions of the ends of edges among the nodes of a type."""
    ends = [str(end) for end in given] if part.named else [int(end) for end in given]
    found = as_ids(np.array(ends, dtype=object if part.named else np.int64))
    there = part.contains(found)
    if not there.all():
        missing = ends[int(np.flatnonzero(~there)[0])]
        raise GraphError(f"an end of relation {relation} is no node of its type ({missing!r}).")
    return part.positions(found)


def checked_weights(weights: Any, count: int) -> NDArray[np.float64] | None:
    """Return weights of so many edges of a relation; None where they have none."""
    if weights is None:
        return None
    return checked_values(weights, None, count)[1][:, 0].astype(np.float64)


# -- facts ----------------------------------------------------------------------------------------


def from_facts(
    _cls: type[Graph],
    /,
    triples: ArrayLike | Iterable[tuple[Any, Any, Any]],
    *,
    entities: int | Sequence[Any] | None = None,
    relations: Sequence[Any] | None = None,
    name: str = "facts",
) -> Graph:
    """Build a graph of one type, ``entity``, from facts: heads, relations and tails ``[m, 3]``.

    Args:
        triples: ids or names of each. A fact whose head is its tail is dropped, with a note.
        entities: all of them, or how many there are, numbered from 0; default those of the facts,
            found in the data.
        relations: names of all of them; where ``triples`` hold numbers, those are positions among
            them. Default those of the facts, found in the data.
        name: for people.
    """
    given: Any = as_array(triples, "facts").tolist() if hasattr(triples, "shape") else triples
    rows = [tuple(row) for row in given]
    if any(len(row) != 3 for row in rows):
        raise GraphError("facts are triples of a head, a relation and a tail.")
    heads, middle, tails = ([row[at] for row in rows] for at in range(3))
    inferred = [*(() if entities is not None else ("entities",))]
    if relations is None:
        inferred += ["relations"]
        known = {item: str(item) for item in sorted(set(middle), key=_by_number)}
    elif all(isinstance(item, int) for item in middle):
        known = {at: str(item) for at, item in enumerate(relations)}
    else:
        known = {item: str(item) for item in relations}
    unknown = set(middle) - known.keys()
    if unknown:
        raise GraphError(f"relation {sorted(unknown, key=str)[0]!r} is none of those declared.")
    if entities is None:
        entities = sorted({*heads, *tails}, key=_by_number)
    table = {"id": range(entities) if isinstance(entities, int) else list(entities)}
    part = _nodes_alone(_cls, table, {}, name)
    at = np.stack([_positions(part, ends, (ENTITY, name, ENTITY)) for ends in (heads, tails)])
    number = {item: index for index, item in enumerate(known)}
    kind = np.array([number[item] for item in middle], dtype=np.int64)
    joins = {
        (ENTITY, said, ENTITY): RelationEdges(at[0, kind == index], at[1, kind == index])
        for index, said in enumerate(known.values())
    }
    return assembled(_cls, {ENTITY: part}, joins, ENTITY, name=name, inferred=inferred)


def _by_number(item: Any) -> tuple[int, str]:
    return (int(item), "") if isinstance(item, int | np.integer) else (0, str(item))


def facts(graph: Graph) -> Ids:
    """All edges of a typed graph ``[m, 3]``: id of the source, number of the relation, target.

    ``graph.types.relations`` has the relations by number. Sorted by relation, then by the ends.
    """
    every = facts_of(graph)
    return every[np.lexsort((every[:, 2], every[:, 0], every[:, 1]))]


def facts_of(graph: Graph, among: Ids | None = None) -> Ids:
    """Return the facts ``[m, 3]`` by ids of a typed graph, or those between some of its nodes."""
    types = graph.types
    if types is None:
        raise GraphError("the edges of this graph have no types.")
    nodes = graph.ids if among is None else among[graph.contains(among)]
    places = graph.places(nodes)
    indptr, others = neighbour_rows(graph.table, places)
    own = np.repeat(nodes, np.diff(indptr))
    once = own < others
    if among is not None:
        once &= ranks(others, nodes) >= 0
    values = edge_value_rows(graph.table, places)[once, : types.columns]
    low, high = own[once], others[once]
    found = [np.zeros((0, 3), dtype=np.int64)]
    for start in range(0, len(low), _BLOCK):
        part = slice(start, start + _BLOCK)
        some, columns = np.nonzero(values[part])
        held = values[part][some, columns].astype(np.int64)
        at, bits = np.nonzero((held[:, None] >> np.arange(PER_COLUMN)) & 1)
        edges, bits = some[at], bits + columns[at] * PER_COLUMN
        relation = np.searchsorted(types.bits[1], bits)
        same = types.bits[0, relation] != types.bits[1, relation]
        up = np.where(same, bits == types.bits[0, relation], types.rises[relation])
        ends = low[part][edges], high[part][edges]
        sides = np.where(up, *ends), relation, np.where(up, *ends[::-1])
        found.append(np.stack(sides, axis=1))
    return np.concatenate(found)


def weights_of(graph: Graph, relation: int, sources: Ids, targets: Ids) -> Values | None:
    """Return the weights of edges of a relation, by id; None where it has none."""
    types = graph.types
    if types is None or not types.weighted[relation]:
        return None
    bits = types.bit(relation, sources, targets)
    carried = graph.values_between(sources, targets)
    columns = np.array([types.weight_columns[int(bit)] for bit in bits], dtype=np.int64)
    return carried[np.arange(len(bits)), columns]
