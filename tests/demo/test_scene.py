"""The node in the pictures, and what lies around it."""

from __future__ import annotations

import networkx as nx
import numpy as np

import grapheraser as ge
from grapheraser.demo.scene import choose
from grapheraser.demo.story import DemoResult


def test_a_node_with_neighbours_of_several_classes_is_chosen(demo: ge.Graph) -> None:
    node = choose(demo, seed=0)
    assert node == choose(demo, seed=0)
    assert node in demo.train_nodes
    near = demo.neighbours(node)
    assert 6 <= len(near) <= 9
    assert len(set(demo.y[demo.positions(near)].tolist())) >= 3


def test_where_no_node_has_so_many_neighbours_the_one_with_most_is_chosen() -> None:
    path = ge.Graph.from_arrays(np.eye(5), [[0, 1, 1], [1, 2, 3]], [0, 1, 0, 1, 0])
    assert choose(path, seed=0) == 1


def test_the_surroundings_are_those_of_the_graph(result: DemoResult) -> None:
    scene, other = result.scene, nx.Graph(result.graph.edges.tolist())
    assert set(scene.near.tolist()) == set(other[scene.node])
    within = nx.single_source_shortest_path_length(other, scene.node, cutoff=2)
    assert scene.num_around == len(within) - 1
    assert all(within[node] == 2 for node in scene.far.tolist())
    assert all(
        other.has_edge(*pair)
        for pair in zip(scene.far.tolist(), scene.parents.tolist(), strict=True)
    )
    drawn = other.subgraph([scene.node, *scene.around.tolist()])
    assert {frozenset(pair) for pair in scene.edges.tolist()} == set(map(frozenset, drawn.edges))


def test_predictions_and_digests_are_from_before_and_after_the_first_request(
    result: DemoResult,
) -> None:
    scene = result.scene
    eraser = ge.GraphEraser(**result.eraser.get_params()).fit(result.graph)
    assert (eraser.predict_proba(scene.around) == scene.before).all()
    assert (eraser.predict_proba([scene.node])[0] == scene.own).all()
    assert eraser.partition_.shard_of([scene.node])[0] == scene.shard
    assert scene.node in scene.members
    old = {shard: weights.digest for shard, weights in eraser.shards_.items()}
    receipt = eraser.unlearn(ge.Nodes([scene.node]))
    assert (eraser.predict_proba(scene.around) == scene.after).all()
    new = {shard: weights.digest for shard, weights in eraser.shards_.items()}
    assert scene.retrained == [shard for shard in old if old[shard] != new[shard]]
    assert scene.retrained == list(receipt.retrained) == [scene.shard]
