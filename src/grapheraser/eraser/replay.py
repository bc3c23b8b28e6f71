"""Training a shard twice, to see whether a user's own code repeats itself.

Modules, aggregators, losses and the like of one's own may read a clock, a generator that nobody
seeded, or what an earlier training left behind. Then no state can be computed again, and receipts
must not claim it. Two equal runs prove nothing about a third, so a receipt says what it rests on.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines.engine import Engine
from grapheraser.engines.task import (
    OWN_FUNCTIONS,
    Reader,
    ShardTask,
    ShardWeights,
    TrainingConfig,
    tensor_digests,
)
from grapheraser.execution import Executor
from grapheraser.models import CustomModel
from grapheraser.receipts.claim import DIFFERENT, SAME, UNTRIED

if TYPE_CHECKING:
    from torch import nn

REPLAY = "replay"  # what a run's configuration calls it
_EPOCHS = 3  # that are replayed
_LIBRARIES = ("torch", "torch_geometric", "numpy", "builtins")
# Names in a user's code, and what they most likely draw from.
_CAUSES = {
    "a clock": {"time", "time_ns", "perf_counter", "monotonic", "now", "today", "utcnow"},
    "a generator without a seed": {"default_rng", "RandomState", "Random", "Generator", "seed"},
    "the system's randomness": {"urandom", "SystemRandom", "token_bytes", "randbits", "uuid4"},
}
_STATE = "what outlives a training: a global or class attribute, a cache, an argument"

Arrays = dict[str, NDArray[Any]]


def known_replay(own_code: Sequence[str], fitted_as: Mapping[str, Any] | None) -> str | None:
    """Return how a run's replay went, by its configuration; None where there was none."""
    if fitted_as is None or not own_code:
        return None
    said = fitted_as.get(REPLAY)
    return str(said) if said in (SAME, DIFFERENT) else UNTRIED


def replay(task: ShardTask, engine: Engine, executor: Executor, config: TrainingConfig) -> str:
    """Train the first epochs of a shard twice; warns where the bits differ.

    Both on one worker of the executor, one after the other: what the first leaves behind, the
    second finds. What the user's code itself warns of was shown when the shards were trained.
    """
    short = replace(config, epochs=min(config.epochs, _EPOCHS))
    function = partial(_twice, engine=engine, config=short)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ((one, other),) = executor.map(function, [task], names=[task.shard])
    parts = _own_parts(config, task) if one != other else []
    return _said(" and ".join(config.own_code), one, other, parts)


def compared(aggregator: Any, one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Compare what an aggregator of the user's own learned twice; warns where the bits differ."""
    digests = tensor_digests(one), tensor_digests(other)
    return _said(str(aggregator.name), *digests, [type(aggregator)])


def _said(who: str, one: Mapping[str, str], other: Mapping[str, str], parts: Sequence[Any]) -> str:
    differ = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    if not differ:
        return SAME
    warnings.warn(
        f"{who} can't be trained twice with the same bits: "
        f"{', '.join(differ[:3])}{' and others' if len(differ) > 3 else ''} differ. So receipts of "
        f"this run say 'retrained, not exact'. Likely cause: {_cause(parts)}.",
        stacklevel=2,
    )
    return DIFFERENT


def _twice(
    task: ShardTask, engine: Engine, config: TrainingConfig
) -> tuple[dict[str, str], dict[str, str]]:
    """Digests of all that a shard learns and answers, and of the same once more."""
    return _digests(task, engine, config), _digests(task, engine, config)


def _digests(task: ShardTask, engine: Engine, config: TrainingConfig) -> dict[str, str]:
    weights = engine.train(task, config)
    return tensor_digests({**weights.arrays, **_answers(task, weights, config)})


def _answers(task: ShardTask, weights: ShardWeights, config: TrainingConfig) -> Arrays:
    """Return what a user's module says of the shard's own nodes; nothing for a built-in model."""
    if not isinstance(config.model, CustomModel):
        return {}
    everyone = np.arange(task.graph.num_nodes)
    if isinstance(config.model, Reader):
        return {"its scores": config.model.posteriors([weights], task.graph, everyone)}
    import torch

    from grapheraser.engines import reference
    from grapheraser.inference.module import ShardModule
    from grapheraser.inference.surroundings import whole_graph

    graph = task.graph
    with reference.reproducible(0), torch.no_grad():
        shape = graph.num_features, graph.num_classes, graph.edge_kind, graph.types
        module = ShardModule(config.model, weights.tensors, *shape)
        scores = module(whole_graph(graph, everyone))
        return {"its scores": scores.cpu().numpy()}


def _cause(parts: Sequence[Any]) -> str:
    """A guess at what differs, from the names that the user's code uses."""
    names = set(chain.from_iterable(map(_names, parts)))
    found = [cause for cause, known in _CAUSES.items() if known & names]
    return " or ".join(found) if found else _STATE


def _own_parts(config: TrainingConfig, task: ShardTask) -> list[Any]:
    parts = [part for name in OWN_FUNCTIONS if callable(part := getattr(config, name))]
    if isinstance(config.model, CustomModel):
        from grapheraser.engines import reference

        with reference.reproducible(0):
            made: nn.Module = config.model.module_for(task.graph)
        parts += [config.model.factory, *{type(part) for part in made.modules()}]
    return parts


def _names(part: Any) -> set[str]:
    """The names that functions, or the methods of classes, use; none of a library's."""
    part = part.func if isinstance(part, partial) else part
    if str(getattr(part, "__module__", "")).partition(".")[0] in _LIBRARIES:
        return set()
    if inspect.isclass(part):
        return set(
            chain.from_iterable(map(_names, filter(inspect.isfunction, vars(part).values())))
        )
    code = getattr(part, "__code__", None)
    return set(_code_names(code)) if isinstance(code, CodeType) else set()


def _code_names(code: CodeType) -> set[str]:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return {*code.co_names, *chain.from_iterable(map(_code_names, inner))}
