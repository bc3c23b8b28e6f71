"""A task: the translation between somebody's world and a graph that can forget.

A task says how its world becomes a graph, which changes of that graph its requests are, and how the
graph's answers become its own. Exactness, receipts, runs, updates and proofs belong to the spine,
which is written once: whoever adds a task writes a `Task`, an `Aggregator` that learns, and a
subclass of `Eraser` with a constructor and questions. docs/parts.md shows one in a page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser.settings import Settings, describe
from grapheraser.errors import EmptyEnsembleError
from grapheraser.graph import Edit, Graph, Removal, as_requests, coalesce
from grapheraser.graph.changes.parts import Rewritten
from grapheraser.graph.changes.requests import SKIP
from grapheraser.kinds import (
    GRAPH_CHANGES,
    GRAPH_KINDS,
    GRAPH_NAMES,
    KINDS,
    PARTICIPLES,
    Item,
    items_of,
)
from grapheraser.partition import Partition, partition_graph
from grapheraser.receipts.part import About

if TYPE_CHECKING:
    from grapheraser.aggregation import BoundAggregator, Explanation
    from grapheraser.eraser.snapshot import Snapshot

# In the manifest of a run: its task. A run that says nothing predicts the classes of nodes.
TASK, NODES = "task", "nodes"


@dataclass(frozen=True)
class Question:
    """A question about many nodes, or pairs of nodes, at once."""

    asks: str  # the name of what is asked about, where it is sent: ``nodes`` or ``pairs``
    ends: int  # how many ids each of them is
    # From an eraser and ids ``[m]`` or ``[m, ends]`` to numbers, one row each.
    values: Callable[[Any, ArrayLike], NDArray[Any]]
    # From the graph and those numbers to the arrays of an answer, by name.
    outputs: Callable[[Graph, NDArray[Any]], dict[str, NDArray[Any]]]
    of_nodes: bool = True  # whether ids are those of nodes, so that answers about all can be kept
    by_text: bool = False  # whether all is spelled as texts, also where nodes have numbers


class Task(ABC):
    """The translation of a world into a graph, and of its requests into changes of that graph."""

    name: ClassVar[str]  # in the manifest; `load` finds the task by it
    owner: ClassVar[str]  # the public class, as errors call it
    predicts: ClassVar[str]  # in words
    # What can be forgotten, by the names in `grapheraser.kinds`.
    kinds: ClassVar[tuple[str, ...]] = GRAPH_NAMES
    predict: ClassVar[Question | None] = None  # what the service asks
    takes_types: ClassVar[bool] = False  # whether it learns from typed graphs; see `graph.types`
    # Arguments that came later, with what runs from before were fitted with.
    added: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def question(self, graph: Graph) -> Question | None:
        """Return what the service asks about a graph; None: nothing."""
        del graph
        return self.predict

    @abstractmethod
    def resolve(
        self, arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None
    ) -> Settings:
        """Turn the constructor's arguments into parts.

        ``fitted_as`` is what those of a loaded run were resolved to; its engine is the run's.
        """

    def graph_of(self, arguments: Mapping[str, Any], settings: Settings, world: Any) -> Graph:
        """Return the graph that is fitted; refuse a world that can't be learned from."""
        del arguments, settings
        return world if isinstance(world, Graph) else Graph.from_pyg(world)

    def settings_for(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Settings:
        """Return the settings for this graph, where its labels call for others."""
        del arguments, graph
        return settings

    def partition_of(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Partition:
        """Partition the graph; one part unless a task has shards."""
        del arguments
        return partition_graph(graph, "hash", num_shards=1, seed=settings.seed)

    def warm_up(self, settings: Settings, graph: Graph) -> None:
        """Begin to compile what a run on this graph will use, where that saves time."""
        del settings, graph

    def describe(self, arguments: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
        """Return everything that the result depends on, but for the data, as plain JSON."""
        named = {} if self.name == NODES else {TASK: self.name}
        return named | describe(arguments, settings)

    def changes_of(self, now: Snapshot, changes: Sequence[Any]) -> Sequence[Any]:
        """Translate requests and changes into those of the graph; refuse what makes no sense."""
        del now
        return changes

    def spelled(self, about: About) -> About:
        """Say what a part of a receipt is about in the task's own kinds."""
        return about

    def counted(self, counts: dict[str, int], abouts: Sequence[About]) -> dict[str, int]:
        """Return how much a change names by the task's own kinds, from how much of the graph."""
        del abouts
        return counts

    def requests_of(self, requests: Sequence[Any]) -> list[Any]:
        """Return requests of the graph as those of the task: the inverse of `changes_of`."""
        return list(requests)

    def everything(self, graph: Graph) -> dict[str, Any]:
        """Return the ids of all that a graph has, by the names of the task's kinds."""
        return {kind.name: graph.edges if kind.ends > 1 else graph.ids for kind in GRAPH_KINDS}

    def items_in(self, now: Snapshot, requests: Sequence[Any]) -> set[Item]:
        """Return what requests name and the graph has, one by one."""
        parts = self.changes_of(now, requests)
        told = [part.told for part in parts if isinstance(part, Rewritten)]
        plain = as_requests([part for part in parts if not isinstance(part, Rewritten)])
        found = {item for named in told for item in items_of(named)}
        if plain or not told:
            found |= set(items_of(coalesce(now.state.graph, plain, missing=SKIP).named))
        return found

    def check_edit(self, now: Snapshot, edit: Edit) -> None:
        """Refuse an edit of the graph that the task can't learn from."""
        del now, edit

    def check_removal(self, graph: Graph, removal: Removal) -> None:
        """Refuse a removal that leaves nothing to learn from, without carrying it out."""
        if graph.num_train == graph.trained_among(removal):
            raise _no_label_left(graph.num_train)

    def check_edges_left(self, graph: Graph, removal: Removal) -> None:
        """Call `check_left` where a removal may take the last edge, and there alone."""
        degrees = sum(len(graph.neighbours(int(node))) for node in removal.nodes)
        if degrees + len(removal.edges) >= graph.num_edges:  # hardly ever: count exactly
            self.check_left(graph, graph.without(removal))

    def check_left(self, before: Graph, after: Graph) -> None:
        """Refuse a graph after changes that leaves nothing to learn from."""
        if after.num_train == 0:
            raise _no_label_left(before.num_train)

    def notes(self, now: Snapshot, nodes: int) -> tuple[str, ...]:
        """Return what the operator should know where so many nodes are left in the shards."""
        del now, nodes
        return ()


def tallied(
    kinds: Sequence[str], counts: Mapping[str, int], abouts: Sequence[About]
) -> dict[str, int]:
    """Return the counts of a change with a task's own kinds in the place of those of the graph.

    Args:
        kinds: names of the task's kinds.
        counts: how much of the graph is named.
        abouts: the parts of the change, as the task spells them.
    """
    others = {*GRAPH_NAMES, *(kind.count for kind in GRAPH_CHANGES)} - {*kinds}
    mine = {name: count for name, count in counts.items() if name not in others}
    nouns = {KINDS[name].noun: KINDS[name] for name in kinds}
    named = [(verb, nouns[noun].name) for verb, noun in (next(iter(a.items())) for a in abouts)]
    tally = Counter(name for _, name in named)
    tally.update(f"{PARTICIPLES[verb]}_{name}" for verb, name in named if verb in PARTICIPLES)
    return mine | tally


class Classifier(Protocol):
    """Questions that a run of classes of nodes answers; see `Eraser.classifier`."""

    @property
    def aggregator_(self) -> BoundAggregator:
        """The fitted aggregation with its ensemble."""

    @property
    def aggregation(self) -> Any:
        """The constructor's argument."""

    def predict_proba(self, nodes: ArrayLike) -> NDArray[np.float32]:
        """Posteriors ``[len(nodes), num_classes]`` by node id."""

    def score(self, nodes: ArrayLike) -> float:
        """Micro F1 on labelled nodes, by id."""

    def explain(self, node: int | str) -> Explanation:
        """Name the members of the ensemble that decide about one node."""


class Collector(Protocol):
    """Questions that a run of whole graphs answers; see `Eraser.collector`."""

    @property
    def collection_(self) -> Any:
        """The graphs, by id."""

    def predict(self, graphs: ArrayLike) -> NDArray[Any]:
        """Classes, labels or numbers by the ids of graphs."""

    def explain(self, graph: int | str, target: int | str = 0) -> Any:
        """Say why a graph is taken for what it is."""


def _no_label_left(num_train: int) -> EmptyEnsembleError:
    return EmptyEnsembleError(
        f"the request takes the last {num_train} training nodes or their labels: no shard would be "
        "left to predict with.",
        hint="delete the run instead, or leave some training nodes in it.",
    )
