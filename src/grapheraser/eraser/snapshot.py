"""A snapshot: one published state of an eraser, with its settings and receipts, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.aggregation import BoundAggregator
from grapheraser.eraser.plan import Plan, no_label_left, plan_removal
from grapheraser.eraser.seals import Seals, document, name_of_run
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.state import State
from grapheraser.errors import GraphError
from grapheraser.graph import (
    UNLABELLED,
    Edit,
    Graph,
    GraphChange,
    Request,
    coalesce,
    edit_of,
    in_graph,
)
from grapheraser.receipts import Ends, Receipt, Receipts, digest_of

# The largest block of posteriors held at once while predicting, in numbers.
_PREDICT_BLOCK = 32_000_000


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a fit or a request leaves behind.

    An eraser holds one and replaces it in one step: a caller that reads it once sees one state.

    Attributes:
        arguments: those of the fit, by name.
        settings: the same, resolved.
        state: what was trained.
        configuration: the settings as plain JSON.
        receipts: one per change since the fit, oldest first.
        ends: where the receipts begin and end, and the log of them.
        seals: what hides this state in the receipts.
        document: all that this state consists of; see `seals.document`.
    """

    arguments: Mapping[str, Any]
    settings: Settings
    state: State
    configuration: dict[str, Any]
    receipts: Sequence[Receipt]
    ends: Ends
    seals: Seals
    document: Mapping[str, Any]

    @classmethod
    def first(
        cls,
        arguments: Mapping[str, Any],
        settings: Settings,
        state: State,
        configuration: dict[str, Any],
    ) -> Self:
        """The snapshot of a fit, with no receipts yet."""
        # Digested now, so that the first request does not wait for it.
        seals = Seals.fresh(state.graph.ids, settings.device)
        described = document(state, configuration, seals)
        digest = digest_of(described)
        ends = Ends(name_of_run(), digest, digest_of(configuration), digest)
        return cls(arguments, settings, state, configuration, Receipts(), ends, seals, described)

    @cached_property
    def aggregator(self) -> BoundAggregator:
        """The fitted aggregation with the ensemble that it speaks for."""
        return BoundAggregator(self.state.aggregator, self.state.ensemble)

    def kept(self) -> Self:
        """The snapshot without what only the caller of the last change is told."""
        return replace(self, receipts=Receipts.of(self.receipts).kept())

    def predict_proba(self, nodes: ArrayLike) -> NDArray[np.float32]:
        """Posteriors ``[len(nodes), num_classes]`` by node id."""
        return posteriors_at(self.state, self.state.graph.positions(nodes))

    def score(self, nodes: ArrayLike) -> float:
        """Micro F1 on labelled nodes, by id."""
        graph = self.state.graph
        nodes = graph.ids_of(nodes)
        labels = graph.labels(nodes)
        if len(labels) == 0:
            raise GraphError("there are no nodes to score.")
        if (labels == UNLABELLED).any():
            raise GraphError(f"{int((labels == UNLABELLED).sum())} of the nodes have no label.")
        return float((self.predict_proba(nodes).argmax(axis=1) == labels).mean())

    def plan(self, request: Request | Sequence[Request], *, missing: str = "raise") -> Plan:
        """What forgetting takes."""
        requests = in_graph(self.state.graph, request)
        removal = coalesce(self.state.graph, requests, missing=missing)
        plan = plan_removal(self.state.graph, self.state.partition, removal, self.settings.halo_key)
        nodes = self.state.partition.num_nodes - len(plan.trained)
        return replace(plan, notes=self.shrunk(nodes))

    def edit(self, changes: GraphChange | Sequence[GraphChange]) -> Edit:
        """A list of changes, checked against the graph and merged."""
        return edit_of(self.state.graph, changes)

    def check_left(self, graph: Graph) -> None:
        """Refuse a graph after changes that leaves nothing to learn from."""
        if graph.num_train == 0:
            raise no_label_left(self.state.graph.num_train)

    def shrunk(self, nodes: int) -> tuple[str, ...]:
        """What to say where only so many nodes are left in the shards, if anything."""
        partition = self.state.partition
        slack = self.arguments["gamma"] or self.arguments["delta"] is not None
        made_for = partition.capacity * partition.num_shards
        if slack or partition.num_shards == 1 or 2 * nodes > made_for:
            return ()
        size, fewer = nodes / partition.num_shards, max(1, round(nodes / partition.capacity))
        return (
            f"shards hold {size:.0f} nodes on average instead of {partition.capacity}: "
            f"reshard({fewer}) would fit what is left afresh",
        )


def posteriors_at(state: State, positions: NDArray[np.int64]) -> NDArray[np.float32]:
    """Posteriors ``[len(positions), num_classes]`` of nodes by their positions in the graph."""
    classes = state.graph.num_classes
    block = max(1, _PREDICT_BLOCK // (max(1, len(state.shards)) * classes))
    parts = [
        state.aggregator.predict_proba(state.ensemble, positions[start : start + block])
        for start in range(0, len(positions), block)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, classes), np.float32)


# Any kind of snapshot; a change leads to another of the same kind.
AnySnapshot = TypeVar("AnySnapshot", bound=Snapshot)
