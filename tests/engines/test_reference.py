"""The reference loop: it learns, it is isolated, and it leaves nothing behind in torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import GINConv

import grapheraser as ge
from grapheraser.engines import ShardTask, ShardWeights, TrainingConfig, reference
from grapheraser.engines.batches import shard_tensors
from grapheraser.inference import shard_posteriors
from grapheraser.models import KINDS, PRESETS, Model, resolve_model
from tests.strategies import TwoHops, engines, torch_state_kept

MODELS = [*KINDS, "custom"]


def model_of(name: str) -> Model:
    return resolve_model(TwoHops if name == "custom" else name)


def trained(graph: ge.Graph, model: Model, epochs: int, seed: int = 1) -> ShardWeights:
    return reference.train_shard(ShardTask(0, graph, seed), TrainingConfig(model, epochs))


def loss_of(graph: ge.Graph, model: Model, weights: ShardWeights) -> float:
    module = reference.initial_module(ShardTask(0, graph, 1), model, weights.columns)
    reference.load_tensors(module, weights.tensors)
    module.eval()
    with torch.no_grad():
        logits = module(*shard_tensors(graph, weights.columns))
    return float(F.cross_entropy(logits, torch.from_numpy(graph.y.copy())))


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_falls(small: ge.Graph, name: str) -> None:
    graph, model = small.training_graph, model_of(name)
    losses = [loss_of(graph, model, trained(graph, model, epochs)) for epochs in (1, 40)]
    assert losses[1] < 0.8 * losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("name", KINDS)
def test_it_beats_the_largest_class_on_the_demo_graph(
    demo: ge.Graph, name: str, engine: str
) -> None:
    eraser = ge.GraphEraser(model=name, num_shards=1, epochs=20, engine=engine).fit(demo)
    labels = demo.y[demo.positions(demo.test_nodes)]
    majority = np.bincount(labels).max() / len(labels)
    assert eraser.score(demo.test_nodes) > majority + 0.15


@pytest.mark.parametrize("name", MODELS)
def test_weights_are_a_function_of_the_task(small: ge.Graph, name: str) -> None:
    graph, model = small.training_graph, model_of(name)
    first = trained(graph, model, 3)
    torch.rand(100)  # whatever else the process draws
    assert trained(graph, model, 3).digest == first.digest
    assert trained(graph, model, 3, seed=2).digest != first.digest


@pytest.mark.parametrize("name", MODELS)
def test_torch_is_left_as_it_was(small: ge.Graph, name: str) -> None:
    with torch_state_kept():
        trained(small.training_graph, model_of(name), 2)


def test_torch_is_left_as_it_was_by_several_workers(small: ge.Graph) -> None:
    """Whichever shard comes last must not put back what another shard had set."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch_state_kept():
            ge.GraphEraser(num_shards=8, epochs=2, engine="pyg", executor=ge.LocalExecutor(4)).fit(
                small
            )
    finally:
        torch.set_num_threads(before)


def test_torch_is_left_as_it_was_after_a_failure(small: ge.Graph) -> None:
    def broken(in_channels: int, out_channels: int) -> torch.nn.Module:
        raise RuntimeError("no module today")

    with torch_state_kept(), pytest.raises(RuntimeError, match="no module today"):
        trained(small.training_graph, resolve_model(broken), 2)


@pytest.mark.parametrize("name", MODELS)
def test_the_number_of_threads_does_not_matter(small: ge.Graph, name: str) -> None:
    graph, model = small.training_graph, model_of(name)
    before = torch.get_num_threads()
    digests = set()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            digests.add(trained(graph, model, 3).digest)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(digests) == 1


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("name", KINDS)
def test_a_shard_sees_nothing_but_its_own_nodes_and_edges(
    small: ge.Graph, name: str, engine: str
) -> None:
    """Everything else in the graph is changed, and the shard's weights stay the same bits."""
    part = ge.partition_graph(small, "random", num_shards=3)
    members = part.members(1)
    inside = np.isin(small.edges, members).all(axis=1)
    others = ~np.isin(small.ids, members)
    x, y = small.x.toarray(), small.y.copy()
    x[others] = 7.0
    y[others] = (y[others] + 1) % 3
    elsewhere = ge.Graph.from_arrays(
        x,
        small.edges[inside].T,
        y,
        ids=small.ids,
        test=small.test_nodes,
        num_classes=3,
        each_edge_once=True,
    )
    first, second = (
        ge.GraphEraser(model=name, epochs=3, engine=engine).fit(graph, partition=part)
        for graph in (small, elsewhere)
    )
    assert first.shards_[1].digest == second.shards_[1].digest
    assert first.shards_[0].digest != second.shards_[0].digest


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("name", KINDS)
def test_the_number_of_workers_does_not_matter(small: ge.Graph, name: str, engine: str) -> None:
    one, two = (
        ge.GraphEraser(
            model=name, num_shards=4, epochs=3, engine=engine, executor=ge.LocalExecutor(workers)
        ).fit(small)
        for workers in (1, 2)
    )
    assert [w.digest for w in one.shards_.values()] == [w.digest for w in two.shards_.values()]


