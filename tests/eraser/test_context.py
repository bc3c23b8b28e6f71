"""Nodes in shards without a loss: what is read of them, shards without a label, what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import grapheraser as ge
from grapheraser.aggregation import AGGREGATORS
from grapheraser.errors import (
    CorruptRunError,
    GraphError,
    NothingToForgetError,
    ParameterError,
    PartitionError,
)
from grapheraser.graph import CONTEXT, TEST, TRAIN
from grapheraser.store.residues.forgotten import Forgotten
from grapheraser.store.residues.search import search_run
from tests.strategies import engines, partitioners, small_graph

MIXED = small_graph(4, split="mixed")
FEW = small_graph(5, n=60, split="few")
QUICK: dict[str, Any] = {"epochs": 2, "executor": ge.LocalExecutor(1)}


def learned(eraser: ge.GraphEraser) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in eraser._snapshot.state.tensors().items()}


def relabelled(graph: ge.Graph) -> ge.Graph:
    """The graph with other labels for all but the training nodes."""
    other = np.where(graph.y >= 0, (graph.y + 1) % graph.num_classes, graph.y)
    return graph.with_fields(y=np.where(graph.role == TRAIN, graph.y, other))


def without_features(graph: ge.Graph, role: int) -> ge.Graph:
    """The graph where nodes of a role have no features."""
    x = graph.x.toarray()
    x[graph.role == role] = 0
    return graph.with_fields(x=type(graph.x)(x.astype(np.float32)))


@pytest.mark.parametrize("context", ["none", "unlabelled", "all"])
@pytest.mark.parametrize("partition", partitioners())
def test_no_label_is_read_but_those_of_training_nodes(context: str, partition: str) -> None:
    for model, graph in (("gcn", MIXED), ("gcn", FEW), ("closed-form", FEW)):
        cut = "hash" if model == "closed-form" else partition
        found = [
            learned(ge.GraphEraser(model, cut, 3, context=context, **QUICK).fit(one))
            for one in (graph, relabelled(graph))
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize(
    ("context", "role", "seen"),
    [
        ("none", CONTEXT, False),
        ("unlabelled", CONTEXT, True),
        ("unlabelled", TEST, False),
        ("all", TEST, True),
    ],
)
def test_shards_learn_from_the_features_of_the_nodes_that_they_hold(
    engine: str, context: str, role: int, seen: bool
) -> None:
    whole, bare = (
        ge.GraphEraser(num_shards=2, context=context, engine=engine, **QUICK).fit(graph).shards_
        for graph in (MIXED, without_features(MIXED, role))
    )
    assert any(whole[shard].digest != bare[shard].digest for shard in whole) == seen


@pytest.mark.parametrize("engine", engines())
def test_one_shard_is_the_plain_loop_on_the_whole_graph(engine: str) -> None:
    """With all nodes in one shard, the loss is that of PyG's loop with a train mask."""
    graph = small_graph(6, n=60, split="few")
    spec = ge.ModelSpec("gcn", hidden=4, dropout=0.0)
    eraser = ge.GraphEraser(spec, num_shards=1, context="all", engine=engine, epochs=1).fit(graph)
    data = graph.to_pyg()
    from grapheraser.models import initial_weights
    from grapheraser.models.modules import build_module
    from grapheraser.seeding import derive

    columns = eraser.shards_[0].columns
    module = build_module(spec, len(columns), graph.num_classes)
    seed = derive(0, "train", 0)
    start = initial_weights(spec, graph.num_features, graph.num_classes, columns, seed)
    module.load_state_dict({name: torch.from_numpy(np.array(a)) for name, a in start.items()})
    optimizer = torch.optim.Adam(module.parameters(), lr=spec.lr, weight_decay=spec.weight_decay)
    scores = module(data.x[:, columns.astype(np.int64)], data.edge_index)
    loss = torch.nn.functional.cross_entropy(scores[data.train_mask], data.y[data.train_mask])
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    for name, tensor in module.state_dict().items():
        found = eraser.shards_[0].tensors[name].astype(np.float32)
        np.testing.assert_allclose(found, tensor.numpy(), atol=2e-5)


# -- shards without a label -------------------------------------------------------------------


