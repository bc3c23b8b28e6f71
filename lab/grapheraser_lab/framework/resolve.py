"""From the names in a cell's configuration to the objects that they stand for.

A part is written as ``name``, as ``name(option=value, ...)`` or, for the user's own, as
``module:attribute``. In this form it can be put into a cell, sent to a worker and read by people.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from grapheraser.aggregation import AGGREGATORS, MEMBERS, Aggregator, PooledAggregator
from grapheraser.aggregation.base import Change, Ensemble, FittedAggregator
from grapheraser.aggregation.learned import FittedLearned, LearnedAggregator
from grapheraser.aggregation.sample.posteriors import SampledPosteriors
from grapheraser.aggregation.simplex import mixture_weights, paper_weights
from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.inference import shard_posteriors
from grapheraser.models import CustomModel, Model, ModelSpec, resolve_model
from grapheraser.partition import PARTITIONERS, Partitioner, resolve_partitioner
from grapheraser.partition.kmeans import DIMENSIONS, pretrained_gnn, smoothed_features
from grapheraser.seeding import derive
from grapheraser.store.files import file_digest
from grapheraser_lab.framework.released import LogMean, ReleasedAggregator, softmax


@dataclass(frozen=True)
class WholeAggregator(LearnedAggregator):
    """LBAggr on whole neighbourhoods, as the ensemble shows them, under several readings.

    Attributes:
        reading: ``convex``, the minimum of the text's objective on the simplex; ``softmax``, that
            of the cross-entropy of a softmax of the weighted posteriors, over scores of 0 and
            more; ``steps``, gradient steps with a softmax of the scores after each.
        rate, steps: of the gradient steps.
    """

    reading: str = "convex"
    rate: float = 0.1
    steps: int = 100
    name: str = "lbaggr"

    def fit(self, ensemble: Ensemble) -> FittedLearned:
        """See `Aggregator`."""
        nodes = self._nodes(ensemble)
        values = ensemble.posteriors(ensemble.graph.positions(nodes))
        shards = np.array(ensemble.shard_ids, dtype=np.int64)
        return self._learn(ensemble, SampledPosteriors(nodes, shards, values))

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> FittedLearned:
        """See `Aggregator`."""
        del fitted, change
        return self.fit(ensemble)

    def _learn(self, ensemble: Ensemble, sampled: SampledPosteriors) -> FittedLearned:
        if self.reading == "softmax":
            labels = ensemble.graph.labels(sampled.nodes)
            scores = softmax_scores(sampled.values.astype(np.float64), labels, self.penalty)
            return FittedLearned(sampled, scores)
        true = sampled.true_class(ensemble)
        if self.reading == "convex":
            return FittedLearned(sampled, mixture_weights(true, penalty=self.penalty))
        scores = paper_weights(true, penalty=self.penalty, steps=self.steps, rate=self.rate)
        return FittedLearned(sampled, scores)


def softmax_scores(
    posteriors: NDArray[np.float64], labels: NDArray[np.int64], penalty: float
) -> NDArray[np.float64]:
    """The scores ``[k]``, at least 0 and divided by their sum, from posteriors ``[k, n, c]``."""
    k, n, classes = posteriors.shape
    truth, even = np.eye(classes)[labels], np.full(k, 1.0 / k)

    def loss(scores: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        p = softmax(np.einsum("s,snc->nc", scores, posteriors))
        norm = float(np.linalg.norm(scores))
        value = -float(np.log((p * truth).sum(axis=1)).mean()) + penalty * norm
        slope = np.einsum("snc,nc->s", posteriors, (p - truth) / n)
        return value, slope + penalty * scores / max(norm, 1e-12)

    found = minimize(loss, even, jac=True, method="L-BFGS-B", bounds=[(0, None)] * k).x
    return found / found.sum() if n and found.sum() > 0 else even


def sage_logits(graph: Graph, seed: int) -> NDArray[np.float32]:
    """Class logits of a GraphSAGE trained on the labels: what the released code clusters."""
    spec = ModelSpec("sage", hidden=DIMENSIONS)
    config = TrainingConfig(spec, epochs=100)
    task = ShardTask(0, graph, derive(seed, "partition", "pretrained"))
    weights = resolve_engine("auto", config, "cpu").train(task, config)
    everybody = np.arange(graph.num_nodes)
    shares = shard_posteriors(spec, [weights], graph, everybody)[0].astype(np.float64)
    return np.log(np.maximum(shares, 1e-12)).astype(np.float32)


_FORM = re.compile(r"([\w.:-]+)(?:\((.*)\))?$")
# The paper's released code averages logarithms and learns scores by an objective of its own.
# `lbaggr` is LBAggr as the paper writes it, under the readings that its text admits.
OTHERS: dict[str, Callable[..., Any]] = {
    "log-mean": LogMean,
    "released": ReleasedAggregator,
    "lbaggr": WholeAggregator,
}
# Of BEKM: hidden units or logits of a GNN trained on labels; features smoothed over 1, 2 or 4
# hops, a GNN's first, second or fourth layer without training.
EMBEDDINGS: dict[str, Callable[..., Any]] = {
    "sage": pretrained_gnn,
    "logits": sage_logits,
    **{f"layer{hops}": partial(smoothed_features, hops=hops) for hops in (1, 2, 4)},
}


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Name and options of a part.

    >>> parse("learned(solver=paper, sample=0.1)")
    ('learned', {'solver': 'paper', 'sample': 0.1})
    """
    match = _FORM.match(text)
    if match is None:
        raise ParameterError(f"can't read '{text}'.", hint="write name or name(option=value, ...).")
    options = {}
    for item in (match[2] or "").split(","):
        if item.strip():
            key, _, value = item.partition("=")
            options[key.strip()] = _value(value.strip())
    return match[1], options


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def is_own(name: str) -> bool:
    """Tell whether a name is the user's own ``module:attribute`` (``gcn:paper`` is a preset)."""
    module, _, attribute = name.partition("(")[0].partition(":")
    return bool(attribute) and attribute != "paper" and bool(module)


