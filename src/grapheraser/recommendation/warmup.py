"""Compiled code of recommenders made ready before it is needed."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from grapheraser.eraser.warmup import compiling
from grapheraser.graph.changes.sides import Interactions, Items, Users
from grapheraser.recommendation.eraser import Recommender


def warm_up_recommendation() -> None:
    """Compile what recommenders will use, whatever their interactions."""
    rows = np.arange(12)
    near = sp.csr_array((np.abs(rows[:, None] - rows) < 3).astype(np.float64))
    with compiling():
        eraser = Recommender().fit(near)
        eraser.recommend([0])
        eraser.similar([0])
        eraser.explain(0, 3)
        for request in (Users([0]), Interactions([(4, 5)]), Items([7])):
            eraser.unlearn(request)
