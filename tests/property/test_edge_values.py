"""The promise holds for edges with weights, directions and features of their own.

Over random sequences of deletions and insertions, for every model that uses them, on every engine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.aggregation import AGGREGATORS
from tests.property.test_exactness import bits, retrained
from tests.strategies import (
    Weighing,
    engines,
    graphs_with_edge_values,
    requests_for,
    small_graph,
    with_edge_values,
)

CASES = [*((m, e) for m in ("gcn", "gcn:paper") for e in engines()), ("custom", "pyg")]

pytestmark = pytest.mark.slow
every_case = pytest.mark.parametrize(("model", "engine"), CASES)


@st.composite
def settings_drawn(draw: st.DrawFn) -> dict[str, Any]:
    aggregation = draw(st.sampled_from(list(AGGREGATORS)))
    return {
        "partition": draw(st.sampled_from(["hash", "random", "blpa"])),
        "aggregation": aggregation,
        "num_shards": draw(st.integers(1, 4)),
        "halo": draw(st.booleans()),
        "sample": draw(st.sampled_from(["auto", "all", 5])),
        "seed": draw(st.integers(0, 3)),
    }


def eraser_of(model: str, engine: str, **changes: Any) -> ge.GraphEraser:
    part = ge.CustomModel(Weighing, hops=2) if model == "custom" else model
    options = {"epochs": 3, "executor": ge.LocalExecutor(1), **changes}
    return ge.GraphEraser(model=part, engine=engine, **options)


def new_edges(graph: ge.Graph, others: list[int], seed: int) -> dict[str, Any]:
    """Weights and features for the edges of a new node, where the graph's edges have them."""
    rng = np.random.default_rng(seed)
    kind = graph.edge_kind
    weights = rng.random(len(others)) if kind.weighted else None
    rows = rng.random((len(others), kind.columns)) if kind.columns else None
    return {"edge_weight": weights, "edge_attr": rows}


@every_case
@settings(max_examples=10)
@given(st.data())
def test_a_sequence_of_changes_ends_where_a_fresh_fit_does(
    model: str, engine: str, data: st.DataObject
) -> None:
    graph = data.draw(graphs_with_edge_values(columns=model == "custom"))
    eraser = eraser_of(model, engine, **data.draw(settings_drawn())).fit(graph)
    for step in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans(), label="insert"):
            others = data.draw(
                st.lists(st.sampled_from(graph.ids.tolist()), max_size=4, unique=True)
            )
            carried = new_edges(graph, others, step)
            eraser.insert(1000 + step, graph.x[[0]], 1, others, **carried)
            graph = graph.with_node(1000 + step, graph.x[[0]], 1, others, **carried)
        else:
            request = data.draw(requests_for(graph))
            if len(graph.without(request).train_nodes) < 5:
                continue
            eraser.unlearn(request)
            graph = graph.without(request)
        assert eraser.graph_ == graph
        assert bits(eraser) == bits(retrained(eraser, graph, eraser.partition_))
    assert eraser.verify().identical


@every_case
def test_a_run_forgets_after_it_was_loaded(model: str, engine: str, tmp_path: Path) -> None:
    columns = 2 if model == "custom" else 0
    graph = with_edge_values(small_graph(), columns=columns, directed=True)
    eraser = eraser_of(model, engine, num_shards=3).fit(graph)
    eraser.save(tmp_path / "run")
    own = ge.CustomModel(Weighing, hops=2) if model == "custom" else None
    loaded = ge.GraphEraser.load(tmp_path / "run", model=own)
    assert bits(loaded) == bits(eraser)
    for each in (loaded, eraser):
        each.unlearn(ge.Edges(graph.edges[:2]))
    assert bits(loaded) == bits(eraser)
    assert loaded.verify().identical