def shown(name: str) -> str:
    """A data set, model or method as tables print it."""
    if name.endswith(".npz"):
        return Path(name).stem
    return name.rsplit(":", maxsplit=1)[-1] if is_own(name) else name


def named(*parts: object) -> str:
    """A case in words: ``cora gcn blpa``."""
    return " ".join(shown(str(part)) for part in parts)


def load_own(name: str) -> Any:
    """Import what ``module:attribute`` names."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for step in attribute.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError) as error:
        raise ParameterError(
            f"can't import '{name}' ({error}).",
            hint="it must be module:attribute, with the module on the Python path.",
        ) from error
    return found


def model_of(text: str) -> Model:
    """A preset, a preset with other options (``gat:paper(dropout=0)``), or a user's factory."""
    name, options = parse(text)
    if is_own(name):
        found = load_own(name)
        return found if isinstance(found, CustomModel) else resolve_model(found)
    preset = resolve_model(name)
    return _made(partial(replace, preset), text, options) if options else preset


def partitioner_of(text: str) -> Partitioner:
    """A registered method with options, or a user's partitioner or function."""
    name, options = parse(text)
    if is_own(name):
        return resolve_partitioner(load_own(name))
    if options.get("embedding") in EMBEDDINGS:
        options["embedding"] = EMBEDDINGS[options["embedding"]]
    return _made(PARTITIONERS.get(name), text, options)


def aggregator_of(text: str) -> Aggregator:
    """A registered aggregation with options, or a user's aggregator.

    ``pooled`` is the pool of the routed shards and the closed-form members, as `GraphEraser` has it
    by default; ``closed-form`` is those members alone.
    """
    name, options = parse(text)
    if name in ("pooled", "closed-form"):
        return PooledAggregator(MEMBERS, shards=name == "pooled")
    if name in OTHERS:
        return _made(OTHERS[name], text, options)
    if is_own(name):
        found = load_own(name)
        own: Aggregator = found(**options) if isinstance(found, type) else found
        return own
    return _made(AGGREGATORS.get(name), text, options)


def _made(factory: Callable[..., Any], text: str, options: dict[str, Any]) -> Any:
    try:
        return partial(factory, **options)()
    except TypeError as error:
        raise ParameterError(f"'{text}' can't be made ({error}).") from error


def sources_of(names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the files that hold the user's own parts: when they change, so do the cells."""
    found = {}
    for name in names:
        if is_own(name):
            module = name.partition(":")[0]
            try:
                spec = importlib.util.find_spec(module)
            except ImportError:
                spec = None
            digest = None if spec is None or not spec.origin else file_digest(Path(spec.origin))
            if digest is not None:
                found[module] = digest
    return dict(sorted(found.items()))
