"""What must hold of a run that was read before anything computes with it."""

from __future__ import annotations

from grapheraser.aggregation import ChecksTensors, Ensemble
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.state import State, trained_shards
from grapheraser.errors import CorruptRunError
from grapheraser.store import StoredRun
from grapheraser.training import ShardModels, check_weights


def checked_state(settings: Settings, run: StoredRun) -> State:
    """The state of a run that was read, with all that compiled code indexes by checked."""
    if run.graph.context != settings.context:
        raise CorruptRunError("its graph has another context than its settings.")
    model = settings.training.model
    check_weights(model, run.shards, run.graph)
    if trained_shards(run.graph, run.partition, model) != tuple(run.shards):
        raise CorruptRunError("the shards with weights are not those with labelled nodes.")
    shards = ShardModels.of(run.shards)
    ensemble = Ensemble(run.graph, run.partition, shards, model, settings.seed, settings.device)
    if isinstance(settings.aggregator, ChecksTensors):
        settings.aggregator.check_tensors(run.aggregator, ensemble)
    return State(ensemble, settings.aggregator.restore(run.aggregator), run.seeds)
