"""`training=`: used, saved, loaded and checked like every other setting."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import grapheraser as ge
from grapheraser.errors import GraphEraserError, GraphError, ParameterError, TrainingError
from tests.engines.test_training import own_loss, own_optimizer, without_addresses
from tests.strategies import TwoHops, small_graph


def fitted(graph: ge.Graph, training: ge.Training | None = None, **changes: Any) -> ge.GraphEraser:
    options = {"num_shards": 3, "engine": "pyg", **changes}
    return ge.GraphEraser(training=training, **options).fit(graph)


def weights(eraser: ge.GraphEraser) -> list[str]:
    return [shard.digest for shard in eraser.shards_.values()]


def test_the_same_training_said_in_other_words_is_the_same_run(small: ge.Graph) -> None:
    spec = ge.ModelSpec("gcn", hidden=5, layers=3, lr=0.05)
    one = fitted(small, ge.Training(epochs=4, hidden=5, layers=3, learning_rate=0.05))
    other = fitted(small, model=spec, epochs=4)
    assert weights(one) == weights(other)
    assert weights(one) != weights(fitted(small, epochs=4))
    kernels = fitted(small, ge.Training(epochs=4, hidden=5, learning_rate=0.05), engine="cpu")
    assert kernels.shards_[0].tensors["conv1.bias"].shape == (5,)


@pytest.mark.parametrize(
    "training",
    [
        ge.Training(optimizer="sgd"),
        ge.Training(optimizer="adamw"),
        ge.Training(optimizer=own_optimizer),
        ge.Training(loss=own_loss),
        ge.Training(class_weights="balanced"),
        ge.Training(class_weights={0: 5.0}),
        ge.Training(class_weights=[1.0, 2.0, 3.0]),
        ge.Training(early_stopping=1),
        ge.Training(early_stopping=ge.EarlyStopping(2, share=0.5)),
        ge.Training(layers=3),
        ge.Training(layers=1),
        ge.Training(dropout=0.0),
        ge.Training(weight_decay=0.5),
        ge.Training(learning_rate=0.2),
        ge.Training(hidden=3),
        ge.Training(epochs=6),
        ge.Training(neighbours=[1, 1], batch_size=4),
        ge.Training(neighbours=[2, -1], batch_size=3),
    ],
    ids=without_addresses,
)
def test_every_value_changes_what_is_learned_and_survives_a_folder(
    tmp_path: Path, small: ge.Graph, training: ge.Training
) -> None:
    plain, eraser = fitted(small, epochs=5), fitted(small, training, epochs=training.epochs or 5)
    assert weights(plain) != weights(eraser)
    eraser.save(tmp_path / "run")
    own: dict[str, Any] = (
        {"training": training} if callable(training.optimizer or training.loss) else {}
    )
    if own:
        with pytest.raises(ParameterError, match="fitted with 'training' of its own") as caught:
            ge.GraphEraser.load(tmp_path / "run")
        assert "training=ge.Training" in str(caught.value.hint)
    back = ge.GraphEraser.load(tmp_path / "run", **own)
    assert back.training == training
    assert back.verify().identical
    receipts = [run.unlearn(ge.Nodes(small.train_nodes[:2])) for run in (eraser, back)]
    assert receipts[0].shards == receipts[1].shards
    assert receipts[0].configuration == receipts[1].configuration
    assert (
        receipts[0].configuration != plain.unlearn(ge.Nodes([small.train_nodes[0]])).configuration
    )
    assert back.verify().identical


def test_another_function_than_the_runs_is_refused(tmp_path: Path, small: ge.Graph) -> None:
    momentum = partial(torch.optim.SGD, lr=0.1, momentum=0.9)
    fitted(small, ge.Training(epochs=3, optimizer=momentum)).save(tmp_path / "run")
    same = ge.Training(epochs=3, optimizer=partial(torch.optim.SGD, momentum=0.9, lr=0.1))
    assert ge.GraphEraser.load(tmp_path / "run", training=same).verify().identical
    for other in (
        ge.Training(epochs=3, optimizer=partial(torch.optim.SGD, lr=0.2, momentum=0.9)),
        ge.Training(epochs=4, optimizer=momentum),
        ge.Training(epochs=3, optimizer=own_optimizer),
        ge.Training(epochs=3),
    ):
        with pytest.raises(ParameterError, match=r"'training' of GraphEraser\.load must be what"):
            ge.GraphEraser.load(tmp_path / "run", training=other)


def test_a_function_without_a_name_is_refused_when_the_run_is_saved(
    tmp_path: Path, small: ge.Graph
) -> None:
    nameless = ge.Training(epochs=2, loss=lambda scores, labels: own_loss(scores, labels) + 1)
    eraser = fitted(small, nameless)
    with pytest.raises(ParameterError, match="'loss' of Training can't be written into a run"):
        eraser.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_reference_loop_is_chosen_with_a_warning_where_it_is_needed(small: ge.Graph) -> None:
    training = ge.Training(epochs=2, optimizer="sgd", layers=3)
    with pytest.warns(UserWarning, match=r"'pyg', the reference loop.*layers=3, optimizer='sgd'"):
        eraser = fitted(small, training, engine="auto")
    assert eraser.engine_ == "pyg"
    assert fitted(small, training).engine_ == "pyg"
    assert fitted(small, ge.Training(epochs=2, dropout=0.1), engine="auto").engine_ == "cpu"
    for engine in ("cpu", "cuda"):
        with pytest.raises(ParameterError, match=f"engine '{engine}' can't train with layers=3"):
            fitted(small, training, engine=engine)


def test_residuals_and_norms_are_refused_where_no_model_has_them(small: ge.Graph) -> None:
    tuned = ge.Training(epochs=2, layers=3, residual=True, norm="layer")
    for engine in ("cpu", "cuda"):
        told = f"engine '{engine}' can't train with layers=3, residual=True, norm='layer'"
        with pytest.raises(ParameterError, match=told):
            fitted(small, tuned, engine=engine)
    for model, training in (
        ("sage", ge.Training(residual=True)),
        ("mlp", ge.Training(norm="batch")),
        ("rgcn", ge.Training(norm="batch")),
    ):
        with pytest.raises(ParameterError, match=rf"of Training is for .*Got model '{model}'"):
            fitted(small, training, model=model)
    with pytest.raises(ParameterError, match="'norm' of Training must be 'none'"):
        ge.Training(norm="instance")
    with pytest.raises(ParameterError, match="exclude each other"):
        ge.ModelSpec("gcn", batch_norm=True, layer_norm=True)
    # The kernels have gin's batch norm, and gat's residual.
    for model, training in (
        ("gin", ge.Training(epochs=2, norm="batch")),
        ("gat", ge.Training(epochs=2, residual=False)),
    ):
        assert fitted(small, training, model=model, engine="cpu").engine_ == "cpu"


def test_the_guideline_tries_the_model_that_is_going_to_be_trained(demo: ge.Graph) -> None:
    training = ge.Training(epochs=2, layers=3, hidden=4)
    eraser = fitted(demo, training, partition="auto", global_expert=False)
    assert eraser.shards_[0].tensors["conv3.bias"].shape == (demo.num_classes,)


def test_functions_that_return_something_else_are_told(small: ge.Graph) -> None:
    with pytest.raises(TrainingError, match="must be a function from parameters to a torch"):
        fitted(small, ge.Training(epochs=1, optimizer=list))  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="must return one number as a tensor"):
        fitted(small, ge.Training(epochs=1, loss=lambda scores, labels: scores))


# -- numbers that are none ------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["pyg", "cpu"])
def test_a_shard_that_diverges_is_refused_and_nothing_changes(small: ge.Graph, engine: str) -> None:
    wild = ge.Training(epochs=40, learning_rate=1e20)
    with pytest.raises(TrainingError, match=r"shard \d: .*diverged: .* after 40 epochs") as caught:
        fitted(small, wild, engine=engine)
    assert "learning_rate" in str(caught.value.hint)


def test_a_request_that_makes_a_shard_diverge_changes_nothing(small: ge.Graph) -> None:
    def explosive(in_channels: int, out_channels: int) -> torch.nn.Module:
        return Explosive(in_channels, out_channels)

    eraser = fitted(small, epochs=1, model=explosive, num_shards=2, global_expert=False)
    before, graph = weights(eraser), eraser.graph_
    Explosive.explode = True
    try:
        with pytest.raises(TrainingError, match="diverged"):
            eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    finally:
        Explosive.explode = False
    assert weights(eraser) == before
    assert eraser.graph_ is graph
    assert len(eraser.receipts_) == 0


class Explosive(TwoHops):
    explode = False

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        scale = float("nan") if self.explode and self.training else 1.0
        return super().forward(x, edge_index) * scale


class Dividing(TwoHops):
    """Finite weights, scores that are not."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return super().forward(x, edge_index) / (1.0 if self.training else 0.0)


