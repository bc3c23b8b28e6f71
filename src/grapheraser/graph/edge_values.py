"""What each entry of the adjacency carries besides the neighbour: direction, weight, features.

Row u lists each neighbour v once. The entry's values belong to the edge from v to u, which is the
one that u's message passing reads; in an undirected graph both entries of an edge have the same.
Values are float32, in this order:

    direction   in directed graphs: `INCOMING` (v to u), `OUTGOING` (u to v) or `BOTH`
    weight      in weighted graphs
    features    the edge's own row

Where there is only the outgoing edge, weight and features are 0; the neighbour's row has them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.kernels.paged import INCOMING, OUTGOING

Values = NDArray[np.float32]

BOTH = INCOMING | OUTGOING
NO_VALUES: Values = np.zeros((0, 0), dtype=np.float32)
NO_VALUES.flags.writeable = False


class EdgeKind(NamedTuple):
    """What the edges of a graph are.

    Attributes:
        directed: whether an edge leads from one node to the other.
        weighted: whether it has a weight.
        columns: how many features it has.
    """

    directed: bool = False
    weighted: bool = False
    columns: int = 0

    @property
    def width(self) -> int:
        """How many values an entry carries."""
        return int(self.directed) + int(self.weighted) + self.columns

    def directions(self, values: Values) -> NDArray[np.int64]:
        """The direction of each entry."""
        if not self.directed:
            return np.full(len(values), BOTH, dtype=np.int64)
        return values[:, 0].astype(np.int64)

    def weights(self, values: Values) -> Values | None:
        """The weight of each entry; None where edges have none."""
        return values[:, int(self.directed)] if self.weighted else None

    def features(self, values: Values) -> Values | None:
        """The features of each entry; None where edges have none."""
        return values[:, self.width - self.columns :] if self.columns else None

    def incoming_weights(self, values: Values) -> Values | None:
        """The weight with which each entry's neighbour comes in, 0 where it does not; None: 1."""
        if self.weighted or not self.directed:
            return self.weights(values)
        return (values[:, 0] != OUTGOING).astype(np.float32)


PLAIN = EdgeKind()


def converted(values: Values, back: NDArray[np.int32], old: EdgeKind, new: EdgeKind) -> Values:
    """The values of entries whose edges lose weights, features or directions.

    Args:
        values: of each entry.
        back: the place of the entry of the opposite direction.
        old: what edges are before.
        new: what they are after.
    """
    carried = values[:, int(old.directed) :]
    if old.directed and not new.directed:
        comes_in = (old.directions(values) & INCOMING != 0)[:, None]
        both = carried.astype(np.float64) + carried[back]  # what is not there is 0
        carried = (both / (comes_in + comes_in[back].astype(np.float64))).astype(np.float32)
    parts = [values[:, :1]] if new.directed else []
    parts += [carried[:, :1]] if new.weighted else []
    parts += [carried[:, int(old.weighted) :]] if new.columns else []
    return np.concatenate(parts, axis=1) if parts else NO_VALUES
