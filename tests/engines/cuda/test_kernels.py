"""The CUDA engine computes what autograd and the CPU engine compute.

On a GPU where there is one, otherwise in triton's interpreter (slowly, so on tiny shards).
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from grapheraser.engines import ShardTask, TrainingConfig, cpu
from grapheraser.engines.cpu.train import PreparedShard
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.models import KINDS, PRESETS, ModelSpec, initial_weights
from grapheraser.models.modules import build_module
from tests.engines.variants import VARIANTS
from tests.strategies import with_edge_values

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton", reason="the CUDA engine's kernels need triton")

from grapheraser.engines import cuda  # noqa: E402
from grapheraser.engines.cuda.layout import layout_of  # noqa: E402
from grapheraser.engines.cuda.train import PreparedStack  # noqa: E402

DEVICE = "cuda" if HAS_GPU else "cpu"
pytestmark = pytest.mark.slow
# A bias right before a batch norm has no gradient but rounding errors.
NO_GRADIENT = ("conv1.nn.2.bias", "conv2.nn.2.bias")
MODELS = (*KINDS, "gin, sum and norm", "gat, no skip")


def shard_task(n: int = 21, seed: int = 0) -> ShardTask:
    """A shard with isolated nodes, a node without features and a class that nobody has."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 40)) * (rng.random((n, 40)) < 0.12)
    x[:, 0] = 1.0
    x[2] = 0.0
    edges = rng.integers(0, n - 2, size=(2, 2 * n))
    edges = edges[:, edges[0] != edges[1]] * 7
    y = rng.integers(0, 4, size=n)
    graph = Graph.from_arrays(x, edges, y, ids=np.arange(n) * 7, num_classes=5)
    return ShardTask(3, graph, seed=12345 + seed)


def gradients(
    spec: ModelSpec, task: ShardTask, start: dict[str, NDArray[np.float64]]
) -> dict[str, NDArray[Any]]:
    """The first epoch's gradients, read off Adam's first moment."""
    layout = layout_of(replace(spec, weight_decay=0.0), task.graph.num_classes)
    stack = PreparedStack(
        layout, [task], 1, torch.device(DEVICE), starts=[start], dtype=torch.float64
    )
    stack.epoch()
    moments = stack.named(stack.run.moments[0], stack.run.theta_moments[0])[0]
    return {name: np.asarray(value, dtype=np.float64) / 0.1 for name, value in moments.items()}


