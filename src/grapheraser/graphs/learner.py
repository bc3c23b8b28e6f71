"""The pool of a collection: local members, weighed by what they say of graphs held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.aggregation.members import Member
from grapheraser.aggregation.pooled import FittedPool, PooledAggregator
from grapheraser.aggregation.sample.membership import DEFAULT, limits
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.graph import Graph
from grapheraser.graphs.colours import coloured_rows
from grapheraser.graphs.local import MEMBERS, LocalRegression
from grapheraser.nodes.new_nodes import predict_proba_new

# Every training graph is judged as if it were not there, so none has to be spared.
_MOST = 1000


def answers_to(now: Snapshot, rows: sp.csr_array) -> NDArray[Any]:
    """Return posteriors, or numbers, of graphs that are not in the collection.

    With shards, each is judged as if it alone were a test graph, under a free id.

    Args:
        now: the snapshot that is asked.
        rows: the graphs, as `Collection.rows_of` returns them.
    """
    pool, ensemble = now.state.aggregator, now.state.ensemble
    if len(now.state.shards):
        return predict_proba_new(now, rows, [()] * rows.shape[0])
    assert isinstance(pool, FittedPool)
    coloured = coloured_rows(rows, ensemble.seed)
    local: Any = pool.members["local"]
    return pool.answers(ensemble.graph, local.evidence_of(ensemble, coloured))


@dataclass(frozen=True)
class GraphPool(PooledAggregator):
    """A pool of the members of a collection; see `PooledAggregator`.

    Attributes:
        members: names, a selection of `MEMBERS`.
        references: how many graphs others are compared with, at the most.
    """

    members: tuple[str, ...] = tuple(MEMBERS)
    shards: bool = False
    references: int = 8192

    def _parts(self, classes: bool, wide: bool) -> dict[str, Member]:
        plain = PooledAggregator((), self.shards, shards_asked=self.shards_asked)
        others = plain._parts(classes, wide)
        return {"local": LocalRegression(self.members, self.references)} | others

    def _count(self, graph: Graph, parts: Mapping[str, Member]) -> int:
        del graph, parts
        return len(self.members) + self.shards

    def _limit(self, ensemble: Ensemble) -> tuple[float, int | None]:
        del ensemble
        return (1.0, _MOST) if self.sample == DEFAULT else limits(self.sample)
