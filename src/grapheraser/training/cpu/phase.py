"""`train_phase`: a shard's training from one checkpoint to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.models import ModelSpec
from grapheraser.training.cpu.adam import schedule_of
from grapheraser.training.cpu.job import Job
from grapheraser.training.cpu.layout import Tensors
from grapheraser.training.cpu.noise import later
from grapheraser.training.task import Checkpoint, ShardTask, TrainingConfig


def train_phase(
    task: ShardTask, config: TrainingConfig, start: Checkpoint, epochs: range
) -> Checkpoint:
    """Go on from ``start``; the result is a function of the arguments, bit for bit.

    Args:
        task: the data of this phase.
        config: a built-in model; its number of epochs has no part here.
        start: where to begin; its columns are the task's.
        epochs: which epochs of the whole training these are. Dropout depends on that.
    """
    spec = config.model
    if not isinstance(spec, ModelSpec):
        raise ParameterError(
            "engine 'cpu' trains the built-in models only.", hint="use engine='pyg' or 'auto'."
        )
    job = Job(task, spec, len(epochs), start=start.tensors)
    _put(job, start.first, job.weights.first, job.parameters.first)
    _put(job, start.second, job.weights.second, job.parameters.second)
    for row, norm in enumerate(job.plan.norms):
        for at, statistic in ((2 * row, "running_mean"), (2 * row + 1, "running_var")):
            # Before the first epoch there are none; the job has what they start from.
            if f"{norm}.{statistic}" in start.tensors:
                job.running[at, : spec.hidden] = start.tensors[f"{norm}.{statistic}"]
    steps = start.steps + len(epochs)
    rates = schedule_of(spec.lr, spec.weight_decay, steps)
    job.shard = job.shard._replace(
        noise=later(job.shard.noise, epochs.start),
        schedule=rates._replace(
            step=rates.step[start.steps :], correction=rates.correction[start.steps :]
        ),
    )
    job.run()
    first = job.named(job.weights.first, job.parameters.first)
    second = job.named(job.weights.second, job.parameters.second)
    return Checkpoint(job.columns, job.tensors(), first, second, steps)


def _put(
    job: Job, tensors: Tensors, inputs: NDArray[np.floating], others: NDArray[np.floating]
) -> None:
    """The reverse of `Job.named`."""
    job.plan.inputs.write(tensors, inputs.reshape(-1))
    for segment, at in zip(job.plan.segments, job.offsets, strict=True):
        if segment.names[0] in tensors:
            segment.write(tensors, others[at : at + segment.size])
