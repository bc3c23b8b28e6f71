"""Links of two sides, and of nodes with names: forgetting ends in the bits of a fresh fit.

The oracle never sees the eraser's graph: it builds a new one from what is left of the raw input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from tests.links.graphs import bipartite_graph


@dataclass
class World:
    """Raw input: rows and pairs by the ids or names of nodes."""

    rows: dict[Any, np.ndarray]
    sides: dict[Any, int]
    pairs: list[tuple[Any, Any]]
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def made(cls, seed: int, *, named: bool, options: dict[str, Any]) -> World:
        graph, _ = bipartite_graph(seed, users=14, items=7)
        name = {
            int(i): f"{'user' if i < 1000 else 'item'} {i}" if named else int(i) for i in graph.ids
        }
        dense = graph.x.toarray()
        rows = {name[int(i)]: dense[place] for place, i in enumerate(graph.ids)}
        sides = {name[int(i)]: int(i >= 1000) for i in graph.ids}
        return cls(rows, sides, [(name[u], name[v]) for u, v in graph.edges.tolist()], options)

    def graph(self) -> ge.Graph:
        ids = list(self.rows)
        ends = np.array([list(pair) for pair in self.pairs]).T
        x, y = np.stack(list(self.rows.values())), [self.sides[one] for one in ids]
        made: ge.Graph = ge.Graph.from_arrays(
            x, ends, y, ids=ids, num_classes=2, each_edge_once=True, name="shop"
        )
        return made

    def fitted(self) -> ge.LinkEraser:
        return ge.LinkEraser(**self.options).fit(self.graph())

    def forget(self, kind: str, at: int) -> Any:
        """Take something out of the raw input; return the request for it, None where none is."""
        if kind == "edge" and len(self.pairs) > 8:
            return ge.Edges([self.pairs.pop(at % len(self.pairs))])
        node = list(self.rows)[at % len(self.rows)]
        if kind == "features":
            if not self.rows[node].any():  # nothing to forget
                return None
            self.rows[node] = np.zeros_like(self.rows[node])
            return ge.Features([node])
        left = [pair for pair in self.pairs if node not in pair]
        if kind != "node" or len(left) < 8:
            return None
        self.pairs = left
        del self.rows[node]
        return ge.Nodes([node])


def bits(eraser: ge.LinkEraser) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in eraser._snapshot.state.tensors().items()}


OPTIONS: dict[str, dict[str, Any]] = {
    "one side": {},
    "by id": {"sides": 1000},
    "by label": {"sides": "labels"},
}
STEPS = st.lists(
    st.tuples(st.sampled_from(["node", "edge", "features"]), st.integers(0, 10**6)),
    min_size=1,
    max_size=4,
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("named", "sides"),
    [(False, "by id"), (False, "by label"), (True, "one side"), (True, "by label")],
    ids=["ids-by-id", "ids-by-label", "names-one-side", "names-by-label"],
)
@settings(max_examples=12)
@given(seed=st.integers(0, 50), steps=STEPS)
def test_forgetting_is_training_on_the_rest(
    named: bool, sides: str, seed: int, steps: list[tuple[str, int]]
) -> None:
    world = World.made(seed, named=named, options=OPTIONS[sides])
    eraser = world.fitted()
    for kind, at in steps:
        request = world.forget(kind, at)
        if request is not None:
            eraser.unlearn(request)
    fresh = world.fitted()
    assert bits(eraser) == bits(fresh)
    pairs = world.pairs[:5]
    assert (eraser.predict_proba(pairs) == fresh.predict_proba(pairs)).all()
    ranked, wanted = (one.rank(pairs[0][0], top=4) for one in (eraser, fresh))
    assert (ranked.nodes == wanted.nodes).all()
    assert ranked.probabilities.tobytes() == wanted.probabilities.tobytes()
