"""Modules of one's own: every generator is seeded, and what can't be repeated is found."""

from __future__ import annotations

import random
import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR, StepLR
from torch_geometric.nn import GCNConv
from torch_geometric.utils import negative_sampling

import grapheraser as ge
from grapheraser.aggregation import MeanAggregator
from grapheraser.errors import ParameterError
from grapheraser.receipts import NOT_EXACT

REPLAYED = "exact as replayed"


class Base(torch.nn.Module):
    """A convolution whose scores are scaled by what a module should or should not look at."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GCNConv(in_channels, out_channels)

    def scale(self, x: Tensor) -> float:
        return 1.0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        scores: Tensor = self.conv(x, edge_index) * self.scale(x)
        return scores


class Drawing(Base):
    def scale(self, x: Tensor) -> float:
        return float(np.random.rand()) + random.random() + float(torch.rand(()))  # noqa: NPY002


class Sampling(Base):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        absent = negative_sampling(edge_index, num_nodes=len(x), num_neg_samples=8)
        scores: Tensor = self.conv(x, edge_index) - 0.1 * self.conv(x, absent)
        return scores


class Clock(Base):
    def scale(self, x: Tensor) -> float:
        return time.perf_counter() % 1


class Unseeded(Base):
    def scale(self, x: Tensor) -> float:
        return float(np.random.default_rng().random())


class Counting(Base):
    passes = 0

    def scale(self, x: Tensor) -> float:
        Counting.passes += 1
        return 1 / Counting.passes


class AnswersByChance(Base):
    """Trains alike every time, and answers otherwise."""

    def scale(self, x: Tensor) -> float:
        return 1.0 if self.training else float(np.random.default_rng().random())


def eraser_of(model: Any, **changes: Any) -> ge.GraphEraser:
    # Drawn numbers hide how far a module looks.
    model = ge.CustomModel(model, hops="all") if isinstance(model, type) else model
    options = {"num_shards": 3, "epochs": 3, "aggregation": "mean", **changes}
    return ge.GraphEraser(model=model, **options)


@pytest.mark.parametrize("module", [Base, Drawing, Sampling])
@pytest.mark.parametrize("workers", [1, 3])
def test_whatever_a_module_draws_from_is_seeded(
    small: ge.Graph, module: type, workers: int
) -> None:
    eraser = eraser_of(module, executor=ge.LocalExecutor(workers)).fit(small)
    alone = eraser_of(module, executor=ge.LocalExecutor(1)).fit(small)
    assert [w.digest for w in eraser.shards_.values()] == [w.digest for w in alone.shards_.values()]
    assert np.array_equal(eraser.predict_proba(small.ids), eraser.predict_proba(small.ids))
    receipt = eraser.unlearn(ge.Nodes(small.train_nodes[:2]))
    assert receipt.statement == REPLAYED
    assert "trained twice" in receipt.exactness["reason"]
    assert eraser.verify().identical


def test_the_callers_generators_are_left_as_they_were(small: ge.Graph) -> None:
    def draw() -> tuple[float, float, float]:
        return float(np.random.rand()), random.random(), float(torch.rand(()))  # noqa: NPY002

    def seed() -> None:
        np.random.seed(5)  # noqa: NPY002
        random.seed(5)
        torch.manual_seed(5)

    seed()
    expected = [draw(), draw()]
    seed()
    found = [draw()]
    eraser_of(Drawing).fit(small).predict(small.ids)
    assert [*found, draw()] == expected


@pytest.mark.parametrize(
    ("module", "cause"),
    [
        (Clock, "a clock"),
        (Unseeded, "a generator without a seed"),
        (Counting, "what outlives a training"),
        (AnswersByChance, "a generator without a seed"),
    ],
)
def test_what_does_not_repeat_itself_is_never_called_exact(
    small: ge.Graph, module: type, cause: str, tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match=f"{module.__name__} can't be trained twice.*{cause}"):
        eraser = eraser_of(module).fit(small)
    assert eraser.unlearn(ge.Nodes(small.train_nodes[:2])).statement == NOT_EXACT
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run", model=ge.CustomModel(module, hops="all"))
    assert back.unlearn(ge.Nodes(small.train_nodes[2:3])).statement == NOT_EXACT


def test_what_was_replayed_stays_known(small: ge.Graph, tmp_path: Path) -> None:
    eraser_of(Base, partition="random").fit(small).save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run", model=ge.CustomModel(Base, hops="all"))
    wanted = f"{REPLAYED} given partition"
    assert back.unlearn(ge.Nodes(small.train_nodes[:1])).statement == wanted
    assert back.reshard(2).statement == wanted
    assert back.verify().identical


def test_a_loss_of_ones_own_is_replayed_as_well(small: ge.Graph) -> None:
    def by_chance(scores: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(scores * time.perf_counter(), y)

    training = ge.Training(loss=by_chance)
    with pytest.warns(UserWarning, match=r"an own loss can't be trained twice.*a clock"):
        eraser = eraser_of("gcn", engine="pyg", training=training).fit(small)
    assert eraser.exactness_["statement"] == NOT_EXACT


def test_a_built_in_model_is_not_replayed(small: ge.Graph) -> None:
    assert eraser_of("gcn", engine="pyg").fit(small).exactness_["statement"] == "exact"


def test_encoders_of_links_are_replayed(small: ge.Graph) -> None:
    options: dict[str, Any] = {"members": "shards", "num_shards": 2, "epochs": 2, "width": 4}
    links = ge.LinkEraser(model=ge.CustomModel(Drawing, hops="all"), **options).fit(small)
    assert links.exactness_["statement"] == REPLAYED
    with pytest.warns(UserWarning, match="Clock can't be trained twice"):
        links = ge.LinkEraser(model=ge.CustomModel(Clock, hops="all"), **options).fit(small)
    assert links.exactness_["statement"] == NOT_EXACT


# -- aggregators, schedulers and callbacks ------------------------------------------------------


class Tripled(MeanAggregator):
    """Learns nothing, and repeats itself."""


@dataclass(frozen=True)
class Jumping:
    """Learns a number that no seed decides."""

    name: str = "jumping"

    def fit(self, ensemble: Any) -> Any:
        return JumpedTo(np.array([np.random.default_rng().random()]))

    def refit(self, fitted: Any, ensemble: Any, change: Any) -> Any:
        return self.fit(ensemble)

    def restore(self, tensors: Any) -> Any:
        return JumpedTo(np.asarray(tensors["place"]))


@dataclass(frozen=True)
class JumpedTo:
    place: Any

    @property
    def tensors(self) -> Any:
        return {"place": self.place}

    def predict_proba(self, ensemble: Any, positions: Any) -> Any:
        return ensemble.posteriors(positions).mean(axis=0)


def test_an_aggregator_of_ones_own_is_replayed(tmp_path: Path) -> None:
    graph = ge.load_dataset("demo")
    built_in = ge.GraphEraser(num_shards=3, epochs=1, aggregation="mean").fit(graph)
    assert built_in.exactness_["statement"] == "exact"
    own = ge.GraphEraser(num_shards=3, epochs=1, aggregation=Tripled()).fit(graph)
    assert own.exactness_["statement"] == REPLAYED
    own.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run", aggregation=Tripled())
    assert back.unlearn(ge.Nodes(graph.train_nodes[:1])).statement == REPLAYED
    assert back.verify().identical
    with pytest.warns(UserWarning, match=r"jumping can't be trained twice.*a generator without"):
        jumps = ge.GraphEraser(num_shards=3, epochs=1, aggregation=Jumping()).fit(graph)
    assert jumps.exactness_["statement"] == NOT_EXACT


SEEN: list[tuple[int, float]] = []


def noted(epoch: int, module: torch.nn.Module, loss: float) -> None:
    SEEN.append((epoch, loss))


def clipped(epoch: int, module: torch.nn.Module, loss: float) -> None:
    """Change what is trained."""
    with torch.no_grad():
        for value in module.parameters():
            value.clamp_(-0.01, 0.01)


def restless(epoch: int, module: torch.nn.Module, loss: float) -> None:
    with torch.no_grad():
        next(module.parameters()).add_(time.perf_counter() % 1)


def trained(**settings: Any) -> ge.GraphEraser:
    training = ge.Training(epochs=4, optimizer="sgd", learning_rate=0.5, **settings)
    graph = ge.load_dataset("demo")
    return ge.GraphEraser(num_shards=1, engine="pyg", training=training).fit(graph)


def weights(eraser: ge.GraphEraser) -> dict[int, str]:
    return {shard: part.digest for shard, part in eraser.shards_.items()}


def test_a_scheduler_sets_the_rate_of_every_epoch(tmp_path: Path) -> None:
    plain, never = trained(), partial(StepLR, step_size=99)
    assert weights(trained(scheduler=never)) == weights(plain)
    halt = partial(LambdaLR, lr_lambda=_first_epoch_only)
    once = ge.Training(epochs=1, optimizer="sgd", learning_rate=0.5)
    graph = ge.load_dataset("demo")
    one = ge.GraphEraser("mlp", num_shards=1, engine="pyg", training=once).fit(graph)
    more = replace(once, epochs=4, scheduler=halt)
    stopped = ge.GraphEraser("mlp", num_shards=1, engine="pyg", training=more).fit(graph)
    assert weights(stopped) == weights(one) != weights(plain)  # a rate of 0 changes nothing more
    assert stopped.exactness_["statement"] == REPLAYED
    stopped.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run", training=more)
    back.unlearn(ge.Nodes(graph.train_nodes[:1]))
    assert back.verify().identical
    with pytest.raises(ParameterError, match="must be what the run was fitted with"):
        ge.GraphEraser.load(tmp_path / "run", training=replace(more, scheduler=never))


def _first_epoch_only(epoch: int) -> float:
    return float(epoch == 0)


def test_a_callback_sees_every_epoch_and_may_change_the_module() -> None:
    SEEN.clear()
    watched = trained(callback=noted)
    assert [epoch for epoch, _ in SEEN[:4]] == [0, 1, 2, 3]
    assert SEEN[0][1] > SEEN[3][1] > 0
    assert watched.exactness_["statement"] == REPLAYED
    assert weights(watched) == weights(trained())
    assert weights(trained(callback=clipped)) != weights(watched)
    with pytest.warns(UserWarning, match="an own callback can't be trained twice.*a clock"):
        assert trained(callback=restless).exactness_["statement"] == NOT_EXACT


@pytest.mark.parametrize("hook", [{"scheduler": partial(StepLR, step_size=1)}, {"callback": noted}])
def test_hooks_are_refused_where_they_would_be_ignored(hook: Any) -> None:
    graph, training = ge.load_dataset("demo"), ge.Training(**hook)
    no_function: Any = dict.fromkeys(hook, "cosine")
    with pytest.raises(ParameterError, match=f"engine 'cpu' can't train with {next(iter(hook))}"):
        ge.GraphEraser(engine="cpu", training=training).fit(graph)
    with pytest.raises(ParameterError, match="has no part in model 'closed-form'"):
        ge.GraphEraser("closed-form", training=training).fit(graph)
    with pytest.raises(ParameterError, match="of Training must be a function"):
        ge.Training(**no_function)


def complaining(scores: Tensor, labels: Tensor) -> Tensor:
    warnings.warn("labels are few", stacklevel=1)
    return torch.nn.functional.cross_entropy(scores, labels)


def test_a_warning_of_ones_own_code_is_shown_once_per_fit() -> None:
    training = ge.Training(epochs=2, loss=complaining)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        ge.GraphEraser(num_shards=6, engine="pyg", training=training).fit(ge.load_dataset("demo"))
    assert [str(each.message) for each in caught] == ["labels are few"]
