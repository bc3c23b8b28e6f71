"""The promise for changes: what `update` leaves is what a fresh fit on the changed graph gives.

Bit for bit, over random lists and sequences of deletions, additions and corrections: for every
model, engine, partition and aggregation, with context nodes, edge weights, directions, halos and
names of nodes; and for links.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.aggregation import AGGREGATORS
from grapheraser.graph import GraphChange
from grapheraser.graph.roles import SHARDED_ROLES
from grapheraser.models.spec import CLOSED_FORM
from grapheraser.receipts import EXACT
from tests.links.graphs import bipartite_graph, hub_graph
from tests.property import test_edge_values as weighed
from tests.property import test_links as linked
from tests.property.test_exactness import (
    SHARDED,
    bits,
    eraser_of,
    every_case,
    retrained,
    settings_drawn,
)
from tests.strategies import (
    by_name,
    changes_for,
    graphs_with_edge_values,
    partitioners,
    small_graphs,
    with_edge_values,
    with_names,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*edges to add are there already"),
    pytest.mark.filterwarnings("ignore:.*duplicate edges"),
    pytest.mark.filterwarnings("ignore:.*carry other values"),
    pytest.mark.filterwarnings("ignore:.* new nodes have no label"),
]


def check_a_sequence(
    eraser: ge.GraphEraser, graph: ge.Graph, data: st.DataObject, *, steps: int = 2
) -> None:
    """Make one list of changes after another, and compare with a fresh fit each time."""
    for _ in range(data.draw(st.integers(1, steps))):
        changes = data.draw(changes_for(graph))
        after = graph.updated(changes)
        if len(after.train_nodes) < 3:
            return
        before, plan = dict(eraser.shards_), eraser.plan(changes)
        receipt = eraser.update(changes)
        graph = after
        assert eraser.graph_ == graph
        assert eraser.partition_.nodes.tolist() == eraser.graph_.sharded_nodes.tolist()
        assert bits(eraser) == bits(retrained(eraser, graph, eraser.partition_))
        if eraser._snapshot.settings.training.model.closed_form:
            continue
        assert receipt.retrained == plan.retrain
        assert receipt.counts == {kind: plan.counts[kind] for kind in receipt.counts}
        assert receipt.requests == len(receipt.parts)
        for shard, weights in eraser.shards_.items():
            assert (weights is before.get(shard)) == (shard not in receipt.retrained)
    assert eraser.verify().identical


@every_case
@settings(max_examples=4)
@given(st.data())
def test_updated_equals_fitted_afresh(model: str, engine: str, data: st.DataObject) -> None:
    graph, drawn = data.draw(small_graphs()), data.draw(settings_drawn(model))
    eraser = eraser_of(model, engine, **drawn).fit(graph)
    check_a_sequence(eraser, graph, data)
    after = eraser.graph_
    if eraser.partition_.data_free and drawn["num_shards"] <= after.num_sharded:
        assert bits(eraser) == bits(ge.GraphEraser(**eraser.get_params()).fit(after))
        claim = f"{EXACT} as replayed" if model == "custom" else EXACT
        assert not eraser.receipts_ or eraser.receipts_[-1].statement == claim


@pytest.mark.parametrize("aggregation", list(AGGREGATORS))
@pytest.mark.parametrize("partition", partitioners())
@settings(max_examples=2)
@given(st.data())
def test_updated_equals_fitted_afresh_for_every_partition_and_aggregation(
    partition: str, aggregation: str, data: st.DataObject
) -> None:
    graph, context = data.draw(small_graphs()), data.draw(st.sampled_from(list(SHARDED_ROLES)))
    parts = {"partition": partition, "aggregation": aggregation, "context": context}
    check_a_sequence(eraser_of("gcn", "auto", **parts).fit(graph), graph, data)


@pytest.mark.parametrize(("model", "engine"), SHARDED)
@settings(max_examples=4)
@given(st.data())
def test_updated_equals_fitted_afresh_with_a_halo(
    model: str, engine: str, data: st.DataObject
) -> None:
    graph = data.draw(small_graphs())
    drawn = {
        "partition": data.draw(st.sampled_from(["hash", "blpa"])),
        "num_shards": data.draw(st.integers(2, 4)),
        "context": data.draw(st.sampled_from(list(SHARDED_ROLES))),
    }
    check_a_sequence(eraser_of(model, engine, halo=True, **drawn).fit(graph), graph, data)


@weighed.every_case
@settings(max_examples=5)
@given(st.data())
def test_updated_equals_fitted_afresh_where_edges_carry_something(
    model: str, engine: str, data: st.DataObject
) -> None:
    graph = data.draw(graphs_with_edge_values(columns=model == "custom"))
    eraser = weighed.eraser_of(model, engine, **data.draw(weighed.settings_drawn())).fit(graph)
    check_a_sequence(eraser, graph, data)


@pytest.mark.parametrize(
    ("model", "engine", "options"),
    [
        ("gcn", "pyg", {"layers": 3}),
        ("sage", "pyg", {"layers": 1, "class_weights": "balanced"}),
        ("gcn", "pyg", {"early_stopping": ge.EarlyStopping(patience=1, share=0.3)}),
    ],
)
@settings(max_examples=4)
@given(st.data())
def test_updated_equals_fitted_afresh_however_shards_are_trained(
    model: str, engine: str, options: dict[str, Any], data: st.DataObject
) -> None:
    graph, context = data.draw(small_graphs()), data.draw(st.sampled_from(list(SHARDED_ROLES)))
    aggregation = data.draw(st.sampled_from(list(AGGREGATORS)))
    training = ge.Training(epochs=3, **options)
    parts = {"aggregation": aggregation, "context": context, "training": training, "epochs": None}
    check_a_sequence(eraser_of(model, engine, **parts).fit(graph), graph, data)


@pytest.mark.parametrize("model", ["gcn", *CLOSED_FORM])
@settings(max_examples=3)
@given(st.data())
def test_a_run_that_was_saved_in_between_changes_the_same_way(
    tmp_path_factory: pytest.TempPathFactory, model: str, data: st.DataObject
) -> None:
    graph, drawn = data.draw(small_graphs()), data.draw(settings_drawn(model))
    stayed = eraser_of(model, "auto", **drawn).fit(graph)
    run = tmp_path_factory.mktemp("run") / "run"
    stayed.save(run)
    for _ in range(2):
        changes = data.draw(changes_for(stayed.graph_))
        if len(stayed.graph_.updated(changes).train_nodes) < 3:
            break
        stayed.update(changes)
        came_back = ge.GraphEraser.load(run)
        came_back.update(changes)
        came_back.save(run)
    assert bits(ge.GraphEraser.load(run)) == bits(stayed)


def test_a_hub_that_changes_is_as_exact(demo: ge.Graph) -> None:
    """Nodes with more neighbours than count, next to what is added and corrected."""
    hub = int(demo.ids[demo.degree.argmax()])
    rng = np.random.default_rng(0)
    eraser = ge.GraphEraser(num_shards=4, epochs=2, partition="random").fit(demo)
    pairs = np.stack([np.full(80, hub), np.setdiff1d(demo.ids, [hub, *demo.neighbours(hub)])[:80]])
    lists: list[list[GraphChange]] = [
        [ge.AddEdges(pairs.T)],
        [ge.SetFeatures([hub], demo.x[[3]]), ge.Edges(pairs.T[:40])],
        [
            ge.AddNodes(
                10**6 + np.arange(90), demo.x[:90], edges=[(10**6 + i, hub) for i in range(90)]
            )
        ],
        [ge.SetLabels(rng.choice(demo.train_nodes, 20, replace=False), [1] * 20)],
    ]
    for changes in lists:
        eraser.update(changes)
        assert bits(eraser) == bits(retrained(eraser, eraser.graph_, eraser.partition_))


# -- nodes with names ------------------------------------------------------------------------------


@every_case
@settings(max_examples=3)
@given(st.data())
def test_updated_equals_fitted_afresh_where_nodes_have_names(
    model: str, engine: str, data: st.DataObject
) -> None:
    """Changed by name, against a graph that was named only after it had been changed by id."""
    weighted = model == "gcn" and data.draw(st.booleans(), label="weighted")
    twin = data.draw(small_graphs())
    twin = with_edge_values(twin) if weighted else twin
    drawn = data.draw(settings_drawn(model))
    eraser = eraser_of(model, engine, **drawn).fit(with_names(twin))
    for _ in range(data.draw(st.integers(1, 3))):
        changes = data.draw(changes_for(twin))
        after = twin.updated(changes)
        if len(after.train_nodes) < 3:
            return
        eraser.update([by_name(change) for change in changes])
        twin = after
        named = with_names(twin, data.draw(st.permutations(range(twin.num_nodes))))
        assert eraser.graph_ == named
        assert (
            eraser.graph_.names_of(eraser.graph_.ids).tolist() == named.names_of(named.ids).tolist()
        )
        assert bits(eraser) == bits(retrained(eraser, named, eraser.partition_))
    assert eraser.verify().identical


@settings(max_examples=5)
@given(st.data())
def test_updated_links_equal_those_fitted_afresh_where_nodes_have_names(
    data: st.DataObject,
) -> None:
    twin = data.draw(small_graphs())
    eraser = linked.eraser_of("closed-form", sample=10).fit(with_names(twin))
    for _ in range(data.draw(st.integers(1, 3))):
        changes = data.draw(changes_for(twin, kinds=linked.KINDS))
        after = twin.updated(changes)
        if after.num_edges == 0 or after.num_nodes < 4:
            return
        eraser.update([by_name(change) for change in changes])
        twin = after
        named = with_names(twin, data.draw(st.permutations(range(twin.num_nodes))))
        fresh = ge.LinkEraser(**eraser.get_params()).fit(named)
        assert linked.bits(eraser) == linked.bits(fresh)
        assert eraser.graph_ == fresh.graph_


# -- links ----------------------------------------------------------------------------------------


def check_links(
    eraser: ge.LinkEraser, graph: ge.Graph, data: st.DataObject, **allowed: Any
) -> None:
    eraser.fit(graph)
    eraser.rank(int(graph.ids[0]))  # from here on there is an index to keep
    for _ in range(data.draw(st.integers(1, 3))):
        changes = data.draw(changes_for(eraser.graph_, kinds=linked.KINDS, **allowed))
        rest = eraser.graph_.updated(changes)
        if rest.num_edges == 0 or rest.num_nodes < 4:
            return
        receipt = eraser.update(changes)
        assert linked.bits(eraser) == linked.bits(
            ge.LinkEraser(**eraser.get_params()).fit(eraser.graph_)
        )
        assert eraser.graph_.edges.tolist() == rest.edges.tolist()
        assert receipt.statement == EXACT
    assert eraser.verify().identical


@settings(max_examples=20)
@given(st.data())
def test_updated_links_equal_those_fitted_afresh(data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    sample = data.draw(st.sampled_from([3, 10, "auto"]))
    check_links(linked.eraser_of("closed-form", sample=sample), graph, data)


@pytest.mark.parametrize("members", ["shards", "both"])
@settings(max_examples=4)
@given(st.data())
def test_updated_links_equal_those_fitted_afresh_with_shards(
    members: str, data: st.DataObject
) -> None:
    graph = data.draw(small_graphs())
    check_links(
        linked.eraser_of(members, model=data.draw(st.sampled_from(["gcn", "sage"]))), graph, data
    )


@settings(max_examples=3)
@given(st.data())
def test_updated_links_equal_those_fitted_afresh_around_hubs(data: st.DataObject) -> None:
    graph = hub_graph(data.draw(st.integers(0, 99)))
    check_links(linked.eraser_of("closed-form", sample=50), graph, data)


@settings(max_examples=15)
@given(st.data())
def test_updated_links_equal_those_fitted_afresh_with_weights_and_directions(
    data: st.DataObject,
) -> None:
    graph = data.draw(graphs_with_edge_values(columns=False))
    sample = data.draw(st.sampled_from([3, 10, "auto"]))
    check_links(linked.eraser_of("closed-form", sample=sample), graph, data)


@pytest.mark.parametrize("members", ["shards", "both"])
@settings(max_examples=3)
@given(st.data())
def test_updated_links_equal_those_fitted_afresh_with_shards_and_weights(
    members: str, data: st.DataObject
) -> None:
    check_links(linked.eraser_of(members), with_edge_values(data.draw(small_graphs())), data)


@settings(max_examples=3)
@given(st.data())
def test_updated_links_equal_those_fitted_afresh_around_hubs_with_weights(
    data: st.DataObject,
) -> None:
    seed, directed = data.draw(st.integers(0, 99)), data.draw(st.booleans())
    graph = with_edge_values(hub_graph(seed), seed, directed=directed)
    check_links(linked.eraser_of("closed-form", sample=50), graph, data)


@settings(max_examples=5)
@given(st.data())
def test_updated_links_equal_those_fitted_afresh_in_bipartite_graphs(data: st.DataObject) -> None:
    graph, second = bipartite_graph(data.draw(st.integers(0, 99)))
    eraser = linked.eraser_of("closed-form", sides=second, sample=20)
    check_links(eraser, graph, data, allowed=lambda u, v: (u < second) != (v < second))
