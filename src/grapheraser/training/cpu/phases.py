"""`train_phases`: a shard's training with stops, and from a stop on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.models import ModelSpec, initial_weights
from grapheraser.models.initial import input_parameters
from grapheraser.training.cpu.adam import schedule_of
from grapheraser.training.cpu.job import Job
from grapheraser.training.cpu.layout import Axis
from grapheraser.training.cpu.noise import later
from grapheraser.training.task import Checkpoint, Phase, ShardTask, ShardWeights, TrainingConfig


def train_phases(
    phases: Sequence[Phase], config: TrainingConfig, start: Checkpoint | None = None
) -> ShardWeights:
    """Train one shard through these phases; the result is a function of the arguments.

    What a phase starts from is read from the checkpoint before it and nothing else, so that it
    makes no difference whether that was made just now or long ago.
    """
    spec = config.model
    if not isinstance(spec, ModelSpec):
        raise ParameterError(
            "engine 'cpu' trains the built-in models only.", hint="use engine='pyg' or 'auto'."
        )
    initial = _Initial.of(phases[-1].task, spec, start)
    checkpoints: list[Checkpoint] = []
    *others, last = phases
    for phase in others:
        start = _checkpoint(*_trained(phase, spec, start, initial))
        checkpoints.append(start)
    job, _ = _trained(last, spec, start, initial)
    return ShardWeights(job.columns, job.tensors(), tuple(checkpoints))


class _Initial(NamedTuple):
    """Initial weights by PyG's names, for these of the feature columns."""

    columns: NDArray[np.int32]
    tensors: dict[str, NDArray[np.float32]]

    @classmethod
    def of(cls, task: ShardTask, spec: ModelSpec, start: Checkpoint | None) -> _Initial:
        """For all columns of the task that ``start`` has none for."""
        columns = task.columns(spec)
        if start is not None:
            columns = np.setdiff1d(columns, start.columns, assume_unique=True)
        sizes = task.graph.num_features, task.graph.num_classes
        return cls(columns, initial_weights(spec, *sizes, columns, task.seed))

    def cut_to(self, columns: NDArray[np.int32], spec: ModelSpec) -> dict[str, NDArray[np.float32]]:
        """The same for fewer columns."""
        at = np.searchsorted(self.columns, columns)
        inputs = {name: self.tensors[name][:, at] for name in input_parameters(spec)}
        return {**self.tensors, **inputs}


def _trained(
    phase: Phase, spec: ModelSpec, start: Checkpoint | None, initial: _Initial
) -> tuple[Job, int]:
    """One phase's job, done, and the steps that Adam has taken up to its end."""
    task, epochs = phase
    if start is None:
        steps = 0
        job = Job(task, spec, 0, start=initial.cut_to(task.columns(spec), spec))
    else:
        steps = int(start.tensors["steps"].item())
        job = Job(task, spec, 0, start={})
        _go_on(job, start, initial)
    if task.graph.num_nodes == 0:
        return job, steps
    rates = schedule_of(spec.lr, spec.weight_decay, steps + len(epochs))
    job.shard = job.shard._replace(
        noise=later(job.shard.noise, epochs.start),
        schedule=rates._replace(step=rates.step[steps:], correction=rates.correction[steps:]),
    )
    job.run()
    return job, steps + len(epochs)


def _arrays_of(job: Job) -> dict[str, NDArray[Any]]:
    """All that training changes, where it lies."""
    inputs, parameters = job.weights, job.parameters
    return {
        "inputs": inputs.values,
        "inputs/first": inputs.first,
        "inputs/second": inputs.second,
        "parameters": parameters.values,
        "parameters/first": parameters.first,
        "parameters/second": parameters.second,
        "running": job.running,
    }


def _checkpoint(job: Job, steps: int) -> Checkpoint:
    """What a job leaves, which does not use it any more."""
    return Checkpoint(job.columns, {**_arrays_of(job), "steps": np.array([steps], dtype=np.int64)})


def _go_on(job: Job, start: Checkpoint, initial: _Initial) -> None:
    """Put a checkpoint into a blank job, and initial weights into the columns new to it."""
    places = np.searchsorted(job.columns, start.columns)
    for name, array in _arrays_of(job).items():
        array[places if name.startswith("inputs") else slice(None)] = start.tensors[name]
    new = np.ones(len(job.columns), dtype=bool)
    new[places] = False
    columns = job.columns[new]
    values = np.zeros((len(columns), job.weights.values.shape[1]), dtype=np.float32)
    segment = replace(job.plan.inputs, inner=Axis(np.arange(len(columns)), len(columns)))
    segment.write(initial.cut_to(columns, job.spec), values.reshape(-1))
    job.weights.values[new] = values
