"""Types of nodes and relations between them: the schema of a typed graph.

A typed graph is a `Graph` whose ids tell the type of a node: the upper bits are the number of the
type, the lower ones the node's number within it, or bits of the hash of its name. The target type,
whose nodes have labels and roles, has the number 0: its ids are those that people use. An id
follows from type and number alone.

An entry of the adjacency carries the relations between its ends: a bit for each relation, two where
both ends are of one type (from the lower id to the higher, and back), `PER_COLUMN` bits to a
float32, and after these the weights of relations that have some, a column for each of their bits.
Both entries of an edge carry the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.canonical import canonical_json
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.edge_values import Values
from grapheraser.graph.ids import NamedId, Names, name_id, names_of
from grapheraser.kernels.typed import PER_COLUMN

Ids = NDArray[np.int64]
Relation = tuple[str, str, str]

MAX_TYPES = 2**12


class TypedId(NamedId):
    """The id of a node of a typed graph, together with ``type/number`` or ``type/name``."""

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedId.called, (int(self), self.name)


@dataclass(frozen=True)
class Types:
    """The types and relations that a graph may have, whether or not it has any of them now.

    Attributes:
        names: of the types; the first is the target type.
        relations: source type, name and target type of each.
        widths: feature columns of each type; those of all types lie side by side.
        weighted: of each relation, whether its edges have weights.
    """

    names: tuple[str, ...]
    relations: tuple[Relation, ...]
    widths: tuple[int, ...]
    weighted: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if not self.weighted:
            object.__setattr__(self, "weighted", (False,) * len(self.relations))
        if not 1 <= len(self.names) <= MAX_TYPES or len(set(self.names)) < len(self.names):
            raise GraphError(f"a graph has 1 to {MAX_TYPES} different types (found {self.names}).")
        if len(set(self.relations)) < len(self.relations):
            raise GraphError(f"relations must be different (found {self.relations}).")
        wrong = [name for name in self.names if not name or "/" in name]
        if wrong:
            raise GraphError(f"a type has a name without '/' (found {wrong[0]!r}).")
        for source, _, target in self.relations:
            self.index(source), self.index(target)

    @property
    def target(self) -> str:
        """The type whose nodes have labels and roles."""
        return self.names[0]

    def index(self, name: str) -> int:
        """Return the number of a type."""
        if name not in self.names:
            raise GraphError(f"a type is one of {', '.join(self.names)} (found {name!r}).")
        return self.names.index(name)

    def relation(self, given: Any) -> int:
        """Return the number of a relation: from all three names, or its own where that will do."""
        wanted = tuple(given) if isinstance(given, list | tuple) else given
        if isinstance(wanted, tuple):
            found = [i for i, known in enumerate(self.relations) if known == wanted]
        else:
            found = [i for i, known in enumerate(self.relations) if known[1] == wanted]
        if len(found) != 1:
            known = ", ".join(map(str, self.relations[:20]))
            more = ", ..." if len(self.relations) > 20 else ""
            raise GraphError(f"a relation is one of {known}{more} (found {given!r}).")
        return found[0]

    # -- for modules -------------------------------------------------------------------------

    @cached_property
    def in_channels(self) -> dict[str, int]:
        """Feature columns of each type, as modules see them: a column of ones where it has none."""
        return {name: max(1, w) for name, w in zip(self.names, self.widths, strict=True)}

    def ways_of(self, relation: int) -> tuple[Relation, Relation]:
        """Return a relation and its opposite, as modules see both."""
        source, name, target = self.relations[relation]
        return (source, name, target), (target, f"rev_{name}", source)

    @cached_property
    def metadata(self) -> tuple[list[str], list[Relation]]:
        """Types and relations as PyG's ``to_hetero`` takes them."""
        ways = [way for i in range(len(self.relations)) for way in self.ways_of(i)]
        if len(set(ways)) < len(ways):
            raise GraphError("a relation is named 'rev_...' like the opposite of another.")
        return list(self.names), ways

    # -- ids ---------------------------------------------------------------------------------

    @property
    def shift(self) -> int:
        """Bits of an id below the number of its type."""
        return 63 - (len(self.names) - 1).bit_length()

    def ids(self, index: int, numbers: Ids) -> Ids:
        """Return the ids of numbered nodes of a type."""
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 2**self.shift:
            raise GraphError(
                f"numbers of nodes are in [0, 2**{self.shift}) (found {numbers.min()} to "
                f"{numbers.max()})."
            )
        return numbers + (index << self.shift)

    def numbers(self, ids: Ids) -> Ids:
        """Return the numbers of nodes within their types."""
        return ids & ((1 << self.shift) - 1)

    def of(self, ids: Ids) -> Ids:
        """Return the number of the type of each id."""
        return ids >> self.shift

    def called(self, index: int, name: Any) -> str:
        """Return the name of a node with its type; one type alone is not said."""
        return f"{self.names[index]}/{name}" if len(self.names) > 1 else str(name)

    def name_id(self, index: int, name: str) -> TypedId:
        """Return the id of a node that has a name within its type."""
        called = self.called(index, name)
        kept = name_id(called) >> (63 - self.shift)
        return TypedId.called((index << self.shift) + kept, called)

    def ids_of_names(self, names: Iterable[str]) -> Ids:
        """Return the ids of names as `called` spells them."""
        return np.array([self.resolved(name, named=True) for name in names], dtype=np.int64)

    def resolved(self, node: Any, kind: str | None = None, *, named: bool) -> int:
        """Return the id of a node, given by id or name.

        Args:
            node: a number within its type, an id where no type is said, or a name: ``type/name`` or
                that of a node of the target type.
            kind: the type; None: as above.
            named: whether nodes have names.
        """
        if isinstance(node, TypedId):
            return node
        if not isinstance(node, str | NamedId):
            if kind is None:
                return node if named else self._spelled(int(node))
            return self._of_type(self.index(kind), str(int(node)), named)
        text = node.name if isinstance(node, NamedId) else node
        head, _, rest = text.partition("/")
        if rest and head in self.names and kind in (None, head):
            kind, text = head, rest
        return self._of_type(0 if kind is None else self.index(kind), text, named)

    def _of_type(self, index: int, text: str, named: bool) -> int:
        if named:
            return self.name_id(index, text)
        if not (text.isascii() and text.isdigit()) or int(text) >> self.shift:
            if "/" in text:
                self.index(text.partition("/")[0])  # refuses a type that there isn't
            raise ParameterError(
                f"nodes of type '{self.names[index]}' have numbers below 2**{self.shift}. "
                f"Got {text!r}."
            )
        return self._spelled((index << self.shift) + int(text))

    def _spelled(self, node: int) -> TypedId:
        index = node >> self.shift
        if not 0 <= index < len(self.names):
            return TypedId.called(node, str(node))
        return TypedId.called(node, self.called(index, node & ((1 << self.shift) - 1)))

    def spelled(self, ids: Ids) -> Names:
        """Return numbered nodes as ``type/number``."""
        return names_of(self._spelled(node).name for node in ids.tolist())

    # -- features ----------------------------------------------------------------------------

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first feature column of each type, and their number."""
        return tuple(np.concatenate([[0], np.cumsum(self.widths)]).tolist())

    def widened(self, ids: Ids, x: sp.csr_array) -> sp.csr_array:
        """Return feature rows of nodes of one type in the columns of the whole graph."""
        kinds = np.unique(self.of(ids)).tolist()
        if len(kinds) != 1:
            raise ParameterError("feature rows are of nodes of one type at a time.")
        first, end = self.starts[kinds[0] : kinds[0] + 2]
        if x.shape[1] != end - first:
            raise GraphError(
                f"nodes of type '{self.names[kinds[0]]}' have {end - first} feature columns "
                f"(found {x.shape[1]})."
            )
        shape = (len(ids), self.starts[-1])
        return sp.csr_array((x.data, x.indices + first, x.indptr), shape=shape)

    # -- relations on edges ------------------------------------------------------------------

    @cached_property
    def bits(self) -> Ids:
        """Bits of a relation that leads to the higher id, and to the lower ``[2, relations]``."""
        first = np.cumsum([0, *(1 + (a == b) for a, _, b in self.relations)])
        same = np.array([a == b for a, _, b in self.relations], dtype=bool)
        return np.stack([first[:-1], first[:-1] + same])

    @cached_property
    def rises(self) -> NDArray[np.bool_]:
        """A mask of the relations that lead to a type of the same or a higher number."""
        return np.array([self.index(a) <= self.index(b) for a, _, b in self.relations], dtype=bool)

    @property
    def num_bits(self) -> int:
        """Bits of all relations."""
        return int(self.bits.max(initial=-1)) + 1

    @property
    def columns(self) -> int:
        """Columns that hold bits."""
        return max(1, -(-self.num_bits // PER_COLUMN))

    @cached_property
    def weight_columns(self) -> Mapping[int, int]:
        """The column of the weight that goes with a bit."""
        bits = sorted({int(b) for r, w in enumerate(self.weighted) if w for b in self.bits[:, r]})
        return {bit: self.columns + at for at, bit in enumerate(bits)}

    @property
    def width(self) -> int:
        """Values that an entry of the adjacency carries."""
        return self.columns + len(self.weight_columns)

    def bit(self, relation: int, sources: Ids, targets: Ids) -> Ids:
        """Return the bit that says a relation leads from a node to another, both by id."""
        up, down = self.bits[:, relation]
        return np.where(sources < targets, up, down)

    def has(self, values: Values, bits: Ids) -> NDArray[np.bool_]:
        """Mark the entries that carry a bit each."""
        held = values[np.arange(len(values)), bits // PER_COLUMN].astype(np.int64)
        return (held >> (bits % PER_COLUMN)) & 1 != 0

    def values(self, edges: Ids, count: int, bits: Ids, weights: NDArray[np.float64]) -> Values:
        """Return what some edges carry.

        Args:
            edges: the number of an edge, each once for each of its bits.
            count: how many edges there are.
            bits: of these edges.
            weights: likewise; ignored where a relation has none.
        """
        found = np.zeros((count, self.width), dtype=np.float64)
        np.add.at(found, (edges, bits // PER_COLUMN), 2.0 ** (bits % PER_COLUMN))
        for bit, column in self.weight_columns.items():
            found[edges[bits == bit], column] = weights[bits == bit]
        return found.astype(np.float32)

    def without(self, values: Values, bits: Sequence[int]) -> Values:
        """Return the values of one edge without some of its bits."""
        left = values.copy()
        for bit in bits:
            left[bit // PER_COLUMN] -= np.float32(2.0 ** (bit % PER_COLUMN))
            if bit in self.weight_columns:
                left[self.weight_columns[bit]] = 0.0
        return left

    @cached_property
    def masks(self) -> Ids:
        """Bits ``[types, types, columns]`` that edges between two types may carry."""
        found = np.zeros((len(self.names), len(self.names), self.columns), dtype=np.int64)
        for relation, (source, _, target) in enumerate(self.relations):
            a, b = self.index(source), self.index(target)
            for bit in set(self.bits[:, relation].tolist()):
                found[[a, b], [b, a], bit // PER_COLUMN] |= 1 << (bit % PER_COLUMN)
        return found

    def joined(self, old: Values, new: Values) -> Values:
        """Return what edges carry with the relations of both; new weights take the place of old."""
        bits = self.columns
        both = np.where(new[:, bits:] != 0, new[:, bits:], old[:, bits:])
        held = old[:, :bits].astype(np.int64) | new[:, :bits].astype(np.int64)
        return np.concatenate([held.astype(np.float32), both], axis=1)

    def relation_of(self, bit: int) -> int:
        """Return the relation of a bit."""
        return int(np.searchsorted(self.bits[1], bit))

    def about(self, ids: Ids, bit: int | None) -> dict[str, Any]:
        """Return what a part of a receipt says of the types of nodes, and of a relation."""
        said: dict[str, Any] = {"types": self.of(ids).tolist(), "shift": self.shift}
        return said if bit is None else said | {"called": self.relations[self.relation_of(bit)][1]}

    # -- in manifests ------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain JSON."""
        return {
            "names": list(self.names),
            "relations": [list(relation) for relation in self.relations],
            "widths": list(self.widths),
            "weighted": list(self.weighted),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any] | None) -> Types | None:
        """Read a schema; None where there is none."""
        if given is None:
            return None
        return cls(
            tuple(map(str, given["names"])),
            tuple((str(a), str(r), str(b)) for a, r, b in given["relations"]),
            tuple(map(int, given["widths"])),
            tuple(map(bool, given["weighted"])),
        )

    @property
    def content(self) -> bytes:
        """The schema as the fingerprint has it."""
        return canonical_json(self.to_dict()).encode()