@pytest.mark.parametrize("aggregation", ["learned", "mean", "routed"])
def test_scores_that_are_not_finite_are_an_error(small: ge.Graph, aggregation: str) -> None:
    own = ge.CustomModel(Dividing, hops="all")
    with pytest.raises(GraphEraserError, match="Dividing gives scores that are not finite"):
        fitted(small, model=own, epochs=1, aggregation=aggregation).predict(small.ids[:3])


def enlarged(graph: ge.Graph, factor: float) -> ge.Graph:
    return ge.Graph.from_arrays(
        graph.x * np.float32(factor),
        graph.ids[graph.edge_index],
        graph.y,
        ids=graph.ids,
        train=graph.train_nodes,
        test=graph.test_nodes,
        num_classes=graph.num_classes,
    )


@pytest.mark.parametrize("model", ["gcn", "closed-form", "mlp"])
def test_features_beyond_what_training_can_square_are_refused(model: str) -> None:
    graph = small_graph(n=40)
    for sign in (1, -1):
        with pytest.raises(GraphError, match=r"at most 1e\+12 .* at node \d+") as caught:
            ge.GraphEraser(model, num_shards=2).fit(enlarged(graph, sign * 1e30))
        assert "scale" in str(caught.value.hint)
    with pytest.raises(GraphError, match=r"at most 1e\+12"):
        ge.LinkEraser().fit(enlarged(graph, 1e30))


