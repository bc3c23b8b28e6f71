"""The CPU engine computes what PyG and autograd compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.engines import ShardTask, TrainingConfig
from grapheraser.engines.cpu import train_shard
from grapheraser.engines.cpu.noise import edge_key, is_kept, noise_of, row_keys
from grapheraser.engines.cpu.train import PreparedShard
from grapheraser.engines.shared.layout import (
    ATTENTION_1,
    ATTENTION_2,
    BETA_1,
    HIDDEN_1,
    HIDDEN_2,
    INPUT,
    layout_of,
    limits_of,
)
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.kernels.vectors import padded
from grapheraser.models import ModelSpec, initial_weights
from grapheraser.models.modules import build_module
from tests.engines.variants import VARIANTS
from tests.strategies import with_edge_values


def shard_task(n: int = 41, num_classes: int = 5, seed: int = 0) -> ShardTask:
    """A shard with isolated nodes, nodes without features and a class that nobody has."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 70)) * (rng.random((n, 70)) < 0.08)
    x[2] = 0.0
    edges = rng.integers(0, n - 2, size=(2, 2 * n))
    edges = edges[:, edges[0] != edges[1]] * 7
    y = rng.integers(0, num_classes - 1, size=n)
    graph = Graph.from_arrays(x, edges, y, ids=np.arange(n) * 7, num_classes=num_classes)
    return ShardTask(3, graph, seed=12345 + seed)


def quiet(spec: ModelSpec) -> ModelSpec:
    return replace(spec, dropout=0.0, input_dropout=0.0, attention_dropout=0.0)


def start_of(spec: ModelSpec, task: ShardTask) -> dict[str, NDArray[np.float64]]:
    """Initial weights with biases far from zero.

    A bias right before a batch norm has no influence and so no gradient but for weight decay and
    rounding; near zero, Adam would blow up the rounding to steps of full size.
    """
    graph, columns = task.graph, task.columns(spec)
    rng = np.random.default_rng(1)
    initial = initial_weights(spec, graph.num_features, graph.num_classes, columns, task.seed)
    return {
        name: value.astype(np.float64)
        + (rng.uniform(0.3, 0.6, size=value.shape) if name.endswith("bias") else 0.0)
        for name, value in initial.items()
    }


def module_of(
    spec: ModelSpec, task: ShardTask, start: dict[str, NDArray[np.float64]], dtype: torch.dtype
) -> tuple[torch.nn.Module, Tensor, Tensor, Tensor]:
    columns = task.columns(spec)
    module = build_module(spec, len(columns), task.graph.num_classes).to(dtype)
    state = {name: torch.tensor(value, dtype=dtype) for name, value in start.items()}
    assert not module.load_state_dict(state, strict=False).unexpected_keys
    x = torch.tensor(task.graph.x.toarray()[:, columns], dtype=dtype)
    return module.train(), x, torch.tensor(task.graph.edge_index), torch.tensor(task.graph.y)


def engine_gradients(
    spec: ModelSpec, task: ShardTask, start: dict[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.float64]]:
    """The first epoch's gradients, read off Adam's first moment."""
    shard = PreparedShard(task, replace(spec, weight_decay=0.0), 1, start=start, dtype=np.float64)
    shard.run()
    moments = shard.named(shard.weights.first, shard.parameters.first)
    return {name: value.astype(np.float64) / (1 - BETA_1) for name, value in moments.items()}


def assert_gradients_equal(
    found: dict[str, NDArray[np.float64]], module: torch.nn.Module, tolerance: float
) -> None:
    named = dict(module.named_parameters())
    assert sorted(found) == sorted(named)
    for name, parameter in named.items():
        assert parameter.grad is not None
        expected = parameter.grad.numpy()
        np.testing.assert_allclose(found[name], expected, atol=tolerance, rtol=0, err_msg=name)
        if name.endswith("weight"):
            assert np.abs(expected).max() > 1e-6


def with_halo(task: ShardTask) -> ShardTask:
    """The same shard, where every third node has no label."""
    y = task.graph.y.copy()
    y[::3] = UNLABELLED
    return replace(task, graph=task.graph.with_fields(y=y))