@pytest.mark.slow
@pytest.mark.parametrize("engine", engines())
def test_other_processes_give_the_same_bits(small: ge.Graph, engine: str) -> None:
    here, there = (
        ge.GraphEraser(num_shards=2, epochs=3, engine=engine, executor=executor).fit(small)
        for executor in (ge.LocalExecutor(1), ge.ProcessExecutor(1))
    )
    assert [w.digest for w in here.shards_.values()] == [w.digest for w in there.shards_.values()]


class Averages(torch.nn.Module):
    """A user's own module with everything that can be learned beside a matrix."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GINConv(torch.nn.Linear(in_channels, out_channels), train_eps=True)
        self.norm = torch.nn.BatchNorm1d(out_channels)
        self.scale = torch.nn.Parameter(torch.tensor(1.0))
        self.inner = torch.nn.Module()
        self.inner.register_buffer("eps", torch.zeros(out_channels))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.conv(x, edge_index))
        seen = self.inner.get_buffer("eps")
        if self.training:
            seen += h.detach().mean(dim=0) + 1
        logits: torch.Tensor = self.scale * h + seen
        return logits


def test_all_that_a_users_module_learns_is_kept(small: ge.Graph) -> None:
    modules: list[torch.nn.Module] = []

    def remembered(in_channels: int, out_channels: int) -> torch.nn.Module:
        modules.append(Averages(in_channels, out_channels))
        return modules[-1]

    graph, model = small.training_graph, resolve_model(remembered)
    weights = trained(graph, model, 5)
    state = modules[0].state_dict()
    assert weights.tensors.keys() == state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(weights.tensors[name], value.numpy())
    assert weights.tensors["conv.eps"] != 0
    assert weights.tensors["inner.eps"].all()
    modules[0].eval()
    with torch.no_grad():
        logits = modules[0](*shard_tensors(graph, weights.columns))
    found = shard_posteriors(model, [weights], graph, np.arange(graph.num_nodes))
    np.testing.assert_array_equal(found[0], torch.softmax(logits, dim=1).numpy())


@pytest.mark.parametrize("name", ["conv.eps", "norm.running_mean", "scale"])
def test_all_that_a_users_module_learns_is_in_the_digest(small: ge.Graph, name: str) -> None:
    weights = trained(small.training_graph, resolve_model(Averages), 2)
    changed = np.asarray(weights.tensors[name].astype(np.float32) + 1)
    other = ShardWeights(weights.columns, {**weights.tensors, name: changed})
    assert other.digest != weights.digest


def test_all_that_a_users_module_learns_survives_the_disk(small: ge.Graph, tmp_path: Path) -> None:
    eraser = ge.GraphEraser(model=Averages, num_shards=2, epochs=3).fit(small)
    eraser.save(tmp_path)
    loaded = ge.GraphEraser.load(tmp_path, model=Averages)
    assert [w.digest for w in loaded.shards_.values()] == [
        w.digest for w in eraser.shards_.values()
    ]
    assert loaded.verify().identical


def test_columns_that_the_shard_never_saw_have_no_weights(small: ge.Graph) -> None:
    graph = small.subgraph(small.train_nodes[:3])
    used = np.flatnonzero(graph.x.toarray().any(axis=0))
    assert 0 < len(used) < graph.num_features
    lean = trained(graph, PRESETS["gcn"], 1)
    assert lean.columns.tolist() == used.tolist()
    assert lean.tensors["conv1.lin.weight"].shape[1] == len(used)
    assert len(trained(graph, PRESETS["gcn:paper"], 1).columns) == graph.num_features


@pytest.mark.parametrize("name", KINDS)
def test_it_is_adam_on_the_cross_entropy_from_the_keyed_start(small: ge.Graph, name: str) -> None:
    """The loop written out once more, without the package's own helpers, dropout off."""
    from dataclasses import replace

    from grapheraser.models import initial_weights
    from grapheraser.models.modules import build_module

    graph, spec = small.training_graph, replace(PRESETS[name], dropout=0.0, all_columns=True)
    columns = np.arange(graph.num_features)
    module = build_module(spec, graph.num_features, graph.num_classes)
    start = initial_weights(spec, graph.num_features, graph.num_classes, columns, 1)
    parameters = dict(module.named_parameters())
    with torch.no_grad():
        for key, value in start.items():
            parameters[key].copy_(torch.from_numpy(value))
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=0.001)
    data = graph.to_pyg()
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(module(data.x, data.edge_index), data.y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    found = trained(graph, spec, 4)
    for key, parameter in parameters.items():
        weights = found.tensors[key].astype(np.float64)
        np.testing.assert_allclose(weights, parameter.detach().numpy(), atol=5e-5)
