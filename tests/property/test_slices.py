"""Training in slices forgets as exactly: weights and checkpoints are what a fresh fit makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.audit.residue import search_run
from grapheraser.models import KINDS
from grapheraser.partition import Partition
from grapheraser.training import Checkpoint, ShardWeights
from grapheraser.training.slices import slice_of
from tests.strategies import batches_for, small_graphs

MODELS = [*KINDS, "gin:paper", "gat:paper"]

pytestmark = pytest.mark.slow
every_model = pytest.mark.parametrize("model", MODELS)


def eraser_of(model: str = "gcn", **changes: Any) -> ge.GraphEraser:
    settings_ = {"num_shards": 2, "epochs": 5, "slices": 3, "executor": ge.LocalExecutor(1)}
    return ge.GraphEraser(model=model, engine="cpu", **{**settings_, **changes})


@st.composite
def sliced(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "slices": draw(st.integers(2, 4)),
        "partition": draw(st.sampled_from(["hash", "random"])),
        "aggregation": draw(st.sampled_from(["mean", "routed-learned"])),
        "num_shards": draw(st.integers(1, 3)),
        "seed": draw(st.integers(0, 3)),
    }


def bits(eraser: ge.GraphEraser) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    tensors = {
        **eraser._state.tensors(),
        "posteriors": eraser.predict_proba(eraser.graph_.ids),
    }
    assert np.isfinite(tensors["posteriors"]).all()
    assert any("checkpoint" in name for name in tensors)
    return {
        name: (str(array.dtype), array.shape, array.tobytes()) for name, array in tensors.items()
    }


def retrained(eraser: ge.GraphEraser, graph: ge.Graph, cut: Partition) -> ge.GraphEraser:
    return ge.GraphEraser(**eraser.get_params()).fit(graph, partition=cut)


def digests(eraser: ge.GraphEraser) -> list[str]:
    return [weights.digest for weights in eraser.shards_.values()]


@every_model
@settings(max_examples=8)
@given(st.data())
def test_unlearned_equals_retrained(model: str, data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    eraser = eraser_of(model, **data.draw(sliced())).fit(graph)
    cut = eraser.partition_
    for request in data.draw(batches_for(graph)):
        graph = graph.without(request)
        eraser.unlearn(request)
        fresh = retrained(eraser, graph, cut)
        assert bits(eraser) == bits(fresh)
        assert digests(eraser) == digests(fresh)
    assert eraser.verify().identical


@every_model
@settings(max_examples=4)
@given(st.data())
def test_inserted_equals_retrained(model: str, data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    eraser = eraser_of(model, **data.draw(sliced())).fit(graph)
    row = data.draw(
        st.lists(st.integers(0, 3), min_size=graph.num_features, max_size=graph.num_features)
    )
    others = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), max_size=4))
    eraser.insert(1000, row, 1, others)
    fresh = retrained(eraser, graph.with_node(1000, row, 1, others), eraser.partition_)
    assert bits(eraser) == bits(fresh)


@settings(max_examples=10)
@given(st.data())
def test_a_run_that_was_saved_in_between_forgets_the_same_way(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    graph = data.draw(small_graphs())
    stayed = eraser_of("gin", **data.draw(sliced())).fit(graph)
    folder = tmp_path_factory.mktemp("run") / "run"
    stayed.save(folder)
    for request in data.draw(batches_for(graph)):
        stayed.unlearn(request)
        came_back = ge.GraphEraser.load(folder)
        assert came_back.slices == stayed.slices
        came_back.unlearn(request)
        came_back.save(folder)
    came_back = ge.GraphEraser.load(folder)
    assert bits(came_back) == bits(stayed)
    assert digests(came_back) == digests(stayed)


@settings(max_examples=20)
@given(st.data())
def test_a_checkpoint_is_kept_just_when_its_phases_did_not_see_what_goes(
    data: st.DataObject,
) -> None:
    graph = data.draw(small_graphs(min_nodes=20))
    eraser = eraser_of(num_shards=1, slices=4).fit(graph)
    seed = eraser._settings.shard_seed(0)
    kind = data.draw(st.sampled_from(["node", "edge", "features"]))
    trained = eraser.graph_.training_graph
    request: ge.Nodes | ge.Edges | ge.Features
    if kind == "edge" and trained.num_edges:
        u, v = data.draw(st.sampled_from(trained.edges.tolist()))
        request, phase = ge.Edges([(u, v)]), max(slice_of(np.array([u, v]), 4, seed))
    else:
        filled = trained.ids[np.diff(trained.x.indptr) > 0]
        node = data.draw(st.sampled_from(filled.tolist()))
        request = ge.Features([node]) if kind == "features" else ge.Nodes([node])
        (phase,) = slice_of(np.array([node]), 4, seed)
    before = eraser.shards_[0].checkpoints
    eraser.unlearn(request)
    after = eraser.shards_[0].checkpoints
    assert [old is new for old, new in zip(before, after, strict=True)] == [
        i < phase for i in range(3)
    ]


def test_empty_first_phases_leave_the_initial_state(small: ge.Graph) -> None:
    eraser = eraser_of(num_shards=1, slices=4).fit(small)
    seed = eraser._settings.shard_seed(0)
    early = small.train_nodes[slice_of(small.train_nodes, 4, seed) < 2]
    eraser.unlearn(ge.Nodes(early.tolist()))
    first, second, third = eraser.shards_[0].checkpoints
    assert [int(c.tensors["steps"][0]) for c in (first, second, third)] == [0, 0, 1]
    assert len(first.columns) == len(second.columns) == 0
    assert eraser.verify().identical


def test_verify_notices_an_altered_checkpoint(small: ge.Graph) -> None:
    eraser = eraser_of().fit(small)
    assert eraser.verify().identical
    weights = eraser.shards_[1]
    first, *others = weights.checkpoints
    moments = {"inputs": np.add(first.tensors["inputs"], 1e-6, dtype=np.float32)}
    altered = (Checkpoint(first.columns, {**first.tensors, **moments}), *others)
    other = ShardWeights(weights.columns, weights.tensors, altered)
    assert other.digest != weights.digest
    state = replace(eraser._state, shards={**eraser.shards_, 1: other})
    eraser._fitted = replace(eraser._fitted, state=state)
    found = eraser.verify()
    assert not found.identical
    assert found.differences[0].startswith("shard 1/checkpoint 0/inputs: ")


def test_stale_checkpoints_leave_the_folder(small: ge.Graph, tmp_path: Path) -> None:
    eraser = eraser_of(num_shards=1).fit(small)
    eraser.save(tmp_path / "run")
    seed = eraser._settings.shard_seed(0)
    node = small.train_nodes[slice_of(small.train_nodes, 3, seed) == 1][0]
    before = set((tmp_path / "run" / "shards").iterdir())
    assert len(before) == 3
    eraser.unlearn(ge.Nodes([int(node)]))
    eraser.save(tmp_path / "run")
    after = set((tmp_path / "run" / "shards").iterdir())
    assert (len(after), len(before & after)) == (3, 1)
    assert search_run(tmp_path / "run").clean


def test_one_slice_is_plain_training(small: ge.Graph) -> None:
    plain = ge.GraphEraser(num_shards=2, epochs=5).fit(small)
    one = ge.GraphEraser(num_shards=2, epochs=5, slices=1).fit(small)
    assert digests(one) == digests(plain)
    assert all(weights.checkpoints == () for weights in one.shards_.values())
    assert all("checkpoints" not in weights.arrays for weights in one.shards_.values())
    assert "slices" not in one._fitted.configuration
    assert not any("checkpoint" in name for name in one._state.tensors())


def test_the_executor_does_not_matter(small: ge.Graph) -> None:
    node = ge.Nodes([int(small.train_nodes[0])])
    here, there = eraser_of().fit(small), eraser_of(executor=ge.ProcessExecutor(1)).fit(small)
    here.unlearn(node)
    there.unlearn(node)
    assert bits(here) == bits(there)