@pytest.mark.parametrize("halo", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_equal_autograd_in_float64(name: str, halo: bool) -> None:
    task = shard_task()
    if halo:  # every third node has no label
        y = np.where(np.arange(task.graph.num_nodes) % 3, task.graph.y, UNLABELLED)
        task = replace(task, graph=task.graph.with_fields(y=y))
    spec = replace(VARIANTS[name], dropout=0.0, input_dropout=0.0, attention_dropout=0.0)
    graph, columns = task.graph, task.columns(spec)
    rng = np.random.default_rng(1)
    start = {
        tensor: value.astype(np.float64) + rng.normal(scale=0.1, size=value.shape)
        for tensor, value in initial_weights(
            spec, graph.num_features, graph.num_classes, columns, task.seed
        ).items()
    }
    module = build_module(spec, len(columns), graph.num_classes).to(torch.float64).train()
    module.load_state_dict({k: torch.tensor(v) for k, v in start.items()}, strict=False)
    x = torch.tensor(graph.x.toarray()[:, columns], dtype=torch.float64)
    logits = module(x, torch.tensor(graph.edge_index))
    loss = F.cross_entropy(logits, torch.tensor(graph.y), ignore_index=UNLABELLED)
    loss.backward()  # type: ignore[no-untyped-call]
    found = gradients(spec, task, start)
    named = dict(module.named_parameters())
    assert sorted(found) == sorted(named)
    for tensor, parameter in named.items():
        assert parameter.grad is not None
        expected = parameter.grad.numpy()
        np.testing.assert_allclose(found[tensor], expected, atol=1e-8, rtol=0, err_msg=tensor)


@pytest.mark.parametrize("name", PRESETS)
def test_the_start_has_the_bits_of_initial_weights(name: str) -> None:
    tasks = [shard_task(9, 1), shard_task(12, 2)]
    spec = PRESETS[name]
    stack = PreparedStack(layout_of(spec, 5), tasks, 1, torch.device(DEVICE))
    for task, weights in zip(tasks, stack.weights(), strict=True):
        expected = initial_weights(spec, 40, 5, weights.columns, task.seed)
        for tensor, value in expected.items():
            np.testing.assert_array_equal(weights.tensors[tensor], value, err_msg=tensor)


@pytest.mark.parametrize("name", MODELS)
def test_in_float64_training_with_dropout_equals_the_cpu_engine(name: str) -> None:
    spec = replace(VARIANTS[name], input_dropout=0.5, attention_dropout=0.5)
    task = shard_task(13)
    expected = PreparedShard(task, spec, 3, dtype=np.float64)
    expected.run()
    stack = PreparedStack(layout_of(spec, 5), [task], 3, torch.device(DEVICE), dtype=torch.float64)
    for _ in range(3):
        stack.epoch()
    found: dict[str, Any] = stack.named(stack.run.weights, stack.run.theta)[0]
    wanted: dict[str, Any] = expected.named(expected.weights.values, expected.parameters.values)
    for tensor, value in wanted.items():
        if not spec.batch_norm or tensor not in NO_GRADIENT:
            np.testing.assert_allclose(found[tensor], value, rtol=0, atol=1e-9, err_msg=tensor)


@pytest.mark.parametrize("name", MODELS)
def test_dropout_and_all_agree_with_the_cpu_engine(name: str) -> None:
    spec = replace(VARIANTS[name], input_dropout=0.25, attention_dropout=0.3)
    config = TrainingConfig(spec, epochs=3)
    task = shard_task(13)
    found, expected = cuda.train_shard(task, config, device=DEVICE), cpu.train_shard(task, config)
    np.testing.assert_array_equal(found.columns, expected.columns)
    assert found.tensors.keys() == expected.tensors.keys()
    for tensor, value in expected.tensors.items():
        if not spec.batch_norm or tensor not in NO_GRADIENT:
            wanted, other = value.astype(np.float32), found.tensors[tensor].astype(np.float32)
            np.testing.assert_allclose(other, wanted, rtol=1e-3, atol=2e-5, err_msg=tensor)


@pytest.mark.parametrize("name", MODELS)
def test_a_shard_has_the_same_bits_alone_and_stacked(name: str) -> None:
    config = TrainingConfig(VARIANTS[name], epochs=2)
    tasks = [shard_task(n, seed) for n, seed in ((9, 1), (14, 2), (5, 3))]
    together = cuda.train_shards(tasks, config, device=DEVICE)
    assert together[1].digest == cuda.train_shard(tasks[1], config, device=DEVICE).digest
    other = cuda.train_shards(tasks[::-1], config, device=DEVICE)
    assert [w.digest for w in together] == [w.digest for w in other[::-1]]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", [name for name in VARIANTS if name.startswith("gcn")])
def test_weighted_and_directed_edges_agree_with_the_cpu_engine(name: str, directed: bool) -> None:
    spec = VARIANTS[name]
    tasks = [shard_task(n, seed) for n, seed in ((13, 1), (9, 2))]
    tasks = [replace(task, graph=with_edge_values(task.graph, directed=directed)) for task in tasks]
    layout, device = layout_of(spec, 5), torch.device(DEVICE)
    stack = PreparedStack(layout, tasks, 3, device, dtype=torch.float64)
    for _ in range(3):
        stack.epoch()
    stacked: list[dict[str, Any]] = [*stack.named(stack.run.weights, stack.run.theta)]
    for task, found in zip(tasks, stacked, strict=True):
        expected = PreparedShard(task, spec, 3, dtype=np.float64)
        expected.run()
        inner: dict[str, Any] = expected.named(expected.weights.values, expected.parameters.values)
        for tensor, value in inner.items():
            np.testing.assert_allclose(found[tensor], value, rtol=0, atol=1e-9, err_msg=tensor)
    config = TrainingConfig(spec, epochs=2)
    together = cuda.train_shards(tasks, config, device=DEVICE)
    assert together[1].digest == cuda.train_shard(tasks[1], config, device=DEVICE).digest
