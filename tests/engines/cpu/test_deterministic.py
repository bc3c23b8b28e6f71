"""The CPU engine's weights are a function of the task alone, also for degenerate shards."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.engines.cpu import train_shard, warm_up
from grapheraser.errors import ParameterError
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph
from grapheraser.models import PRESETS, CustomModel


def random_task(n: int, seed: int, *, num_edges: int = 60, density: float = 0.1) -> ShardTask:
    rng = np.random.default_rng(seed)
    x = rng.random((n, 50)) * (rng.random((n, 50)) < density)
    edges = rng.integers(0, n, size=(2, num_edges))
    edges = edges[:, edges[0] != edges[1]]
    graph = Graph.from_arrays(x, edges, rng.integers(0, 3, size=n), num_classes=3)
    return ShardTask(0, graph, seed)


@pytest.mark.parametrize("name", PRESETS)
def test_threads_and_company_do_not_change_a_bit(name: str) -> None:
    config = TrainingConfig(PRESETS[name], epochs=5)
    tasks = [random_task(10 + seed, seed) for seed in range(6)]
    alone = [train_shard(task, config).digest for task in tasks]
    train = partial(resolve_engine("cpu", config, "cpu").train, config=config)
    for executor in (LocalExecutor(1), LocalExecutor(4)):
        for order in (range(6), range(6)[::-1]):
            found = executor.map(train, [tasks[i] for i in order], names=order)
            assert [w.digest for w in found] == [alone[i] for i in order]
    assert len(set(alone)) == len(tasks)


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(sorted(PRESETS)),
    n=st.integers(1, 12),
    num_edges=st.integers(0, 12),
    density=st.sampled_from([0.0, 0.02, 0.3]),
    seed=st.integers(0, 2**63),
)
def test_small_shards_train_to_finite_weights(
    name: str, n: int, num_edges: int, density: float, seed: int
) -> None:
    task = random_task(n, seed % 1000, num_edges=num_edges, density=density)
    task = ShardTask(0, task.graph, seed)
    config = TrainingConfig(PRESETS[name], epochs=4)
    weights = train_shard(task, config)
    assert all(np.isfinite(tensor).all() for tensor in weights.tensors.values())
    assert weights.digest == train_shard(task, config).digest


@pytest.mark.parametrize("name", PRESETS)
def test_a_shard_with_one_node_and_nothing_else_trains(name: str) -> None:
    graph = Graph.from_arrays(np.zeros((1, 4)), [], [1], num_classes=3)
    weights = train_shard(ShardTask(0, graph, 1), TrainingConfig(PRESETS[name], epochs=3))
    assert all(np.isfinite(tensor).all() for tensor in weights.tensors.values())


def test_the_norm_of_a_single_row_has_variance_zero() -> None:
    graph = Graph.from_arrays(np.ones((1, 4)), [], [1], num_classes=3)
    spec = replace(PRESETS["gin"], batch_norm=True)
    weights = train_shard(ShardTask(0, graph, 1), TrainingConfig(spec, epochs=1))
    np.testing.assert_allclose(np.asarray(weights.tensors["norm1.running_var"]), 0.9)


def test_the_masks_of_a_node_do_not_depend_on_other_nodes() -> None:
    # Two components; without the second one, the first one's hidden units see the same dropout.
    # Its weights differ (the loss is a mean over fewer nodes), so compare what dropout leaves of
    # the gradient: a shard of one isolated node trained twice, with other ids around it.
    alone = Graph.from_arrays(np.eye(4)[:1], [], [0], ids=[9], num_classes=2)
    moved = Graph.from_arrays(np.eye(4)[:1], [], [0], ids=[8], num_classes=2)
    config = TrainingConfig(PRESETS["gcn"], epochs=3)
    digests = [train_shard(ShardTask(0, g, 5), config).digest for g in (alone, moved, alone)]
    assert digests[0] == digests[2]
    assert digests[0] != digests[1]


def test_many_classes_span_several_vectors() -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_arrays(np.eye(40), [], rng.integers(0, 37, 40), num_classes=37)
    weights = train_shard(ShardTask(0, graph, 0), TrainingConfig(PRESETS["sage"], epochs=2))
    assert weights.tensors["conv2.lin_r.weight"].shape == (37, 64)


def test_custom_models_are_refused_with_a_hint() -> None:
    config = TrainingConfig(CustomModel(lambda i, o: None))  # type: ignore[arg-type,return-value]
    with pytest.raises(ParameterError, match="built-in models only"):
        train_shard(random_task(4, 0), config)


def test_warming_up_compiles_every_kind() -> None:
    for spec in PRESETS.values():
        warm_up(spec)
