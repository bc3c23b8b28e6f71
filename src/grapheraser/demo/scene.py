"""One forgotten node and what lies around it: what the pictures of the demonstration show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines.task import digest_tensors
from grapheraser.graph import Graph
from grapheraser.seeding import generator

if TYPE_CHECKING:
    from grapheraser.nodes import GraphEraser

# A node with fewer neighbours leaves little to see, one with more is a hub; and where all
# neighbours are of one class, as most often, there is little to see either.
_MIN_DEGREE, _MAX_DEGREE, _CLASSES = 6, 9, 3
_TRIES = 200
# So many neighbours of each neighbour are drawn.
_FURTHER = 4

AGGREGATION, _SHARD = "combination", "shard "

Ids = NDArray[np.int64]
Posteriors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Scene:
    """A node, its neighbours and some of theirs, before and after it is forgotten."""

    node: int  # the one that is forgotten
    label: int  # its class in the data
    near: Ids  # its neighbours
    far: Ids  # neighbours of those; at most four are drawn for each
    parents: Ids  # the neighbour of the node at which each of ``far`` is drawn
    edges: Ids  # ``[m, 2]`` edges between all of these, the node included
    num_around: int  # how many nodes lie within two steps
    shards: dict[int, int]  # the shard of every training node of these, by id
    members: Ids  # nodes of the node's own shard, the node included
    inside: Ids  # ``[m, 2]`` edges of the graph that this shard trains on
    own: Posteriors  # posterior of the node, before
    # before, after: posteriors ``[len(near) + len(far), num_classes]``.
    before: Posteriors
    after: Posteriors
    # digests_before, digests_after: of every shard's weights and of what combines them; see
    # `digests`.
    digests_before: dict[str, str]
    digests_after: dict[str, str]

    @property
    def shard(self) -> int:
        """The shard that the node is in."""
        return self.shards[self.node]

    @property
    def around(self) -> Ids:
        """The nodes that ``before`` and ``after`` are about."""
        return np.concatenate([self.near, self.far])

    @property
    def changed(self) -> int:
        """The number of nodes around that got another class."""
        return int((self.before.argmax(axis=1) != self.after.argmax(axis=1)).sum())

    @property
    def largest_move(self) -> float:
        """The largest change of a probability among the nodes around."""
        return float(np.abs(self.after - self.before).max(initial=0.0))

    @property
    def retrained(self) -> list[int]:
        """Shards whose weights are others than before, ascending."""
        old, new = self.digests_before, self.digests_after
        other = {name for name in old | new if old.get(name) != new.get(name)}
        return sorted(int(name.removeprefix(_SHARD)) for name in other - {AGGREGATION})


def digests(eraser: GraphEraser) -> dict[str, str]:
    """The digest of every shard's weights and of what combines them, by name."""
    found = {f"{_SHARD}{shard}": weights.digest for shard, weights in eraser.shards_.items()}
    return {**found, AGGREGATION: digest_tensors(eraser.aggregator_.tensors)}


def choose(graph: Graph, seed: int) -> int:
    """A training node with some neighbours, of several classes if possible, but no hub."""
    nodes = graph.train_nodes
    degrees = graph.degree[graph.positions(nodes)]
    fitting = nodes[(degrees >= _MIN_DEGREE) & (degrees <= _MAX_DEGREE)]
    if not len(fitting):
        fitting = nodes[degrees == degrees[degrees <= max(_MAX_DEGREE, int(degrees.min()))].max()]
    drawn = generator(seed, "demo", "scene").permutation(fitting)[:_TRIES]
    for node in drawn.tolist():
        if len(np.unique(graph.y[graph.positions(graph.neighbours(node))])) >= _CLASSES:
            return int(node)
    return int(drawn[0])


def look(eraser: GraphEraser, node: int) -> Scene:
    """The scene before the node is forgotten; ``after`` is as ``before``."""
    graph, partition = eraser.graph_, eraser.partition_
    near = graph.neighbours(node)
    seen = {node, *near.tolist()}
    far, parents = [], []
    around = set(seen)
    for parent in near.tolist():
        further = graph.neighbours(parent)
        around |= set(further.tolist())
        for other in [other for other in further.tolist() if other not in seen][:_FURTHER]:
            far.append(other)
            parents.append(parent)
            seen.add(other)
    drawn = np.array([node, *near.tolist(), *far], dtype=np.int64)
    shards = {
        int(one): int(partition.shard_of([one])[0])
        for one in drawn[np.isin(drawn, partition.nodes)]
    }
    members = partition.members(shards[node])
    before = eraser.predict_proba(drawn)
    found = digests(eraser)
    return Scene(
        node=node,
        label=int(graph.y[graph.positions([node])[0]]),
        near=near,
        far=drawn[1 + len(near) :],
        parents=np.array(parents, dtype=np.int64),
        edges=graph.subgraph(drawn).edges,
        num_around=len(around) - 1,
        shards=shards,
        members=members,
        inside=graph.training_graph.subgraph(members).edges,
        own=before[0],
        before=before[1:],
        after=before[1:],
        digests_before=found,
        digests_after=found,
    )


def look_again(scene: Scene, eraser: GraphEraser) -> Scene:
    """The scene once the node is forgotten."""
    return replace(scene, after=eraser.predict_proba(scene.around), digests_after=digests(eraser))
