"""Paths: ridge regression from what typed paths lead to, the member of typed graphs.

Which paths there are follows from the schema: one and two steps from the target type along any
relation in either direction, so that some always lead back to it. A row has a block for each: the
nodes at the ends of a path, hashed, as shares and their square roots; the sum of their features at
length 1, where their type has some; the classes of labelled ends, where a path leads back to the
target type. A node is never at an end of its own paths. An end that few nodes lead to says little
about others, and counts less. How many ends there are has a column as well.

In each step a bounded number of neighbours counts, by hashes that are keyed by relation and ids. So
a row reads a bounded number of nodes, and forgetting one moves the rows that read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Change
from grapheraser.aggregation.members.base import SCALE, Ids, Places, Rows
from grapheraser.aggregation.members.ridge import RidgeMember
from grapheraser.aggregation.members.walks import Stale
from grapheraser.graph import Graph
from grapheraser.graph.csr import slices_of
from grapheraser.graph.types import Types
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import ANY, LABELLED, features_differ
from grapheraser.kernels.paged import (
    NOWHERE,
    feature_rows,
    label_at,
    labels_at,
    locate,
    located,
    nodes_at,
    role_at,
)
from grapheraser.kernels.sets import ranks
from grapheraser.kernels.typed import (
    Step,
    choose_otherwise,
    choosing,
    next_to,
    sources_at,
    step_from,
)
from grapheraser.seeding import derive

# Neighbours that count in the first and the second step; and where labels are few.
REACH, REACH_OF_FEW = (16, 8), (64, 16)
# Columns of all hashed blocks together; of one where labels are few; and at the least. Of those for
# nodes, one in so many is about shares, and the others about their square roots.
COLUMNS, COLUMNS_OF_FEW, LEAST, SHARES = 512, 2560, 16, 5
# Where a schema has more paths of two steps than that, one step has to do: every path has columns.
MAX_PATHS = 128
# Ends that so many nodes lead to, or more, count in full. Only powers of two are told apart: then
# one node less hardly ever moves the rows of all who read such an end.
KNOWN = 16
# Chosen on DBLP, like the columns and counts above, with scores of test authors of other splits in
# sight (docs/typed.md).
RIDGE_OF_FEW = 3.0
# Features of so many columns also count as they are, not only at length 1.
_NARROW = 64
# Rows whose ends are held at once.
_AT_ONCE = 4096


class Path(NamedTuple):
    """A path from the target type.

    Attributes:
        steps: relation and direction of each: True from source to target.
        end: number of the type that it leads to.
    """

    steps: tuple[tuple[int, bool], ...]
    end: int


@lru_cache(maxsize=32)
def paths_of(types: Types) -> tuple[Path, ...]:
    """Return the paths of a schema, shorter ones first; see `MAX_PATHS`."""
    ways: list[tuple[int, tuple[int, bool], int]] = []
    for relation, (source, _, target) in enumerate(types.relations):
        a, b = types.index(source), types.index(target)
        ways += [(a, (relation, True), b), (b, (relation, False), a)]
    levels = [[Path((), 0)]]
    for _ in range(2):
        levels.append(
            [Path((*p.steps, step), b) for p in levels[-1] for a, step, b in ways if a == p.end]
        )
    kept = levels if len(levels[-1]) <= MAX_PATHS else levels[:-1]
    return tuple(path for level in kept for path in level)


@dataclass(frozen=True)
class PathRegression(RidgeMember):
    """Ridge regression from the ends of typed paths, before it has seen any.

    Attributes:
        columns: of all hashed blocks together.
        most: columns of one of them.
        reach: neighbours that count in each step.
    """

    columns: int = COLUMNS
    most: int = COLUMNS
    reach: tuple[int, int] = REACH

    @property
    def name(self) -> str:
        return "paths"

    def of_few(self) -> PathRegression:
        """See `RidgeMember`: with room for nearly every end."""
        wide = {"columns": 2**20, "most": COLUMNS_OF_FEW, "reach": REACH_OF_FEW}
        return replace(self, ridge=RIDGE_OF_FEW, **wide)  # type: ignore[arg-type]

    @property
    def asks_as_it_learns(self) -> bool:
        """See `RidgeMember`."""
        return True

    def width(self, graph: Graph) -> int:
        """See `RidgeMember`."""
        return self._blocks(graph)[-1].first

    def rows(self, graph: Graph, places: Places, seed: int, *, learning: bool) -> Rows:
        """See `RidgeMember`."""
        del learning
        blocks = self._blocks(graph)
        out = np.zeros((len(places), blocks[-1].first))
        out[:, -1] = SCALE
        # Paths begin at the target type: rows of other nodes have nothing but the constant.
        own = np.flatnonzero(_types(graph).of(nodes_at(graph.table, places)) == 0)
        self._fill(graph, places, seed, blocks[:-1], own, out)
        return out

    def _fill(
        self, graph: Graph, places: Places, seed: int, blocks: Sequence[Block], at: Ids, out: Rows
    ) -> None:
        """Write some blocks of those rows that are ``at`` some of the places."""
        for start in range(0, len(at), _AT_ONCE):
            part = at[start : start + _AT_ONCE]
            walks, rows = _Walks(graph, places[part], seed, self.reach), out[part]
            for block in blocks:
                block.fill(walks, rows)
            out[part] = rows

    def rows_before_and_after(
        self, change: Change, old: Places, graph: Graph, new: Places, moved: Ids, seed: int
    ) -> tuple[Rows, Rows]:
        """See `RidgeMember`; rows move in a block or two, and the others are not made twice."""
        after, before = self.rows(graph, new, seed, learning=True), change.before.graph
        nodes = nodes_at(before.table, old)
        known = ranks(nodes, nodes_at(graph.table, new))
        out = np.zeros((len(old), after.shape[1]))
        out[known >= 0] = after[known[known >= 0]]
        gone = np.flatnonzero(known < 0)
        out[gone] = self.rows(before, old[gone], seed, learning=True)
        blocks = self._blocks(graph)[:-1]
        for number, part in enumerate(_walked(blocks)):
            at = np.flatnonzero(ranks(nodes, moved[1, moved[0] == number]) >= 0)
            at = at[known[at] >= 0]
            out[at[:, None], _columns(part)] = 0.0
            self._fill(before, old, seed, part, at, out)
        return out, after

    def stale(
        self, change: Change, graph: Graph, seed: int, *, learning: bool, among: Ids | None = None
    ) -> Stale:
        """See `RidgeMember`; ``moved`` are numbers of `_walked` blocks, and below them the ids."""
        del learning
        types, before = _types(graph), change.before.graph
        touched = change.touched
        rewritten = touched[_rewritten(before.table, graph.table, touched)]
        # Whatever its row, the label that is learned from it may be another.
        found = [rewritten[types.of(rewritten) == 0]]
        for part in _walked(self._blocks(graph)[:-1]):
            path, kind = part[0].path, part[0].kind
            steps = steps_of(types, path, kind, seed, self.reach)
            moved = rewritten[types.of(rewritten) == path.end]
            if path.end:
                ends = touched[types.of(touched) == path.end]
                moved = np.union1d(moved, ends[_better_known(before, graph, ends, steps[-1])])
            for step in reversed(steps):
                moved = _moved(before, graph, step, touched, moved, step.kind == LABELLED)
            found.append(moved[types.of(moved) == 0])
        nodes = np.unique(np.concatenate(found))
        if among is not None:
            nodes = np.intersect1d(nodes, among, assume_unique=True)
        numbers = np.repeat(np.arange(len(found) - 1), [len(some) for some in found[1:]])
        return Stale(nodes, np.stack([numbers, np.concatenate(found[1:])]))

    def _blocks(self, graph: Graph) -> tuple[Block, ...]:
        classes = graph.num_classes if graph.label_kind.is_classes else 0
        return _blocks(_types(graph), classes, self.columns, self.most)


def _walked(blocks: Sequence[Block]) -> list[list[Block]]:
    """Return blocks together that are about the same ends."""
    found: dict[tuple[Path, int], list[Block]] = {}
    for block in blocks:
        found.setdefault((block.path, block.kind), []).append(block)
    return list(found.values())


def _columns(blocks: Sequence[Block]) -> Ids:
    return np.concatenate([np.arange(b.first, b.first + b.columns) for b in blocks])


def _types(graph: Graph) -> Types:
    assert graph.types is not None
    return graph.types


def _moved(before: Graph, graph: Graph, step: Step, touched: Ids, ends: Ids, by_label: bool) -> Ids:
    """Return sorted ids of the nodes from which a step leads elsewhere, or to one of the ends."""
    table = graph.table
    near = next_to(table, ends, step)
    near.sort()
    found = near[choosing(table, near, ends, step)]
    asked = touched[touched >> step.shift == step.source]
    asked = np.union1d(asked, near) if by_label else asked
    others = asked[choose_otherwise(before.table, table, asked, step)]
    return np.union1d(found, others)


def _better_known(before: Graph, graph: Graph, nodes: Ids, last: Step) -> NDArray[np.bool_]:
    """Mark the ends of a step (ids) that count more, or less, than before."""
    tables = before.table, graph.table
    was, now = (sources_at(table, located(table, nodes), last, KNOWN) for table in tables)
    differ: NDArray[np.bool_] = was != now
    return differ


@compiled
def _rewritten(before, after, nodes):  # type: ignore[no-untyped-def]
    """Mark the nodes that are new, or have other features, another label or role."""
    out = np.ones(len(nodes), dtype=np.bool_)
    for i in range(len(nodes)):
        was, now = locate(before, nodes[i]), locate(after, nodes[i])
        if NOWHERE not in (was, now):
            out[i] = features_differ(before, was, after, now)
            out[i] |= label_at(before, was) != label_at(after, now)
            out[i] |= role_at(before, was) != role_at(after, now)
        elif now == NOWHERE:
            out[i] = False
    return out


@lru_cache(maxsize=256)
def steps_of(
    types: Types, path: Path, kind: int, seed: int, reach: tuple[int, int]
) -> tuple[Step, ...]:
    """Return the steps of a path; the last leads to nodes of a kind."""
    made = []
    for at, (relation, forward) in enumerate(path.steps):
        ends = types.relations[relation]
        source, target = (types.index(ends[0 if forward else 2]), types.index(ends[2 * forward]))
        up, down = types.bits[:, relation] if forward else types.bits[::-1, relation]
        if sum(int(mask).bit_count() for mask in types.masks[source, target]) == 1:
            up = down = -1
        last = kind if at + 1 == len(path.steps) else ANY
        key = np.uint64(derive(seed, "paths", *ends, forward, at, last))
        made.append(Step(source, target, int(up), int(down), types.shift, last, reach[at], key))
    return tuple(made)


class _Ends(NamedTuple):
    """The ends of a path from some nodes.

    Attributes:
        indptr, entries: rows of ``places`` that each node's walks end at, again for each walk.
        places: of the ends, each once.
    """

    indptr: NDArray[np.int64]
    entries: NDArray[np.int64]
    places: Places


class _Walks:
    """Walks from some nodes along many paths; what paths begin with is walked once.

    Args:
        graph: where to walk.
        places: of the nodes.
        seed: of the run.
        reach: neighbours that count in each step.
    """

    def __init__(self, graph: Graph, places: Places, seed: int, reach: tuple[int, int]) -> None:
        self.graph, self.seed, self.reach = graph, seed, reach
        self.ids = nodes_at(graph.table, places)
        once, at = np.unique(places, return_inverse=True)
        own = _Ends(np.arange(len(places) + 1), at.reshape(-1), once)
        self._known: dict[tuple[Any, int], _Ends] = {((), ANY): own}

    def ends(self, path: Path, kind: int) -> _Ends:
        """Return the ends of a path; only those of a kind in its last step."""
        key = (path.steps, kind if path.steps else ANY)
        if key not in self._known:
            types = _types(self.graph)
            last = steps_of(types, path, kind, self.seed, self.reach)[-1]
            before = self.ends(Path(path.steps[:-1], last.source), ANY)
            indptr, found = step_from(self.graph.table, before.places, last)
            once, at = np.unique(found, return_inverse=True)
            sizes = np.diff(indptr)[before.entries]
            ends = np.append(0, np.cumsum(sizes))[before.indptr]
            entries = at.reshape(-1)[slices_of(indptr, before.entries)]
            self._known[key] = _Ends(ends, entries, once)
        return self._known[key]


class Block(NamedTuple):
    """Columns of a row that are about the ends of one path.

    Attributes:
        path: where they are.
        what: ``nodes``, ``features`` or ``labels``; empty after the last block.
        first: the first column.
        columns: how many.
        of: the first feature column of the type and the one after the last.
    """

    path: Path
    what: str
    first: int
    columns: int = 0
    of: tuple[int, int] = (0, 0)

    @property
    def kind(self) -> int:
        """Which ends count."""
        return LABELLED if self.what == "labels" else ANY

    def fill(self, walks: _Walks, out: Rows) -> None:
        """Write the block of each node into its row."""
        graph, ends = walks.graph, walks.ends(self.path, self.kind)
        part = out[:, self.first : self.first + self.columns]
        ids = nodes_at(graph.table, ends.places)
        mine = walks.ids if self.path.steps else np.full(len(walks.ids), -1)
        if self.what == "labels":
            labels = labels_at(graph.table, ends.places)
            _labels(ends.indptr, ends.entries, ids, mine, labels, part)
        elif self.what == "nodes":
            last = steps_of(_types(graph), self.path, ANY, walks.seed, walks.reach)[-1]
            known = sources_at(graph.table, ends.places, last, KNOWN)
            weights, shares = (known - 1.0) / (KNOWN - 1.0), (self.columns - 1) // SHARES
            key = np.uint64(derive(walks.seed, "ends of paths", self.path.end))
            _nodes(ends.indptr, ends.entries, ids, mine, weights, shares, key, part)
        else:
            rows = feature_rows(graph.table, ends.places)
            key = np.uint64(derive(walks.seed, "features of paths", self.path.end))
            _features(ends.indptr, ends.entries, ids, mine, *rows, self.of, key, part)


@lru_cache(maxsize=32)
def _blocks(types: Types, classes: int, columns: int, most: int) -> tuple[Block, ...]:
    """Return the blocks of a row, and one that tells where the constant is and the row ends."""
    found: list[tuple[Path, str]] = []
    for path in paths_of(types):
        if types.widths[path.end]:
            found.append((path, "features"))
        if path.steps and path.end:
            found.append((path, "nodes"))
        if path.steps and classes and not path.end:
            found.append((path, "labels"))
    hashed = sum(what != "labels" for _, what in found)
    room = min(most, max(LEAST, columns // max(1, hashed)))
    made, first = [], 0
    for path, what in found:
        of = types.starts[path.end], types.starts[path.end + 1]
        wide = of[1] - of[0]
        size = 2 * classes if what == "labels" else room
        if what == "features":
            size = min(room, wide) + (wide if wide <= _NARROW else 0)
        made.append(Block(path, what, first, size + 1, of))
        first += size + 1
    return (*made, Block(Path((), 0), "", first + 1))


def blocks_in_words(types: Types, classes: int) -> Iterator[str]:
    """Say what the rows of a typed graph are made of, a line for each block."""
    for block in _blocks(types, classes, COLUMNS, COLUMNS)[:-1]:
        names = [types.relations[relation][1] for relation, _ in block.path.steps]
        yield f"{block.what} of {types.names[block.path.end]} by {' '.join(names) or 'itself'}"


@compiled
def _nodes(indptr, entries, ids, mine, weights, shares, key, out):  # type: ignore[no-untyped-def]
    """Write how often walks end at nodes, hashed; and how many walks there are.

    Square roots of shares first, then ``shares`` columns of these; both less where ends are known
    to few others.
    """
    last = out.shape[1] - 1
    roots = last - shares
    counts, totals = np.zeros(last), np.zeros(last)
    for r in range(len(indptr) - 1):
        counts[:], totals[:], total = 0.0, 0.0, 0
        for e in range(indptr[r], indptr[r + 1]):
            node = ids[entries[e]]
            if node == mine[r]:
                continue
            code = paired(key, np.uint64(node))
            total += 1
            for column in (
                np.int64(code % np.uint64(roots)),
                roots + np.int64((code >> np.uint64(32)) % np.uint64(shares)),
            ):
                counts[column] += 1.0
                totals[column] += weights[entries[e]]
        for u in range(last):
            if counts[u] > 0.0:
                share = counts[u] / total
                value = math.sqrt(share) if u < roots else share
                out[r, u] = np.rint(value * (totals[u] / counts[u]) * SCALE)
        out[r, last] = np.rint(total / (total + 4.0) * SCALE)


@compiled
def _labels(indptr, entries, ids, mine, labels, out):  # type: ignore[no-untyped-def]
    """Write shares of the classes at the ends and their square roots; and how many there are."""
    classes = (out.shape[1] - 1) // 2
    counts = np.zeros(classes)
    for r in range(len(indptr) - 1):
        counts[:], total = 1.0 / classes, 0
        for e in range(indptr[r], indptr[r + 1]):
            if ids[entries[e]] != mine[r]:
                counts[labels[entries[e]]] += 1.0
                total += 1
        for k in range(classes):
            share = counts[k] / (total + 1.0)
            out[r, k] = np.rint(share * SCALE)
            out[r, classes + k] = np.rint(math.sqrt(share) * SCALE)
        out[r, 2 * classes] = np.rint(total / (total + 4.0) * SCALE)


@compiled
def _features(indptr, entries, ids, mine, starts, columns, values, of, key, out):  # type: ignore[no-untyped-def]
    """Write the sum of the ends' features at length 1; narrow ones also as they are on average.

    Sums are made in the order of the walks, which follows from ids: a row has the same bits
    whichever rows it is made with.
    """
    wide, last = of[1] - of[0], out.shape[1] - 1
    room = last - wide if wide <= _NARROW else last
    hashed = room < wide
    sums, plain = np.zeros(room), np.zeros(wide if wide <= _NARROW else 0)
    for r in range(len(indptr) - 1):
        sums[:], plain[:], total = 0.0, 0.0, 0
        for e in range(indptr[r], indptr[r + 1]):
            end = entries[e]
            if ids[end] == mine[r]:
                continue
            total += 1
            for i in range(starts[end], starts[end + 1]):
                column, value = np.int64(columns[i]) - of[0], np.float64(values[i])
                if len(plain):
                    plain[column] += value
                if hashed:
                    code = paired(key, np.uint64(column))
                    column = np.int64((code >> np.uint64(1)) % np.uint64(room))
                    value = value if code & np.uint64(1) else -value
                sums[column] += value
        square = 0.0
        for u in range(room):
            square += sums[u] * sums[u]
        for u in range(room if square > 0.0 else 0):
            out[r, u] = np.rint(sums[u] / math.sqrt(square) * SCALE)
        for u in range(len(plain)):
            mean = plain[u] / max(total, 1)
            out[r, room + u] = np.rint(mean / (1.0 + abs(mean)) * SCALE)
        out[r, last] = np.rint(total / (total + 4.0) * SCALE)
