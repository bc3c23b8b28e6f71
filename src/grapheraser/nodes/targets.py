"""Checks of settings for several labels and numbers: what can't learn them is refused."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from grapheraser.aggregation import PooledAggregator
from grapheraser.aggregation.members.features import is_wide
from grapheraser.engines import resolve_engine
from grapheraser.engines.engine import Engine
from grapheraser.eraser.settings import Settings
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.labels import NUMBERS, SEVERAL

# The closed-form members that take targets; the others count classes. Of few features `features`
# takes each column for itself, so that `words` have nothing to add.
TAKEN = ("pattern", "features", "words")
_LOSSES = {SEVERAL: ("cross_entropy",), NUMBERS: ("cross_entropy", "huber")}


def check_targets(arguments: Mapping[str, Any], settings: Settings, graph: Graph) -> None:
    """Refuse arguments that can't learn the several labels, or the numbers, of a graph."""
    words, own = graph.label_kind.words, arguments["members"]
    taken = TAKEN if is_wide(graph) else TAKEN[:-1]
    if own is not None and not set(own) <= {*taken}:
        wanted = f"among {', '.join(taken)} on a graph with {words}"
        wanted += "" if is_wide(graph) else f" and {graph.num_features} feature columns"
        raise ParameterError.of("members", "GraphEraser", wanted, own)
    if not isinstance(settings.aggregator, PooledAggregator):
        raise GraphError(
            f"this aggregation combines classes (graph '{graph.name}' has {words}).",
            hint="use aggregation='routed' with closed-form members, or model='closed-form'.",
        )
    config = settings.training
    if config.class_weights is not None or config.neighbours is not None:
        name = "class_weights" if config.class_weights is not None else "neighbours"
        raise ParameterError(f"'{name}' of Training is for classes; these are {words}.")
    if isinstance(config.loss, str) and config.loss not in _LOSSES[graph.label_kind.name]:
        wanted = f"{' or '.join(_LOSSES[graph.label_kind.name])} for {words}"
        raise ParameterError.of("loss", "Training", wanted, config.loss)


def engine_for(arguments: Mapping[str, Any], settings: Settings, graph: Graph) -> Engine:
    """Return the engine that trains shards on targets; in place of ``cuda`` the reference loop."""
    if settings.engine.name != "cuda":
        return settings.engine
    if arguments["engine"] != "auto":
        raise ParameterError(
            f"engine 'cuda' learns classes (graph '{graph.name}' has {graph.label_kind.words}).",
            hint="use engine='pyg' or 'auto', or device='cpu'.",
        )
    warnings.warn(
        "engine 'pyg', the reference loop, trains this run: engine 'cuda' learns classes "
        f"(graph '{graph.name}' has {graph.label_kind.words}). Say engine='pyg' to choose it "
        "without this warning.",
        stacklevel=6,
    )
    return resolve_engine("pyg", settings.training, settings.device)
