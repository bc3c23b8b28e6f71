"""A snapshot of a link run, and what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser.plan import Plan
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import (
    EmptyEnsembleError,
    GraphError,
    NothingToForgetError,
    ParameterError,
)
from grapheraser.graph import (
    UNLABELLED,
    AddNodes,
    Edit,
    Graph,
    GraphChange,
    Labels,
    Request,
    SetLabels,
    as_changes,
    as_requests,
)
from grapheraser.graph.changes import with_classes
from grapheraser.graph.ids import as_ids
from grapheraser.links.graph import BY_LABEL, check_weights, sides_of
from grapheraser.links.metrics import LinkScore, link_score
from grapheraser.links.model import FittedLinks, probabilities
from grapheraser.links.numbers import Pairs


@dataclass(frozen=True, eq=False)
class LinkSnapshot(Snapshot):
    """All that a fit or a request leaves behind; see `Snapshot`."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> LinkSnapshot:
        """A snapshot that was read as one of any run."""
        return cls(**{f.name: getattr(snapshot, f.name) for f in fields(Snapshot)})

    @property
    def fitted(self) -> FittedLinks:
        """The learned weights."""
        fitted = self.state.aggregator
        assert isinstance(fitted, FittedLinks)
        return fitted

    def log_odds(self, pairs: Pairs) -> NDArray[np.float64]:
        """The logarithm of the odds of an edge, for checked pairs."""
        return self.fitted.log_odds(self.state.ensemble, pairs)

    def predict_links(self, pairs: ArrayLike) -> NDArray[np.float32]:
        """The probability of an edge between each pair of ids."""
        return probabilities(self.log_odds(self.checked(pairs, "predict_proba")))

    def score_links(self, pairs: ArrayLike, labels: ArrayLike) -> LinkScore:
        """How well the scores of pairs tell edges (label 1) from others (label 0)."""
        checked, truth = self.checked(pairs, "score"), np.asarray(labels)
        if truth.shape != (len(checked),) or not np.isin(truth, (0, 1)).all():
            raise ParameterError(
                f"'labels' of LinkEraser.score must be 0 or 1 for each of {len(checked)} pairs. "
                f"Got shape {list(truth.shape)}, values {np.unique(truth)[:5].tolist()}."
            )
        return link_score(self.log_odds(checked), truth.astype(bool))

    def checked(self, pairs: ArrayLike, owner: str) -> Pairs:
        """Pairs of ids ``[m, 2]`` that are in the graph; repeats are allowed."""
        ids = np.asarray(_plain(pairs))
        if ids.size == 0:
            ids = ids.reshape(0, 2).astype(np.int64)
        if ids.ndim != 2 or ids.shape[1] != 2:
            raise ParameterError(
                f"'pairs' of LinkEraser.{owner} must have the shape [m, 2]. Got {list(ids.shape)}.",
                hint="one pair is a row; pass an edge_index [2, m] as edge_index.T.",
            )
        self.state.graph.places(ids.ravel())
        ids = as_ids(ids.ravel()).reshape(-1, 2)
        same = ids[:, 0] == ids[:, 1]
        if same.any():
            raise ParameterError(
                f"a pair of LinkEraser.{owner} must be two nodes. "
                f"Got {ids[same][0].tolist()} ({int(same.sum())} of {len(ids)} pairs are one node "
                "with itself)."
            )
        self._check_sides(ids, owner)
        return ids

    def _check_sides(self, ids: Pairs, owner: str) -> None:
        if not self.fitted.rule.sides or len(ids) == 0:
            return
        side = self.state.graph.labels(ids.ravel()).reshape(-1, 2)
        same = side[:, 0] == side[:, 1]
        if same.any():
            raise ParameterError(
                f"a pair of LinkEraser.{owner} must be of both sides of the bipartite graph. "
                f"Got {ids[same][0].tolist()} ({int(same.sum())} of {len(ids)} pairs are of one "
                "side)."
            )

    def edit(self, changes: GraphChange | Sequence[GraphChange]) -> Edit:
        """See `Snapshot.edit`; new nodes get the labels that tell their sides."""
        names = self.state.graph.class_names
        parts = [with_classes(part, names) for part in as_changes(changes)]
        if any(isinstance(part, Labels | SetLabels) for part in parts):
            raise _no_labels()
        edit = super().edit([self._sided(p) if isinstance(p, AddNodes) else p for p in parts])
        check_weights(edit.entries.values, self.state.graph.edge_kind)
        if self.fitted.rule.sides and len(edit.pairs):
            known = np.isin(edit.pairs, edit.nodes)
            side = np.empty(edit.pairs.shape, dtype=np.int64)
            side[~known] = self.state.graph.labels(edit.pairs[~known])
            side[known] = edit.y[np.searchsorted(edit.nodes, edit.pairs[known])]
            same = side[:, 0] == side[:, 1]
            if same.any():
                u, v = edit.pairs[same][0].tolist()
                raise GraphError(
                    f"a new edge must join both sides of the bipartite graph: {u} and {v} are on "
                    f"one side ({int(same.sum())} of {len(same)} new edges are of one side)."
                )
        return edit

    def _sided(self, new: AddNodes) -> AddNodes:
        """New nodes with the labels that tell their sides."""
        sides = self.arguments["sides"]
        given = new.y != UNLABELLED
        if sides == BY_LABEL:
            wrong = new.ids[~np.isin(new.y, (0, 1))]
            if len(wrong):
                raise GraphError(
                    f"'y' of AddNodes must tell the side of each new node, 0 or 1 (node {wrong[0]} "
                    "has another)."
                )
            return new
        if given.any():
            raise GraphError(
                f"'y' of AddNodes has no part in a run whose sides are not told by labels "
                f"(node {new.ids[given][0]} has one)."
            )
        return new.labelled(sides_of(new.ids, sides))

    def check_left(self, graph: Graph) -> None:
        """Refuse a graph after changes that has no edges."""
        if graph.num_edges == 0:
            raise _no_edge_left(self.state.graph.num_edges)

    def plan(self, request: Request | Sequence[Request], *, missing: str = "raise") -> Plan:
        """What forgetting takes; see `Snapshot.plan`. Refuses to take the last edge."""
        if any(isinstance(part, Labels) for part in as_requests(request)):
            raise _no_labels()
        plan = super().plan(request, missing=missing)
        graph, removal = self.state.graph, plan.removal
        degrees = sum(len(graph.neighbours(int(node))) for node in removal.nodes)
        if degrees + len(removal.edges) >= graph.num_edges:  # hardly ever: count exactly
            self.check_left(graph.without(removal))
        return plan

    def shrunk(self, nodes: int) -> tuple[str, ...]:
        """Shards of a link run are few, and never resharded."""
        del nodes
        return ()


def _no_labels() -> NothingToForgetError:
    return NothingToForgetError(
        "a link run keeps no labels.", hint="forget the nodes, or their features or edges."
    )


def _no_edge_left(num_edges: int) -> EmptyEnsembleError:
    return EmptyEnsembleError(
        f"the request takes the last {num_edges} edges: there would be nothing to learn links "
        "from.",
        hint="delete the run instead, or leave some edges in it.",
    )


def _plain(values: Any) -> Any:
    """Arrays and tensors as they are; other iterables as lists."""
    return values if hasattr(values, "__array__") or isinstance(values, list) else list(values)