@pytest.mark.parametrize("halo", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_equal_autograd_in_float64(name: str, halo: bool) -> None:
    task, spec = shard_task(), quiet(VARIANTS[name])
    task = with_halo(task) if halo else task
    start = start_of(spec, task)
    module, x, edge_index, y = module_of(spec, task, start, torch.float64)
    loss = F.cross_entropy(module(x, edge_index), y, ignore_index=UNLABELLED)
    torch.autograd.backward(loss)
    assert_gradients_equal(engine_gradients(spec, task, start), module, 1e-8)


QUICK = ("mlp", "gcn")
KINDS_OF_MODELS = [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.long)
    for name in ("mlp", "gcn", "sage", "gat", "gin", "gin, mean, norm and head")
]


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("name", KINDS_OF_MODELS)
def test_gradients_of_several_labels_and_numbers_equal_autograd(name: str, numbers: bool) -> None:
    """Unknown targets have no loss; outputs far from zero don't overflow."""
    task, spec = shard_task(), quiet(VARIANTS[name])
    rng = np.random.default_rng(2)
    rows = rng.normal(50, 9, (41, 18)) if numbers else rng.integers(0, 2, (41, 18)) * 1.0
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[3] = np.nan
    graph = Graph.from_arrays(
        task.graph.x,
        task.graph.edges.T,
        rows,
        ids=task.graph.ids,
        train=task.graph.ids[~np.isnan(rows).all(axis=1)],
        labels="numbers" if numbers else "several",
    )
    task = replace(task, graph=graph)
    start = start_of(spec, task)
    scaled = {key: value * (1 if key.endswith("bias") else 9) for key, value in start.items()}
    module, x, edge_index, _ = module_of(spec, task, scaled, torch.float64)
    known = ~np.isnan(rows)
    if numbers:
        mean, spread = graph.label_frame.mean, graph.label_frame.spread
        steps = graph.label_kind.fixed(rows)
        assert (np.abs(np.nanmean(steps, axis=0) - mean) < spread).all()
        rows = (steps - graph.label_frame.centre) / spread
    loss_of = F.mse_loss if numbers else F.binary_cross_entropy_with_logits
    torch.autograd.backward(loss_of(module(x, edge_index)[known], torch.tensor(rows[known])))
    assert_gradients_equal(engine_gradients(spec, task, scaled), module, 1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", [name for name in VARIANTS if name.startswith("gcn")])
def test_gradients_along_weighted_and_directed_edges_equal_autograd(
    name: str, directed: bool, weighted: bool
) -> None:
    task, spec = shard_task(), quiet(VARIANTS[name])
    graph = with_edge_values(task.graph, weighted=weighted, directed=directed)
    task = replace(task, graph=graph)
    start = start_of(spec, task)
    module, x, edge_index, y = module_of(spec, task, start, torch.float64)
    weights = (torch.tensor(graph.edge_weight, dtype=torch.float64),) if weighted else ()
    torch.autograd.backward(F.cross_entropy(module(x, edge_index, *weights), y))
    assert_gradients_equal(engine_gradients(spec, task, start), module, 1e-8)


@pytest.mark.parametrize("name", VARIANTS)
def test_weights_after_20_epochs_equal_the_pyg_loop(name: str) -> None:
    task, spec = shard_task(), quiet(VARIANTS[name])
    start = start_of(spec, task)
    module, x, edge_index, y = module_of(spec, task, start, torch.float32)
    optimiser = torch.optim.Adam(module.parameters(), lr=spec.lr, weight_decay=spec.weight_decay)
    for _ in range(20):
        optimiser.zero_grad()
        torch.autograd.backward(F.cross_entropy(module(x, edge_index), y))
        optimiser.step()
    found = train_shard(task, TrainingConfig(spec, epochs=20), start=start)
    state = {
        key: value.numpy()
        for key, value in module.state_dict().items()
        if not key.endswith(("eps", "num_batches_tracked"))
    }
    assert sorted(found.tensors) == sorted(state)
    for key, tensor in found.tensors.items():
        assert tensor.dtype == np.float32
        assert tensor.flags.c_contiguous
        np.testing.assert_allclose(
            tensor.astype(np.float32), state[key], atol=1e-4, rtol=0, err_msg=key
        )


class Masks:
    """What ``F.dropout`` is replaced by: the engine's own masks of epoch 0, in PyG's order."""

    def __init__(self, spec: ModelSpec, task: ShardTask) -> None:
        self.spec, self.task = spec, task
        graph = task.graph
        self.noise = noise_of(task.seed, graph.ids, limits_of(spec))
        self.hidden = iter((HIDDEN_1, HIDDEN_2))
        self.attention = iter((ATTENTION_1, ATTENTION_2))

    def keys(self, layer: int) -> NDArray[np.uint32]:
        keys = np.empty(self.task.graph.num_nodes, dtype=np.uint32)
        row_keys(self.noise, 0, layer, keys)
        return keys

    def of_units(self, layer: int, units: NDArray[np.integer], limit: int) -> Tensor:
        kept = [[is_kept(key, unit, limit) for unit in units] for key in self.keys(layer)]
        return torch.tensor(kept).double()

    def of_edges(self, layer: int, num_heads: int) -> Tensor:
        graph, keys = self.task.graph, self.keys(layer)
        pairs = graph.edge_index.T.tolist()
        if self.spec.self_loops:
            pairs += [[node, node] for node in range(graph.num_nodes)]
        rows = []
        for source, target in pairs:
            key = edge_key(keys[target], self.noise.id_keys[source])
            rows.append([is_kept(key, head, self.noise.attention) for head in range(num_heads)])
        return torch.tensor(rows).double()

    def __call__(
        self, value: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        assert training
        assert not inplace
        spec, graph = self.spec, self.task.graph
        if p == 0:
            return value
        if value.shape[0] != graph.num_nodes:
            mask = self.of_edges(next(self.attention), value.shape[1])
        elif value.shape[1] == len(self.task.columns(spec)) and p == spec.input_dropout:
            mask = self.of_units(INPUT, self.task.columns(spec), self.noise.features)
        else:
            layout = layout_of(spec, graph.num_classes, padded)
            axes = (layout.hidden, *(segment.out for segment in layout.segments.values()))
            units = next(a.places for a in axes if len(a.places) == value.shape[1])
            mask = self.of_units(next(self.hidden), units, self.noise.hidden)
        return value * mask / (1 - p)


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_under_dropout_equal_autograd_with_the_same_masks(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, spec = shard_task(), replace(VARIANTS[name], dropout=0.3, input_dropout=0.25)
    if spec.kind == "gat":
        spec = replace(spec, attention_dropout=0.6)
    start = start_of(spec, task)
    module, x, edge_index, y = module_of(spec, task, start, torch.float64)
    monkeypatch.setattr(F, "dropout", Masks(spec, task))
    loss = F.cross_entropy(module(x, edge_index), y)
    torch.autograd.backward(loss)
    assert_gradients_equal(engine_gradients(spec, task, start), module, 1e-8)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.6])
def test_dropout_drops_at_its_rate_in_every_row_unit_and_epoch(p: float) -> None:
    noise = noise_of(7, np.arange(400), limits_of(ModelSpec("gcn", dropout=p)))
    kept = np.zeros((20, 400, 64))
    keys = np.empty(400, dtype=np.uint32)
    for epoch in range(20):
        row_keys(noise, epoch, HIDDEN_1, keys)
        kept[epoch] = [[is_kept(key, unit, noise.hidden) for unit in range(64)] for key in keys]
    deviation = np.sqrt(p * (1 - p))
    assert abs(kept.mean() - (1 - p)) < 4 * deviation / np.sqrt(kept.size)
    for axes in ((0, 1), (0, 2), (1, 2)):
        means = kept.mean(axis=axes)
        spread = deviation / np.sqrt(kept.size / len(means))
        assert np.abs(means - (1 - p)).max() < 5 * spread
    flat = kept.reshape(20, -1) - (1 - p)
    correlation = flat @ flat.T / flat.shape[1] / deviation**2
    np.fill_diagonal(correlation, 0.0)
    assert np.abs(correlation).max() < 5 / np.sqrt(flat.shape[1])