def by_role(
    graph: ge.Graph, num_shards: int, seed: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """All training nodes in shard 0, all others in shard 1."""
    del num_shards, seed
    return np.where(graph.role == TRAIN, 0, 1)


@pytest.mark.parametrize("aggregation", list(AGGREGATORS))
def test_a_shard_without_a_label_has_no_model_and_is_not_asked(aggregation: str) -> None:
    eraser = ge.GraphEraser(partition=by_role, num_shards=2, aggregation=aggregation, **QUICK)
    eraser.fit(MIXED)
    assert list(eraser.shards_) == [0]
    assert eraser.partition_.sizes[1] == len(MIXED.context_nodes)
    assert np.isfinite(eraser.predict_proba(MIXED.ids)).all()
    for node in (MIXED.context_nodes[0], MIXED.test_nodes[0]):
        assert all("shard 1" not in say.member for say in eraser.explain(int(node)).members)
    receipt = eraser.unlearn(ge.Nodes(MIXED.context_nodes[:1]))
    assert receipt.retrained == ()
    (record,) = receipt.shards
    assert (record.shard, record.before, record.after) == (1, None, None)
    assert eraser.verify().differences == ()


@pytest.mark.parametrize("halo", [False, True])
def test_a_shard_is_trained_once_a_labelled_node_joins_it(halo: bool) -> None:
    eraser = ge.GraphEraser(partition=by_role, num_shards=2, halo=halo, **QUICK).fit(MIXED)
    row = np.ones(MIXED.num_features)
    receipt = eraser.insert(1000, row, 1, MIXED.context_nodes[:3])
    assert set(eraser.shards_) == {0, 1}
    assert 1 in receipt.retrained
    assert eraser.verify().differences == ()
    receipt = eraser.unlearn(ge.Labels([1000]))
    assert set(eraser.shards_) == {0}
    assert eraser.partition_.shard_of([1000]).tolist() == [1]
    assert eraser.verify().differences == ()


def test_a_run_with_such_a_shard_is_saved_and_read(tmp_path: Path) -> None:
    eraser = ge.GraphEraser(partition=by_role, num_shards=2, **QUICK).fit(MIXED)
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run", partition=by_role)
    assert learned(back) == learned(eraser)
    assert back.graph_.context == "unlabelled"
    node = int(MIXED.context_nodes[0])
    forgotten = Forgotten.of(back.graph_, [ge.Nodes([node]), ge.Labels(MIXED.train_nodes[:1])])
    assert len(search_run(tmp_path / "run", forgotten).residues) > 0
    back.unlearn([ge.Nodes([node]), ge.Labels(MIXED.train_nodes[:1])])
    back.save(tmp_path / "run")
    assert search_run(tmp_path / "run", forgotten).residues == ()


# -- what is said and refused -----------------------------------------------------------------


def test_a_receipt_says_what_roles_the_forgotten_had() -> None:
    eraser = ge.GraphEraser(num_shards=3, context="all", **QUICK).fit(MIXED)
    nodes = [MIXED.train_nodes[0], MIXED.context_nodes[0], MIXED.validation_nodes[0]]
    receipt = eraser.unlearn([ge.Nodes(nodes), ge.Labels(MIXED.train_nodes[1:2])])
    assert (receipt.counts["nodes"], receipt.counts["labels"]) == (3, 1)
    assert (receipt.details.context, receipt.details.untrained) == (2, 0)


def test_a_forgotten_label_no_longer_counts_in_a_score() -> None:
    eraser = ge.GraphEraser(num_shards=2, **QUICK).fit(MIXED)
    node = int(MIXED.labelled_test_nodes[0])
    before = dict(eraser.shards_)
    receipt = eraser.unlearn(ge.Labels([node]))
    assert receipt.details.untrained == 1
    assert dict(eraser.shards_) == before
    with pytest.raises(GraphError, match="1 of the nodes have no label"):
        eraser.score(eraser.graph_.test_nodes)
    assert 0 <= eraser.score(eraser.graph_.labelled_test_nodes) <= 1
    with pytest.raises(NothingToForgetError):
        eraser.plan([ge.Labels([node]), ge.Nodes(MIXED.train_nodes[:1])])


def test_resharding_keeps_the_context() -> None:
    eraser = ge.GraphEraser(num_shards=2, context="all", **QUICK).fit(MIXED)
    eraser.reshard(3)
    assert eraser.partition_.num_nodes == MIXED.num_nodes
    assert eraser.verify().differences == ()


@pytest.mark.parametrize("bad", ["everything", None, True, 3])
def test_an_unknown_context_is_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="'context' of GraphEraser"):
        ge.GraphEraser(context=bad).fit(MIXED)  # type: ignore[arg-type]


def test_a_partition_of_another_context_is_refused_with_a_hint() -> None:
    part = ge.partition_graph(MIXED, "random", num_shards=2)
    with pytest.raises(PartitionError, match="context='all'") as caught:
        ge.GraphEraser(num_shards=2, context="all", **QUICK).fit(MIXED, partition=part)
    assert "with_context" in str(caught.value.hint)
    ge.GraphEraser(num_shards=2, context="none", **QUICK).fit(MIXED, partition=part)


def test_a_graph_of_context_nodes_alone_is_refused() -> None:
    graph = MIXED.with_fields(role=np.zeros_like(MIXED.role))
    with pytest.raises(GraphError, match="no training nodes"):
        ge.GraphEraser(**QUICK).fit(graph)


def test_a_run_whose_context_was_changed_is_refused(tmp_path: Path) -> None:
    ge.GraphEraser(num_shards=2, context="all", **QUICK).fit(MIXED).save(tmp_path / "run")
    manifest = tmp_path / "run" / "run.json"
    text = manifest.read_text()
    assert '"context":"all"' in text.replace(" ", "")
    for changed in (text.replace('"all"', '"none"'), text.replace('"all"', '"none"', 1)):
        manifest.write_text(changed)
        with pytest.raises(CorruptRunError):
            ge.GraphEraser.load(tmp_path / "run")
