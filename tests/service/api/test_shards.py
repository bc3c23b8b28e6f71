"""What is said of the shards, against what can be counted by hand."""

from __future__ import annotations

import numpy as np

import grapheraser as ge
from grapheraser.service.api.keys import Role
from grapheraser.service.served.measured import MAX_TESTED, _spread
from tests.service.api.conftest import Api, opened
from tests.service.api.test_routes import erase


def eraser_of(api: Api) -> ge.GraphEraser:
    model = api.service.served.now.model
    assert isinstance(model, ge.GraphEraser)
    return model


def shards_of(api: Api) -> dict[str, object]:
    found: dict[str, object] = api.call("GET", "/api/v1/shards", Role.OPERATOR).json()
    return found


def test_edges_and_edge_cut_are_those_of_the_graph_as_it_is(api: Api) -> None:
    erase(api, 2)
    eraser = eraser_of(api)
    partition, graph = eraser.partition_, eraser.graph_
    shard = dict(zip(partition.nodes.tolist(), partition.labels.tolist(), strict=True))
    inside, cut = [0] * partition.num_shards, 0
    for u, v in graph.edges.tolist():
        if u in shard and v in shard:
            if shard[u] == shard[v]:
                inside[shard[u]] += 1
            else:
                cut += 1
    found = api.call("GET", "/api/v1/shards", Role.OPERATOR).json()
    assert [one["edges"] for one in found["shards"]] == inside
    assert sum(inside) > 0
    about = found["partition"]
    assert (about["edge_cut"], about["edges"]) == (cut, cut + sum(inside))
    sizes = [one["nodes"] for one in found["shards"]]
    assert about["balance"] == max(sizes) / (sum(sizes) / len(sizes))


def test_a_shard_tells_when_it_was_retrained_and_others_that_they_were_not(api: Api) -> None:
    eraser = eraser_of(api)
    node = int(eraser.graph_.train_nodes[0])
    hit = int(eraser.partition_.shard_of([node])[0])
    before = {shard: weights.digest for shard, weights in eraser.shards_.items()}
    api.submit(nodes=[node])
    api.work()
    found = api.call("GET", "/api/v1/shards", Role.OPERATOR).json()
    after = {one["shard"]: one["digest"] for one in found["shards"]}
    changed = {shard for shard in before if before[shard] != after[shard]}
    told = {one["shard"]: one["retrained"] for one in found["shards"] if one["retrained"]}
    assert changed == {hit} == set(told)
    assert (told[hit]["version"], told[hit]["shards"]) == (1, 1)
    assert told[hit]["seconds"] > 0
    assert found["known_since"] == 0


def test_what_was_retrained_is_not_known_after_a_restart(api: Api) -> None:
    erase(api, 1)
    assert any(one["retrained"] for one in shards_of(api)["shards"])  # type: ignore[attr-defined]
    with opened(api.parts.run, database=api.service.settings.database) as again:
        found = again.call("GET", "/api/v1/shards", Role.OPERATOR).json()
    assert found["known_since"] == 1
    assert [one["retrained"] for one in found["shards"]] == [None, None, None]


def test_f1_of_a_shard_is_that_of_its_own_model_alone(api: Api) -> None:
    erase(api, 1)
    eraser = eraser_of(api)
    graph, nodes = eraser.graph_, eraser.graph_.labelled_test_nodes
    found = api.call("GET", "/api/v1/shards/scores", Role.OPERATOR).json()
    assert (found["version"], found["tested"]) == (1, len(nodes))
    assert found["whole"] == eraser.score(nodes)
    ensemble = eraser.aggregator_.ensemble
    for one in found["shards"]:
        said = ensemble.posteriors(graph.positions(nodes), [one["shard"]])[0].argmax(axis=1)
        right = sum(int(a == b) for a, b in zip(said, graph.labels(nodes), strict=True))
        assert one["f1"] == right / len(nodes)


def test_many_test_nodes_are_thinned_evenly() -> None:
    few = np.arange(7)
    assert _spread(few).tolist() == few.tolist()
    many = np.arange(10 * MAX_TESTED)
    assert _spread(many).tolist() == list(range(0, 10 * MAX_TESTED, 10))
