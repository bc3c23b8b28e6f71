"""An ensemble whose posteriors are computed once, however many aggregations look at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.inference import shard_posteriors


@dataclass(frozen=True, eq=False)
class KeptEnsemble(Ensemble):
    """Keeps every row that was ever asked for; on another graph it starts afresh.

    Attributes:
        isolated: whether a shard model sees only its own nodes, the test nodes and those that it
            is asked about, as in the paper's released code, instead of the whole graph.
    """

    isolated: bool = False
    kept: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, ensemble: Ensemble, *, isolated: bool = False) -> KeptEnsemble:
        """Keep the shards of an ensemble on its graph."""
        parts = ensemble.graph, ensemble.partition, ensemble.shards, ensemble.model, ensemble.seed
        return cls(*parts, isolated)

    def posteriors(
        self, positions: NDArray[np.int64], shards: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """See `Ensemble`."""
        if self.isolated:
            return self._isolated(positions)[self._rows(shards)]
        if not self.kept:
            shape = (len(self.shards), self.graph.num_nodes, self.graph.num_classes)
            self.kept["values"] = np.empty(shape, dtype=np.float32)
            self.kept["known"] = np.zeros(self.graph.num_nodes, dtype=bool)
        values, known = self.kept["values"], self.kept["known"]
        positions = np.asarray(positions, dtype=np.int64)
        missing = np.unique(positions[~known[positions]])
        if len(missing):
            values[:, missing] = super().posteriors(missing)
            known[missing] = True
        return values[self._rows(shards)][:, positions]

    def _rows(self, shards: Sequence[int] | None) -> Any:
        if shards is None:
            return slice(None)
        place = {shard: row for row, shard in enumerate(self.shard_ids)}
        return np.array([place[shard] for shard in shards], dtype=np.int64)

    def _isolated(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Kept by question: nodes that are asked about together see each other."""
        key = np.asarray(positions, dtype=np.int64).tobytes().hex()
        if key not in self.kept:
            graph, asked = self.graph, self.graph.ids[positions]
            seen = np.union1d(graph.test_nodes, asked)
            found = []
            for shard in self.shard_ids:
                own = self.partition.nodes[self.partition.labels == shard]
                around = graph.subgraph(np.union1d(own[graph.contains(own)], seen))
                places = around.positions(asked)
                found += [*shard_posteriors(self.model, [self.shards[shard]], around, places)]
            self.kept[key] = np.stack(found)
        return self.kept[key]
