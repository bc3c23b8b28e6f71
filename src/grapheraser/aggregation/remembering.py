"""An ensemble whose posteriors are computed once, however many aggregations look at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble


@dataclass(frozen=True, eq=False)
class KeptEnsemble(Ensemble):
    """Keeps every row that was ever asked for; on another graph it starts afresh."""

    kept: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, ensemble: Ensemble) -> KeptEnsemble:
        """The same shards on the same graph."""
        parts = ensemble.graph, ensemble.partition, ensemble.shards, ensemble.model, ensemble.seed
        return cls(*parts, ensemble.device)

    def posteriors(
        self, positions: NDArray[np.int64], shards: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """See `Ensemble`."""
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
        if shards is None:
            return values[:, positions]
        place = {shard: row for row, shard in enumerate(self.shard_ids)}
        rows = np.array([place[shard] for shard in shards], dtype=np.int64)
        return values[rows][:, positions]
