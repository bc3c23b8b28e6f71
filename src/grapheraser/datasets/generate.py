"""Graphs of any size, generated block by block: every node and every edge follows from its number.

Nodes belong to communities, communities to classes. Each of the drawn pairs chooses its first node
by popularity, and its second in the same community, in another community of the same class, or in
another class, as ``homophily`` asks. Popularity falls as a power of the rank, of a node in its
community and of a community in its class, so that degrees have a heavy tail. Features are the
centre of the class, the centre of the community and noise.

All of it is integers, hashes and the functions of `kernels.elementary`: the same bits everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.checks import real, whole
from grapheraser.graph import Graph
from grapheraser.graph.formats.streams import NodeBlock
from grapheraser.graph.roles import CONTEXT, TEST, TRAIN, UNLABELLED
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential, logarithm
from grapheraser.kernels.hashing import mixed, paired
from grapheraser.seeding import GOLDEN, derive

_OWNER = "generate_graph"
# Nodes of a community on average, where nothing else is asked.
_COMMUNITY = 1000
# Of the edges within a class so many are within a community.
_CLOSE = 0.5
# The most popular rank of a community is as popular as if so many came before it.
_HEAD = 1.0
# Likewise of a class, this share of its communities: they differ less than nodes do.
_HEAD_SHARE = 0.02
_STEP = (
    1_000_003  # a prime: multiplying by it scatters numbers modulo any size that it can't divide
)
_UNIT = 2.0**-53


@dataclass(frozen=True)
class GeneratedGraph:
    """A graph that is computed when it is asked for; see `generate_graph` for the arguments."""

    num_nodes: int
    degree: float = 20.0
    num_features: int = 64
    num_classes: int = 10
    homophily: float = 0.7
    tail: float = 2.5
    communities: int | None = None
    signal: float = 0.3
    mislabelled: float = 0.05
    labelled: float = 1.0
    test_share: float = 0.2
    seed: int = 0
    name: str = "generated"
    each_edge_once: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "num_nodes": whole("num_nodes", _OWNER, self.num_nodes, 2, 2**40),
            "degree": real("degree", _OWNER, self.degree, 0),
            "num_features": whole("num_features", _OWNER, self.num_features, 1, 2**20),
            "num_classes": whole("num_classes", _OWNER, self.num_classes, 2, self.num_nodes),
            "tail": real("tail", _OWNER, self.tail, above=2),
            "signal": real("signal", _OWNER, self.signal, 0),
            "seed": whole("seed", _OWNER, self.seed),
        }
        for name in ("homophily", "mislabelled", "labelled", "test_share"):
            checked[name] = real(name, _OWNER, getattr(self, name), 0, 1)
        usual = max(checked["num_classes"], checked["num_nodes"] // _COMMUNITY)
        given = usual if self.communities is None else self.communities
        least, most = checked["num_classes"], checked["num_nodes"]
        checked["communities"] = whole("communities", _OWNER, given, least, most)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def signature(self) -> dict[str, Any]:
        """The values that tell one generated graph from another; see `graph.formats.streams`."""
        return {"generated": asdict(self)}

    @property
    def num_pairs(self) -> int:
        """The number of drawn pairs; loops and repeated ones are no edges."""
        return round(self.num_nodes * self.degree / 2)

    def edges(self, low: int, high: int) -> NDArray[np.int64]:
        """The pairs of these numbers ``[high - low, 2]``, some of them repeated or loops."""
        pairs: NDArray[np.int64] = _pairs(
            low,
            high,
            np.uint64(derive(self.seed, "generate", "edges")),
            self._plan,
            self.homophily,
            _CLOSE * self.homophily,
        )
        return pairs

    def nodes(self, low: int, high: int) -> NodeBlock:
        """The nodes of these ids."""
        ids = np.arange(low, high, dtype=np.int64)
        y, role = _labels(
            ids,
            np.uint64(derive(self.seed, "generate", "labels")),
            self._plan,
            (self.mislabelled, self.labelled, self.test_share),
        )
        key = np.uint64(derive(self.seed, "generate", "features"))
        x = _features(ids, key, self._plan, self.num_features, np.float32(self.signal))
        return NodeBlock(ids, y, role, x)

    def node_blocks(self, size: int = 1 << 16) -> Iterator[NodeBlock]:
        """All nodes, in blocks of so many."""
        for low in range(0, self.num_nodes, size):
            yield self.nodes(low, min(low + size, self.num_nodes))

    def edge_blocks(self, size: int = 1 << 20) -> Iterator[NDArray[np.int64]]:
        """All pairs, in blocks of so many."""
        for low in range(0, self.num_pairs, size):
            yield self.edges(low, min(low + size, self.num_pairs))

    @cached_property
    def _plan(self) -> _Plan:
        """The numbers that the kernels need of classes and communities."""
        assert self.communities is not None
        count, classes = self.communities, self.num_classes
        # The share of class k falls as 1 / sqrt(k + 1): some classes are larger than others.
        shares = np.cumsum(1.0 / np.sqrt(np.arange(1, classes + 1)))
        inner = np.floor(shares / shares[-1] * (count - classes)).astype(np.int64)
        bounds = np.concatenate([[0], inner + np.arange(1, classes + 1)])
        bounds[-1] = count
        power = 1.0 - 1.0 / (self.tail - 1.0)
        small = self.num_nodes // count
        sizes = np.array([small, small + 1])
        of_classes = _ranks(np.diff(bounds), 1.0 + np.diff(bounds) * _HEAD_SHARE, power)
        return _Plan(
            self.num_nodes,
            count,
            bounds,
            power,
            of_classes,
            _ranks(sizes, np.full(2, _HEAD), power),
            _stride(count),
            np.array([_stride(size) for size in sizes.tolist()]),
        )


class _Ranks(NamedTuple):
    """The ranks of some groups: rank r has a popularity of (r + head) ** (power - 1)."""

    sizes: NDArray[np.int64]  # int64, ranks of each group
    heads: NDArray[np.float64]  # float64, see above
    # low, high: float64, head ** power and (size + head) ** power.
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class _Plan(NamedTuple):
    """The place of nodes in communities, and of communities in classes."""

    # num_nodes, communities: how many.
    num_nodes: int
    communities: int
    bounds: NDArray[np.int64]  # int64 ``[num_classes + 1]``, the first community of each class
    power: float  # see `_Ranks`
    of_classes: _Ranks  # ranks of the communities of each class
    # Ranks of the nodes of a community, of the smaller and of the larger size.
    of_communities: _Ranks
    across: int  # what scatters communities over ids
    inside: NDArray[np.int64]  # what scatters ranks over a community, of either size


def _ranks(sizes: NDArray[np.int64], heads: NDArray[np.float64], power: float) -> _Ranks:
    return _Ranks(sizes, heads, _powers(heads, power), _powers(sizes + heads, power))


def _stride(size: int) -> int:
    """A number that multiplying by modulo the size is one-to-one."""
    stride = _STEP % max(1, size) or 1
    while math.gcd(stride, size) > 1:
        stride += 1
    return stride


def generate_graph(
    num_nodes: int,
    *,
    degree: float = 20.0,
    num_features: int = 64,
    num_classes: int = 10,
    homophily: float = 0.7,
    tail: float = 2.5,
    communities: int | None = None,
    signal: float = 0.3,
    mislabelled: float = 0.05,
    labelled: float = 1.0,
    test_share: float = 0.2,
    seed: int = 0,
    name: str = "generated",
) -> Graph:
    """Generate a graph with communities, a heavy tail of degrees, dense features and labels.

    The same arguments give the same graph on every machine. What doesn't fit into memory is
    generated on the disk: ``grapheraser import generated:nodes=10000000 --out G``.

    Args:
        num_nodes: how many; their ids are ``0 .. num_nodes - 1``.
        degree: neighbours of a node on average; a few per cent less, since pairs that are drawn
            twice are one edge.
        num_features: columns, all of them dense.
        num_classes: how many; the first is the largest.
        homophily: the share of drawn pairs within a class.
        tail: the exponent of the distribution of degrees, more than 2; the smaller, the larger
            the hubs.
        communities: how many; default one for 1,000 nodes.
        signal: how far the centres of classes and communities are apart, in standard deviations
            of the noise.
        mislabelled: the share of nodes that have a label drawn at random.
        labelled: the share of nodes with a label; the others are context nodes.
        test_share: the share of the labelled nodes for testing; the others train.
        seed: of everything.
        name: for people.
    """
    plan = GeneratedGraph(**locals())
    ids, y, role, x = plan.nodes(0, plan.num_nodes)
    pairs = np.sort(plan.edges(0, plan.num_pairs), axis=1)
    joined = np.unique(pairs[:, 0] * plan.num_nodes + pairs[:, 1])
    ends = np.stack([joined // plan.num_nodes, joined % plan.num_nodes])
    return Graph.from_arrays(
        x,
        ends[:, ends[0] != ends[1]],
        y,
        train=ids[role == TRAIN],
        test=ids[role == TEST],
        num_classes=plan.num_classes,
        each_edge_once=True,
        name=name,
    )


@compiled(inline=True)
def _uniform(state: np.uint64) -> float:
    return np.float64(state >> np.uint64(11)) * _UNIT


@compiled
def _powers(values, power):  # type: ignore[no-untyped-def]
    out = np.empty(len(values))
    for i in range(len(values)):
        out[i] = exponential(power * logarithm(values[i]))
    return out


@compiled
def _rank(ranks: _Ranks, group: int, uniform: float, power: float) -> int:
    """A rank of a group, drawn with the popularity of ranks."""
    low = ranks.low[group]
    at = low + uniform * (ranks.high[group] - low)
    drawn = exponential(logarithm(at) / power) - ranks.heads[group]
    return min(max(np.int64(drawn), 0), ranks.sizes[group] - 1)


@compiled
def _node(plan: _Plan, community: int, uniform: float) -> int:
    """A node of a community, drawn by popularity."""
    column = (community * plan.across) % plan.communities
    size = (plan.num_nodes - column + plan.communities - 1) // plan.communities
    group = size - plan.of_communities.sizes[0]
    rank = _rank(plan.of_communities, group, uniform, plan.power)
    row = (rank * plan.inside[group] + community) % size
    return row * plan.communities + column


@compiled
def _community_of(plan: _Plan, kind: int, uniform: float) -> int:
    """A community of a class, drawn by popularity."""
    return plan.bounds[kind] + _rank(plan.of_classes, kind, uniform, plan.power)


@compiled
def _class_of(plan: _Plan, community: int) -> np.int64:
    return np.int64(np.searchsorted(plan.bounds, community, side="right") - 1)


@compiled
def _pairs(low, high, key, plan, homophily, close):  # type: ignore[no-untyped-def]
    out, drawn = np.empty((high - low, 2), dtype=np.int64), np.empty(7)
    for i in range(low, high):
        state = paired(key, np.uint64(i))
        for t in range(len(drawn)):
            state = mixed(state + GOLDEN)
            drawn[t] = _uniform(state)
        kind = _class_of(plan, np.int64(drawn[0] * plan.communities))
        community = _community_of(plan, kind, drawn[1])
        out[i - low, 0] = _node(plan, community, drawn[2])
        if drawn[3] >= close:
            if drawn[3] >= homophily:
                # A community outside of the class tells the other class.
                own = plan.bounds[kind + 1] - plan.bounds[kind]
                other = np.int64(drawn[6] * (plan.communities - own))
                kind = _class_of(plan, other if other < plan.bounds[kind] else other + own)
            community = _community_of(plan, kind, drawn[4])
        out[i - low, 1] = _node(plan, community, drawn[5])
    return out


@compiled(inline=True)
def _home(plan: _Plan, node: int, back: int) -> int:
    """The community of a node."""
    return (node % plan.communities) * back % plan.communities


@compiled
def _inverse(stride: int, size: int) -> int:
    """Return what undoes multiplying by a stride modulo a size."""
    old, new, a, b = 1, 0, stride, size
    while b:
        quotient = a // b
        a, b = b, a - quotient * b
        old, new = new, old - quotient * new
    return old % size


@compiled
def _labels(ids, key, plan, shares):  # type: ignore[no-untyped-def]
    mislabelled, labelled, tested = shares
    classes, back = len(plan.bounds) - 1, _inverse(plan.across, plan.communities)
    y, role = np.empty(len(ids), dtype=np.int64), np.empty(len(ids), dtype=np.int8)
    for i in range(len(ids)):
        state = mixed(paired(key, np.uint64(ids[i])) + GOLDEN)
        y[i] = _class_of(plan, _home(plan, ids[i], back))
        if _uniform(state) < mislabelled:
            state = mixed(state + GOLDEN)
            y[i] = np.int64(_uniform(state) * classes)
        state = mixed(state + GOLDEN)
        if _uniform(state) >= labelled:
            y[i], role[i] = UNLABELLED, CONTEXT
            continue
        state = mixed(state + GOLDEN)
        role[i] = TEST if _uniform(state) < tested else TRAIN
    return y, role


@compiled(inline=True)
def _normal(state: np.uint64) -> np.float32:
    """Nearly a standard normal number: the sum of four uniform ones, from one hash."""
    total = np.int64(0)
    for part in range(4):
        total += np.int64((state >> np.uint64(16 * part)) & np.uint64(0xFFFF))
    # The sum of four in [0, 65536) has the mean 131070 and the standard deviation 37837.2.
    return np.float32(total - 131_070) * np.float32(1.0 / 37_837.2)


@compiled
def _features(ids, key, plan, columns, signal):  # type: ignore[no-untyped-def]
    out = np.empty((len(ids), columns), dtype=np.float32)
    back = _inverse(plan.across, plan.communities)
    of_class, of_community = mixed(key + np.uint64(1)), mixed(key + np.uint64(2))
    for i in range(len(ids)):
        home = _home(plan, ids[i], back)
        kind = paired(of_class, np.uint64(_class_of(plan, home)))
        near, own = paired(of_community, np.uint64(home)), paired(key, np.uint64(ids[i]))
        for column in range(columns):
            step = np.uint64(column) * GOLDEN
            centre = _normal(mixed(kind + step)) + np.float32(0.5) * _normal(mixed(near + step))
            out[i, column] = signal * centre + _normal(mixed(own + step))
    return out
