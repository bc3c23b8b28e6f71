"""Models without shards: closed-form members alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation import MEMBERS
from grapheraser.errors import EmptyEnsembleError, GraphEraserError
from tests.strategies import small_graph

MODELS = {"closed-form": MEMBERS, "sgc": ("features",)}
SUMS = {
    "sgc": ["features/cross", "features/gram", "features/weights"],
    "closed-form": [
        *("counts/classes", "counts/pairs", "counts/words"),
        *("features/cross", "features/gram", "features/weights"),
        *("pattern/cross", "pattern/gram", "pattern/weights"),
    ],
}
each_model = pytest.mark.parametrize("model", MODELS)


@each_model
def test_it_forgets_without_training_anything(model: str, demo: ge.Graph) -> None:
    eraser = ge.GraphEraser(model=model).fit(demo)
    assert eraser.score(demo.test_nodes) > 1.5 / demo.num_classes
    assert not eraser.shards_
    receipt = eraser.unlearn(ge.Nodes(demo.train_nodes[:3].tolist()))
    assert receipt.statement == "exact"
    assert receipt.retrained == ()
    assert receipt.aggregation["name"] == "closed-form"
    assert receipt.aggregation["members"] == list(MODELS[model])
    relearned = receipt.details.relearned
    assert set(SUMS[model]) <= set(relearned) <= {*SUMS[model], "nodes", "weights", "offsets"}
    assert eraser.verify().differences == ()
    fresh = ge.GraphEraser(model=model).fit(eraser.graph_)
    rest = eraser.graph_.ids
    assert eraser.predict_proba(rest).tobytes() == fresh.predict_proba(rest).tobytes()


@each_model
@pytest.mark.parametrize(
    "changes",
    [{"num_shards": 1}, {"num_shards": 50}, {"epochs": 7}],
    ids=repr,
)
def test_what_concerns_shards_has_no_part_in_it(
    model: str, changes: dict[str, Any], small: ge.Graph
) -> None:
    plain, other = (ge.GraphEraser(model=model, **part).fit(small) for part in ({}, changes))
    assert other.partition_.num_shards == 1
    assert other.predict_proba(small.ids).tobytes() == plain.predict_proba(small.ids).tobytes()
    assert other.unlearn(ge.Nodes(small.train_nodes[:1])).statement == "exact"
    assert other.verify().identical


@each_model
def test_a_run_comes_back_and_goes_on(model: str, small: ge.Graph, tmp_path: Path) -> None:
    eraser = ge.GraphEraser(model=model, sample="all").fit(small)
    eraser.unlearn(ge.Features(small.train_nodes[4:5]))
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    new = int(small.ids.max()) + 1
    for one in (eraser, back):
        one.insert(new, np.ones(small.num_features), 1, small.ids[2:5])
        one.unlearn([ge.Nodes(small.test_nodes[:1]), ge.Edges([tuple(small.edges[3].tolist())])])
        assert one.verify().identical
        assert {receipt.statement for receipt in one.receipts_} == {"exact"}
    rest = back.graph_.ids
    assert back.predict_proba(rest).tobytes() == eraser.predict_proba(rest).tobytes()


@each_model
def test_every_training_node_but_one_may_go_and_not_that(model: str) -> None:
    graph = small_graph(3)
    eraser = ge.GraphEraser(model=model).fit(graph)
    with pytest.raises(EmptyEnsembleError):
        eraser.unlearn(ge.Nodes(graph.train_nodes))
    for node in graph.train_nodes[1:].tolist():
        eraser.unlearn(ge.Nodes([node]))
    assert eraser.verify().identical
    assert np.isfinite(eraser.predict_proba(eraser.graph_.ids)).all()


@pytest.mark.parametrize(
    "about_shards",
    [{"aggregation": "nonsense"}, {"aggregation": "mean"}, {"partition": "metis"}, {"halo": True}],
    ids=repr,
)
def test_what_is_about_shards_is_refused(small: ge.Graph, about_shards: dict[str, Any]) -> None:
    with pytest.raises(GraphEraserError, match="has no shards"):
        ge.GraphEraser(model="closed-form", **about_shards).fit(small)
    partition = ge.partition_graph(small, "hash", num_shards=2)
    with pytest.raises(GraphEraserError, match="has no shards"):
        ge.GraphEraser(model="closed-form").fit(small, partition=partition)
