"""F1 of a cell: against GraphEraser itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import entropy

import grapheraser as ge
from grapheraser.aggregation import Ensemble
from grapheraser.graph import Graph
from grapheraser.models import resolve_model
from grapheraser_lab.experiments.catalogue import KINDS, Options
from grapheraser_lab.framework.shared_cells import utility_cell
from grapheraser_lab.measure.f1 import KeptEnsemble
from grapheraser_lab.measure.inputs import request_of


@pytest.fixture(scope="module")
def graph(tiny: str) -> Graph:
    return ge.load_dataset(tiny)


def test_kept_posteriors_are_the_ensembles_own(graph: Graph) -> None:
    eraser = ge.GraphEraser(num_shards=4, epochs=2).fit(graph)
    model = resolve_model("gcn")
    plain = Ensemble(eraser.graph_, eraser.partition_, eraser.shards_, model, 0)
    kept = KeptEnsemble.of(plain)
    for positions, shards in (([5, 2, 5], None), ([2, 9], [3, 1]), ([], None)):
        rows = np.array(positions, dtype=np.int64)
        assert np.array_equal(kept.posteriors(rows, shards), plain.posteriors(rows, shards))


def test_an_isolated_shard_sees_its_own_nodes_and_the_test_nodes(graph: Graph) -> None:
    eraser = ge.GraphEraser(num_shards=4, epochs=2, aggregation="mean").fit(graph)
    kept = KeptEnsemble.of(eraser.aggregator_.ensemble, isolated=True)
    rows = graph.positions(graph.test_nodes)
    for shard in kept.shard_ids:
        own = eraser.partition_.members(shard)
        alone = graph.subgraph(np.union1d(own, graph.test_nodes))
        there = Ensemble(alone, eraser.partition_, eraser.shards_, kept.model, 0)
        by_hand = there.posteriors(alone.positions(graph.test_nodes), [shard])
        assert np.array_equal(kept.posteriors(rows, [shard]), by_hand)
    whole = kept.of(kept).posteriors(rows)
    assert not np.array_equal(kept.posteriors(rows), whole)


def test_a_cell_says_whether_it_does_more_than_name_one_class(
    options: Options, graph: Graph
) -> None:
    cell = utility_cell(options, options.datasets[0], "gcn", 0, "blpa")
    value = KINDS.get("utility").measure(cell.config)
    test, train = (graph.labels(nodes) for nodes in (graph.test_nodes, graph.train_nodes))
    most = np.bincount(train).argmax()
    assert value["majority_f1"] == pytest.approx((test == most).mean())
    assert value["label_entropy_whole"] == pytest.approx(entropy(np.bincount(train), base=2))
    assert 0 <= value["label_entropy"] <= value["label_entropy_whole"]
    assert value["one_label"].keys() == value["f1"].keys()
    part = ge.partition_graph(graph, "blpa", num_shards=4)
    inside = [entropy(np.bincount(graph.labels(part.members(s))), base=2) for s in range(4)]
    assert value["label_entropy"] == pytest.approx(np.average(inside, weights=part.sizes))


def test_f1_after_forgetting_is_that_of_an_eraser_that_unlearned(
    options: Options, graph: Graph
) -> None:
    forget = {"what": "nodes", "share": 0.2, "where": "large"}
    options = replace(options, protocol="literal")
    cell = utility_cell(options, options.datasets[0], "gcn", 0, "blpa", forget=forget)
    value = KINDS.get("utility").measure(cell.config)
    eraser = ge.GraphEraser(
        model="gcn:paper", partition="blpa", num_shards=4, aggregation="mean", epochs=2
    ).fit(graph)
    request = request_of(forget, graph, eraser.partition_, 0)
    assert request is not None
    eraser.unlearn(request)
    assert value["f1"]["mean"] == eraser.score(graph.test_nodes)
    assert value["train_nodes"] == len(eraser.graph_.train_nodes)
