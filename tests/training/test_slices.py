"""Training in slices: the phases, and that they train what plain PyTorch would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import grapheraser as ge
from grapheraser.errors import ParameterError
from grapheraser.models import KINDS, PRESETS
from grapheraser.training import ShardTask, SlicedTask, TrainingConfig, cpu, train_sliced
from grapheraser.training.cpu.noise import later, noise_of, row_keys
from grapheraser.training.engine import CpuEngine
from grapheraser.training.reference import initial_module, reproducible, shard_tensors, tensors_of
from grapheraser.training.slices import epochs_of, slice_of
from tests.strategies import TwoHops, small_graph


@pytest.mark.parametrize(("epochs", "slices"), [(100, 4), (7, 3), (5, 5), (10, 1)])
def test_the_phases_divide_the_epochs_evenly(epochs: int, slices: int) -> None:
    phases = [epochs_of(phase, slices, epochs) for phase in range(slices)]
    assert [epoch for phase in phases for epoch in phase] == list(range(epochs))
    sizes = [len(phase) for phase in phases]
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) == sizes[-1]


def test_a_nodes_slice_depends_on_its_id_and_the_seed_alone() -> None:
    ids = np.arange(4000)
    slices = slice_of(ids, 4, seed=1)
    assert np.array_equal(slice_of(ids[::7], 4, seed=1), slices[::7])
    assert not np.array_equal(slice_of(ids, 4, seed=2), slices)
    assert np.abs(np.bincount(slices, minlength=4) - 1000).max() < 120


def test_later_noise_is_the_noise_of_later_epochs() -> None:
    noise = noise_of(2**64 - 3, np.arange(5), 0.5, 0.0, 0.0)
    expected, found = np.empty(5, dtype=np.uint32), np.empty(5, dtype=np.uint32)
    row_keys(noise, 17 + 2, 1, expected)
    row_keys(later(noise, 17), 2, 1, found)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("model", KINDS)
def test_one_phase_is_the_training_of_the_engine(model: str) -> None:
    task, config = ShardTask(0, small_graph(), 5), TrainingConfig(PRESETS[model], epochs=5)
    once = train_sliced(SlicedTask(task, 1), engine=CpuEngine(), config=config)
    assert once.digest == cpu.train_shard(task, config).digest


@pytest.mark.parametrize("model", KINDS)
def test_a_stop_between_two_epochs_changes_nothing(model: str) -> None:
    graph = small_graph()
    task, config = ShardTask(0, graph, 5), TrainingConfig(PRESETS[model], epochs=6)
    seed = next(s for s in range(10**6) if (slice_of(graph.ids[:3], 2, s) == 0).all())
    few = replace(task, graph=graph.subgraph(graph.ids[:3]), seed=seed)
    found = train_sliced(SlicedTask(few, 2), engine=CpuEngine(), config=config)
    assert found.checkpoints[0].tensors["steps"] == 3
    plain = cpu.train_shard(few, config)
    for name, tensor in plain.tensors.items():
        assert np.array_equal(found.tensors[name], tensor), name


@pytest.mark.parametrize("model", KINDS)
def test_without_dropout_it_is_one_adam_in_pytorch_on_growing_graphs(model: str) -> None:
    graph = small_graph()
    spec = replace(PRESETS[model], dropout=0.0, all_columns=True)
    task, slices = ShardTask(0, graph, 5), 3
    config = TrainingConfig(spec, epochs=20)
    found = train_sliced(SlicedTask(task, slices), engine=CpuEngine(), config=config)

    columns = task.columns(spec)
    assigned = slice_of(graph.ids, slices, task.seed)
    with reproducible(0):
        module = initial_module(task, spec, columns)
        adam = torch.optim.Adam(module.parameters(), lr=spec.lr, weight_decay=spec.weight_decay)
        module.train()
        for phase in range(slices):
            part = graph.subgraph(graph.ids[assigned <= phase])
            x, edge_index = shard_tensors(part, columns)
            y = torch.from_numpy(part.y.copy())
            for _ in epochs_of(phase, slices, config.epochs):
                adam.zero_grad()
                F.cross_entropy(module(x, edge_index), y).backward()  # type: ignore[no-untyped-call]
                adam.step()
    expected = tensors_of(module, spec)
    assert expected.keys() == found.tensors.keys()
    for name, tensor in expected.items():
        difference = np.subtract(found.tensors[name], tensor, dtype=np.float64)
        assert np.abs(difference).max() < 1e-4, name


@pytest.mark.parametrize("slices", [0, 6, 2.0, True, "2"])
def test_a_bad_number_of_slices_is_refused(small: ge.Graph, slices: object) -> None:
    eraser = ge.GraphEraser(epochs=5, slices=slices)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"'slices' of GraphEraser must be an int in \[1, 5\]"):
        eraser.fit(small)


def test_an_engine_that_can_not_stop_is_refused(small: ge.Graph) -> None:
    with pytest.raises(ParameterError, match="engine 'pyg' can't train in slices"):
        ge.GraphEraser(num_shards=2, engine="pyg", slices=2).fit(small)
    with pytest.raises(ParameterError, match="engine 'pyg' can't train in slices"):
        ge.GraphEraser(model=TwoHops, num_shards=2, slices=2).fit(small)
