"""The promise for links: what `unlearn` leaves is what a fresh fit on the rest gives, bit for bit.

Over small random graphs and random sequences of requests, for every kind of members. What a run
keeps to save time must be what a fresh fit makes as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.graph import Request
from grapheraser.links.answers import fitted_links
from grapheraser.links.index import Index
from grapheraser.receipts import EXACT
from tests.links.graphs import bipartite_graph, hub_graph
from tests.property.test_processors import OTHER, ROOT
from tests.strategies import (
    TwoHops,
    Weighing,
    graphs_with_edge_values,
    requests_for,
    small_graph,
    small_graphs,
    with_edge_values,
)

pytestmark = pytest.mark.slow
KINDS = ("nodes", "edges", "features")
SHARDED: dict[str, Any] = {
    "num_shards": 3,
    "epochs": 2,
    "width": 4,
    "executor": ge.LocalExecutor(1),
}


def eraser_of(members: str, **changes: Any) -> ge.LinkEraser:
    return ge.LinkEraser(members, **({} if members == "closed-form" else SHARDED), **changes)


def bits(eraser: ge.LinkEraser) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Everything that was learned, kept or predicted, as bytes."""
    now = eraser._snapshot
    fitted = fitted_links(now)
    tensors: dict[str, NDArray[Any]] = dict(now.state.tensors())
    assert fitted.sample is not None
    tensors |= {"pairs": fitted.sample.pairs, "labels": fitted.sample.labels}
    if fitted.described is not None:
        kept = fitted.described
        tensors |= {"numbers": kept.numbers, "pointers": kept.pointers, "read": kept.read}
    index = fitted.index_of(now.state.ensemble)
    tensors["index"] = np.concatenate([block.rows for block in index.blocks])
    tensors["indexed"] = np.concatenate([block.nodes for block in index.blocks])
    tensors["predictions"] = eraser.predict_proba(_pairs(eraser))
    assert np.isfinite(tensors["predictions"]).all()
    return {name: (str(a.dtype), a.shape, a.tobytes()) for name, a in tensors.items()}


def _pairs(eraser: ge.LinkEraser) -> NDArray[np.int64]:
    """Some pairs of any kind that a run may be asked about."""
    graph = eraser.graph_
    rng = np.random.default_rng(0)
    pairs = np.concatenate(
        [graph.ids[rng.integers(graph.num_nodes, size=(40, 2))], graph.edges[:5]]
    )
    allowed = pairs[:, 0] != pairs[:, 1]
    if eraser.sides is not None:
        sides = graph.labels(pairs.ravel()).reshape(-1, 2)
        allowed &= sides[:, 0] != sides[:, 1]
    return pairs[allowed]


def check_a_sequence(
    eraser: ge.LinkEraser, graph: ge.Graph, data: st.DataObject, *, steps: int
) -> None:
    """Forget one thing after another, and compare with a fresh fit each time."""
    found = eraser.sides == "labels" and "classes" in graph.inferred  # sides that nobody declared
    own = not isinstance(eraser.model, str)
    expected = EXACT + " as replayed" * own + " given schema" * found
    eraser.fit(graph)
    eraser.rank(int(graph.ids[0]))  # from here on there is an index to keep
    for _ in range(data.draw(st.integers(1, steps))):
        request = data.draw(requests_for(graph, kinds=KINDS))
        rest = graph.without(request)
        if rest.num_edges == 0 or rest.num_nodes < 4:
            return
        receipt = eraser.unlearn(request)
        graph = rest
        fresh = ge.LinkEraser(**eraser.get_params()).fit(graph)
        assert bits(eraser) == bits(fresh)
        assert receipt.statement == expected
    assert eraser.verify().identical


