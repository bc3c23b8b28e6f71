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
from grapheraser.graph import Labels, Request, as_requests
from grapheraser.graph.ids import as_ids
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
        return self.fitted.log_odds(self.state.ensemble, np.sort(pairs, axis=1))

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

    def check_neighbours(self, side: int, neighbours: ArrayLike) -> None:
        """Refuse neighbours of a new node that are on its own side."""
        if self.fitted.rule.sides:
            others = np.unique(as_ids(neighbours))
            same = others[self.state.graph.labels(others) == side]
            if len(same):
                raise GraphError(f"neighbour {same[0]} is on the new node's own side.")

    def plan(self, request: Request | Sequence[Request]) -> Plan:
        """What forgetting takes; see `Snapshot.plan`. Refuses to take the last edge."""
        if any(isinstance(part, Labels) for part in as_requests(request)):
            raise NothingToForgetError(
                "a link run keeps no labels.",
                hint="forget the nodes, or their features or edges.",
            )
        plan = super().plan(request)
        graph, removal = self.state.graph, plan.removal
        degrees = sum(len(graph.neighbours(int(node))) for node in removal.nodes)
        if degrees + len(removal.edges) >= graph.num_edges:  # hardly ever: count exactly
            left = graph.without(removal).num_edges
            if left == 0:
                raise EmptyEnsembleError(
                    f"the request takes the last {graph.num_edges} edges: there would be nothing "
                    "to learn links from.",
                    hint="delete the run instead, or leave some edges in it.",
                )
        return plan

    def shrunk(self, nodes: int) -> tuple[str, ...]:
        """Shards of a link run are few, and never resharded."""
        del nodes
        return ()


def _plain(values: Any) -> Any:
    """Arrays and tensors as they are; other iterables as lists."""
    return values if hasattr(values, "__array__") or isinstance(values, list) else list(values)