@pytest.mark.parametrize("model", ["gcn", "sage", "gat", "gin", "mlp", "gin:paper", "closed-form"])
@pytest.mark.parametrize("aggregation", ["routed", "learned"])
def test_features_as_large_as_is_allowed_give_finite_answers(model: str, aggregation: str) -> None:
    graph = enlarged(small_graph(n=40), 1e12 / 3)
    if model == "closed-form" and aggregation == "learned":
        return
    eraser = ge.GraphEraser(model, num_shards=2, aggregation=aggregation, epochs=30).fit(graph)
    assert np.isfinite(eraser.predict_proba(graph.ids)).all()


def test_a_node_with_features_that_are_too_large_is_not_added(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    with pytest.raises(GraphError, match=r"found 1e\+30 at node 1000"):
        eraser.insert(1000, [1e30] * 12, 1, small.ids[:2])
    with pytest.raises(GraphError, match=r"at most 1e\+12"):
        eraser.predict_new([[1e30] * 12], [small.ids[:2]])
    with pytest.raises(GraphError, match=r"found -1e\+30"):
        eraser.update(ge.SetFeatures(small.test_nodes[:1], [[-1e30] * 12]))
    assert eraser.graph_ == small
    assert 1000 not in eraser.graph_.ids
    assert len(eraser.receipts_) == 0
