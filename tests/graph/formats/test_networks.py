"""NetworkX graphs in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError
from tests.strategies import small_graph, with_names


@pytest.mark.parametrize("named", [False, True])
def test_a_graph_leads_back(named: bool) -> None:
    graph = small_graph(split="mixed")
    graph = with_names(graph) if named else graph
    network = graph.to_networkx()
    assert set(network.nodes) == set(graph.names_of(graph.ids))
    assert network.number_of_edges() == graph.num_edges
    assert ge.Graph.from_networkx(network, num_classes=graph.num_classes) == graph


def test_directions_and_weights_lead_back() -> None:
    weights = {"edge_weight": [0.5, 2.0], "directed": True}
    graph = ge.Graph.from_arrays(np.eye(3), [[0, 2], [1, 1]], [0, 1, 0], **weights)  # type: ignore[arg-type]
    network = graph.to_networkx()
    assert network.edges[2, 1]["weight"] == 2
    assert ge.Graph.from_networkx(network) == graph
    assert not ge.Graph.from_networkx(network, directed=False).directed


def test_a_bare_network_has_nodes_and_edges_alone() -> None:
    graph = ge.Graph.from_networkx(networkx.karate_club_graph(), features=[], label="club")
    assert (graph.num_nodes, graph.num_edges) == (34, 78)
    assert graph.class_names == ("Mr. Hi", "Officer")
    assert graph.num_features == 0


@pytest.mark.parametrize("suffix", ["graphml", "gml"])
def test_files_of_networks_are_read(tmp_path: Path, suffix: str) -> None:
    network = networkx.path_graph(["a", "b", "c"])
    for at, node in enumerate(network):
        network.nodes[node].update(age=at + 0.5, club="xyx"[at])
    path = tmp_path / f"mine.{suffix}"
    getattr(networkx, f"write_{suffix}")(network, path)
    graph = ge.Graph.from_file(path, label="club")
    assert graph.name == "mine"
    assert sorted(graph.names_of(graph.neighbours("b"))) == ["a", "c"]
    assert graph.labels(["a", "b"]).tolist() == [0, 1]
    path.write_text("nothing of the kind")
    with pytest.raises(GraphError, match=f"not a readable {suffix} file"):
        ge.Graph.from_file(path)


def test_bad_networks_are_refused() -> None:
    cases: list[tuple[Any, str]] = [
        (5, "not a NetworkX graph"),
        (networkx.path_graph([(1, 2), (3, 4)]), r"found \(1, 2\)"),
        (networkx.path_graph([1, "a"]), "not both"),
    ]
    taken = networkx.path_graph(2)
    taken.nodes[0]["id"] = 7
    ragged = networkx.path_graph(2)
    ragged.nodes[0]["x"], ragged.nodes[1]["x"] = [1, 2], [1]
    gap = networkx.path_graph(2)
    gap.nodes[0]["age"] = 3
    cases += [
        (taken, "an attribute 'id'"),
        (ragged, r"row 1.*\[2\]"),
        (gap, "row 1.*found nothing"),
    ]
    for network, message in cases:
        with pytest.raises(GraphError, match=message):
            ge.Graph.from_networkx(network)


def test_labels_and_masks_as_pyg_writes_them_are_no_features() -> None:
    network = networkx.path_graph(4)
    for node in network:
        masks = {"train_mask": node < 2, "val_mask": node == 2, "test_mask": node == 3}
        network.nodes[node].update(x=[1.0, float(node)], y=node % 2, **masks)
    graph = ge.Graph.from_networkx(network)
    assert graph.x.toarray().tolist() == [[1, 0], [1, 1], [1, 2], [1, 3]]
    assert graph.y.tolist() == [0, 1, 0, 1]
    parts = (graph.train_nodes, graph.validation_nodes, graph.test_nodes)
    assert [part.tolist() for part in parts] == [[0, 1], [2], [3]]
    for node in network:
        network.nodes[node].update(label="a", split="train")
    with pytest.warns(UserWarning, match="'y', 'train_mask', 'val_mask', 'test_mask' are taken as"):
        assert ge.Graph.from_networkx(network).num_features == 6