@settings(max_examples=25)
@given(st.data())
def test_unlearned_equals_fitted_afresh(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    sample = data.draw(st.sampled_from([3, 10, "auto"]))
    eraser = eraser_of("closed-form", sample=sample, seed=data.draw(st.integers(0, 3)))
    check_a_sequence(eraser, graph, data, steps=4)


@pytest.mark.parametrize("members", ["shards", "both"])
@settings(max_examples=5)
@given(st.data())
def test_unlearned_equals_fitted_afresh_with_shards(members: str, data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    model = data.draw(st.sampled_from(["gcn", "sage", TwoHops]))
    check_a_sequence(eraser_of(members, model=model), graph, data, steps=2)


@settings(max_examples=4)
@given(st.data())
def test_unlearned_equals_fitted_afresh_around_hubs(data: st.DataObject) -> None:
    graph = hub_graph(data.draw(st.integers(0, 99)))
    check_a_sequence(eraser_of("closed-form", sample=50), graph, data, steps=3)


@settings(max_examples=6)
@given(st.data())
def test_unlearned_equals_fitted_afresh_in_bipartite_graphs(data: st.DataObject) -> None:
    graph, second = bipartite_graph(data.draw(st.integers(0, 99)))
    sides = data.draw(st.sampled_from(["labels", second]))
    check_a_sequence(eraser_of("closed-form", sides=sides, sample=20), graph, data, steps=3)


@settings(max_examples=20)
@given(st.data())
def test_unlearned_equals_fitted_afresh_with_weights_and_directions(data: st.DataObject) -> None:
    graph = data.draw(graphs_with_edge_values(columns=False))
    sample = data.draw(st.sampled_from([3, 10, "auto"]))
    check_a_sequence(eraser_of("closed-form", sample=sample), graph, data, steps=4)


@settings(max_examples=3)
@given(st.data())
def test_unlearned_equals_fitted_afresh_around_hubs_with_weights(data: st.DataObject) -> None:
    seed, directed = data.draw(st.integers(0, 99)), data.draw(st.booleans())
    graph = with_edge_values(hub_graph(seed), seed, directed=directed)
    check_a_sequence(eraser_of("closed-form", sample=50), graph, data, steps=3)


@pytest.mark.parametrize("members", ["shards", "both"])
@settings(max_examples=3)
@given(st.data())
def test_unlearned_equals_fitted_afresh_with_shards_and_weights(
    members: str, data: st.DataObject
) -> None:
    graph = with_edge_values(data.draw(small_graphs()))
    model = data.draw(st.sampled_from(["gcn", Weighing]))
    check_a_sequence(eraser_of(members, model=model), graph, data, steps=2)


@settings(max_examples=8)
@given(st.data())
def test_inserted_equals_fitted_afresh(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    eraser = eraser_of("closed-form", sample=10).fit(graph)
    eraser.rank(int(graph.ids[0]))
    new = int(graph.ids[-1]) + data.draw(st.integers(1, 5))
    count = data.draw(st.integers(0, 4))
    features = np.arange(graph.num_features, dtype=np.float32)
    eraser.insert(new, features, graph.ids[:count])
    grown = graph.with_node(new, features, 0, graph.ids[:count])
    assert bits(eraser) == bits(ge.LinkEraser(**eraser.get_params()).fit(grown))
    eraser.unlearn(ge.Nodes([new]))
    assert bits(eraser) == bits(ge.LinkEraser(**eraser.get_params()).fit(graph))
    assert eraser.verify().identical


@settings(max_examples=6)
@given(st.data())
def test_the_order_of_requests_has_no_part_in_the_result(data: st.DataObject) -> None:
    graph = small_graph(data.draw(st.integers(0, 999)))
    edges: list[Request] = [ge.Edges([edge]) for edge in graph.edges[:4].tolist()]
    shuffled = data.draw(st.permutations(edges))
    one, other = (eraser_of("closed-form", sample=10).fit(graph) for _ in range(2))
    for request in edges:
        one.unlearn(request)
    for request in shuffled:
        other.unlearn(request)
    assert bits(one) == bits(other)


OF_A_RUN = """
import hashlib, sys
import grapheraser as ge
from tests.links.graphs import hub_graph
graph = hub_graph()
links = ge.LinkEraser(sample=50).fit(graph)
links.unlearn(ge.Nodes([0, 77]))
found = links.weights_, links.predict_proba(graph.edges[500:700]).tobytes(), links.rank(100).nodes
print(hashlib.sha256(repr(found).encode()).hexdigest())
"""


@pytest.mark.long
def test_a_run_has_the_same_bits_on_another_processor(tmp_path: Path) -> None:
    other = {**OTHER, "NUMBA_CACHE_DIR": str(tmp_path)}  # compiled for another processor
    found = []
    for changes in ({}, other):
        paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        environment = {**os.environ, **changes, "PYTHONPATH": paths}
        done = subprocess.run(
            [sys.executable, "-c", OF_A_RUN],
            capture_output=True,
            text=True,
            env=environment,
            cwd=ROOT,
            check=True,
        )
        found.append(done.stdout)
    assert found[0] == found[1]


def test_an_index_that_followed_changes_is_that_of_the_graph() -> None:
    graph = small_graph(3, n=600, ties=4)
    eraser = ge.LinkEraser().fit(graph)
    eraser.rank(int(graph.ids[0]))
    for node in graph.ids[[5, 100, 300, 599]].tolist():
        eraser.unlearn(ge.Nodes([node]))
    kept, fresh = fitted_links(eraser._snapshot).index, Index.of(eraser.graph_, 0)
    assert kept is not None
    for name in ("nodes", "rows"):
        a, b = (np.concatenate([getattr(k, name) for k in i.blocks]) for i in (kept, fresh))
        assert np.array_equal(a, b)
