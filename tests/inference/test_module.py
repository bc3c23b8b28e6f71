"""A user's own module: what PyG gives on the whole graph, from no more of it than is needed."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation import LearnedAggregator
from grapheraser.engines import ShardTask, ShardWeights, TrainingConfig, reference
from grapheraser.errors import GraphEraserError
from grapheraser.graph import Request
from grapheraser.inference.module import module_posteriors
from tests.inference.own_modules import (
    GLOBAL,
    LOCAL,
    Alone,
    Factory,
    GlobalMean,
    cached_gcn,
    gat,
    sage,
)
from tests.strategies import small_graph

SOME = np.array([7, 301, 7, 150])


@pytest.fixture(scope="module")
def graph() -> ge.Graph:
    """Sparse and large: the surroundings of a node are a small part of it."""
    return small_graph(1, n=400, ties=1)


def trained(model: ge.CustomModel, graph: ge.Graph, *, shards: int = 1) -> list[ShardWeights]:
    part = graph.subgraph(graph.train_nodes[:150])
    config = TrainingConfig(model, epochs=3)
    return [reference.train_shard(ShardTask(i, part, seed=i), config) for i in range(shards)]


def on_the_whole_graph(
    factory: Factory, weights: ShardWeights, graph: ge.Graph
) -> NDArray[np.float32]:
    """Posteriors ``[num_nodes, num_classes]`` without the package's help."""
    with torch.random.fork_rng(), torch.no_grad():
        module = factory(graph.num_features, graph.num_classes)
        state = {name: torch.tensor(value) for name, value in weights.tensors.items()}
        module.load_state_dict(state)
        data = graph.to_pyg()
        torch.manual_seed(0)
        scores = module.eval()(data.x, data.edge_index)
        return np.asarray(torch.softmax(scores, dim=1))


@contextmanager
def rows_seen() -> Iterator[list[int]]:
    """The number of nodes in every pass through a module that takes a graph."""
    rows: list[int] = []

    def look(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        if len(inputs) > 1 and inputs[1].ndim == 2:
            rows.append(len(inputs[0]))

    hook = torch.nn.modules.module.register_module_forward_pre_hook(look)
    try:
        yield rows
    finally:
        hook.remove()


@pytest.mark.parametrize("factory", LOCAL)
def test_posteriors_are_those_of_the_whole_graph(graph: ge.Graph, factory: Factory) -> None:
    model = ge.CustomModel(factory)
    (weights,) = trained(model, graph)
    found = module_posteriors(model, [weights], graph, SOME)
    expected = on_the_whole_graph(factory, weights, graph)
    np.testing.assert_allclose(found[0], expected[SOME], atol=1e-6)
    with rows_seen() as rows:
        module_posteriors(model, [weights], graph, SOME)
    assert max(rows) < 0.4 * graph.num_nodes


@pytest.mark.parametrize("factory", LOCAL)
def test_many_nodes_are_evaluated_on_the_whole_graph_at_once(
    graph: ge.Graph, factory: Factory
) -> None:
    model = ge.CustomModel(factory)
    (weights,) = trained(model, graph)
    everybody = np.arange(graph.num_nodes)
    found = module_posteriors(model, [weights], graph, everybody)
    np.testing.assert_array_equal(found[0], on_the_whole_graph(factory, weights, graph))


@pytest.mark.parametrize("factory", GLOBAL)
def test_a_module_that_looks_elsewhere_gets_the_whole_graph_and_a_warning(
    graph: ge.Graph, factory: Factory
) -> None:
    model = ge.CustomModel(factory)
    (weights,) = trained(model, graph)
    with pytest.warns(UserWarning, match=r"evaluated on the whole graph.*hops='all'"):
        found = module_posteriors(model, [weights], graph, SOME)
    expected = on_the_whole_graph(factory, weights, graph)
    np.testing.assert_array_equal(found[0], expected[SOME])


def test_hops_that_are_given_are_not_looked_for(graph: ge.Graph) -> None:
    model = ge.CustomModel(sage, hops=2)
    (weights,) = trained(model, graph)
    with rows_seen() as rows:
        found = module_posteriors(model, [weights], graph, SOME)
    assert len(set(rows)) == 1
    assert rows[0] < 0.4 * graph.num_nodes
    expected = on_the_whole_graph(sage, weights, graph)
    np.testing.assert_allclose(found[0], expected[SOME], atol=1e-6)


def test_whoever_wants_the_whole_graph_gets_it_without_a_warning(graph: ge.Graph) -> None:
    model = ge.CustomModel(GlobalMean, hops="all")
    (weights,) = trained(model, graph)
    found = module_posteriors(model, [weights], graph, SOME)
    expected = on_the_whole_graph(GlobalMean, weights, graph)
    np.testing.assert_array_equal(found[0], expected[SOME])


@pytest.mark.parametrize("factory", [sage, GlobalMean])
def test_too_few_hops_are_noticed(graph: ge.Graph, factory: Factory) -> None:
    model = ge.CustomModel(factory, hops=1)
    (weights,) = trained(model, graph)
    with pytest.warns(UserWarning, match="looks further than hops=1"):
        found = module_posteriors(model, [weights], graph, SOME)
    expected = on_the_whole_graph(factory, weights, graph)
    np.testing.assert_array_equal(found[0], expected[SOME])


class Picky(Alone):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        if x.isnan().any():
            raise ValueError("no NaN, please")
        return super().forward(x, edge_index)


@pytest.mark.parametrize("hops", [0, "auto"])
def test_a_module_that_fails_on_surroundings_gets_the_whole_graph(
    graph: ge.Graph, hops: int | str
) -> None:
    model = ge.CustomModel(Picky, hops=hops)
    (weights,) = trained(model, graph)
    with pytest.warns(UserWarning, match="it failed on .* no NaN, please"):
        found = module_posteriors(model, [weights], graph, SOME)
    expected = on_the_whole_graph(Picky, weights, graph)
    np.testing.assert_array_equal(found[0], expected[SOME])


def test_what_a_module_raises_on_the_whole_graph_is_raised(graph: ge.Graph) -> None:
    class Broken(Alone):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            if not self.training:
                raise ValueError("only in training")
            return super().forward(x, edge_index)

    model = ge.CustomModel(Broken)
    weights = trained(model, graph)
    with pytest.raises(ValueError, match="only in training"):
        module_posteriors(model, weights, graph, SOME)


def test_weights_that_are_no_numbers_are_an_error(graph: ge.Graph) -> None:
    model = ge.CustomModel(sage, hops=2)
    (weights,) = trained(model, graph)
    name = "second.lin_l.weight"
    broken = np.full_like(weights.tensors[name], np.nan)
    weights = ShardWeights(weights.columns, {**weights.tensors, name: broken})
    with pytest.raises(GraphEraserError, match="not finite"):
        module_posteriors(model, [weights], graph, SOME)


# -- what is kept ---------------------------------------------------------------------------------


class Counted:
    """A factory that counts the modules that it has built, and knows those that live."""

    def __init__(self, factory: Factory) -> None:
        self.factory, self.built = factory, list[weakref.ref[torch.nn.Module]]()

    def __call__(self, inputs: int, classes: int) -> torch.nn.Module:
        module = self.factory(inputs, classes)
        self.built.append(weakref.ref(module))
        return module

    @property
    def living(self) -> int:
        gc.collect()
        return sum(ref() is not None for ref in self.built)


def test_a_module_is_built_once_and_goes_with_its_weights(graph: ge.Graph) -> None:
    factory = Counted(sage)
    model = ge.CustomModel(factory)
    weights = trained(model, graph, shards=3)
    factory.built.clear()
    for positions in (SOME, SOME[:1], np.arange(graph.num_nodes)):
        module_posteriors(model, weights, graph, positions)
    assert len(factory.built) == factory.living == 3
    del weights[1]
    assert factory.living == 2


def test_only_the_shards_asked_are_built(graph: ge.Graph) -> None:
    factory = Counted(sage)
    model = ge.CustomModel(factory)
    weights = trained(model, graph, shards=3)
    factory.built.clear()
    found = module_posteriors(model, weights[1:2], graph, SOME)
    assert len(factory.built) == 1
    assert np.array_equal(found[0], module_posteriors(model, weights, graph, SOME)[1])


def test_another_factory_for_the_same_weights_is_another_module(graph: ge.Graph) -> None:
    class Doubled(torch.nn.Linear):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return 2 * super().forward(x)

    class Plain(torch.nn.Linear):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return super().forward(x)

    (weights,) = trained(ge.CustomModel(Plain), graph)
    for factory in (Plain, Doubled):
        found = module_posteriors(ge.CustomModel(factory), [weights], graph, SOME)
        expected = on_the_whole_graph(factory, weights, graph)
        np.testing.assert_allclose(found[0], expected[SOME], atol=1e-6)


class Remembers(torch.nn.Linear):
    """Counts its passes in an attribute, a list or a buffer."""

    counter: torch.Tensor

    def __init__(self, inputs: int, classes: int, where: str) -> None:
        super().__init__(inputs, classes)
        self.register_buffer("counter", torch.zeros(()))
        self.where, self.count, self.passes = where, 0, list[int]()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        h = super().forward(x)
        scores = h * (1 + self.count + len(self.passes) + self.counter)
        if not self.training and self.where == "attribute":
            self.count += 1
        elif not self.training and self.where == "list":
            self.passes.append(1)
        elif not self.training:
            self.counter += 1
        return scores


@pytest.mark.parametrize(
    "factory",
    [cached_gcn, *(partial(Remembers, where=where) for where in ("attribute", "list", "buffer"))],
)
def test_what_a_module_remembers_of_a_pass_has_no_part_in_the_next(
    graph: ge.Graph, factory: Factory
) -> None:
    model = ge.CustomModel(factory)
    (weights,) = trained(model, graph)
    rest = graph.without(ge.Nodes(graph.ids[SOME[:1]]))
    for current in (graph, rest, graph):
        for positions in (SOME, SOME[1:2], np.arange(current.num_nodes)):
            found = module_posteriors(model, [weights], current, positions)
            expected = on_the_whole_graph(factory, weights, current)
            np.testing.assert_allclose(found[0], expected[positions], atol=1e-6)


def test_nothing_is_asked_of_a_module_for_no_nodes(graph: ge.Graph) -> None:
    factory = Counted(sage)
    model = ge.CustomModel(factory)
    weights = trained(model, graph)
    factory.built.clear()
    found = module_posteriors(model, weights, graph, np.zeros(0, dtype=np.int64))
    assert found.shape == (1, 0, graph.num_classes)
    assert not factory.built


# -- exactness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("factory", [sage, gat, cached_gcn])
def test_unlearned_equals_fitted_afresh_whatever_was_predicted_between(
    graph: ge.Graph, factory: Factory
) -> None:
    """The sample's posteriors, computed on their surroundings, are part of the state."""
    learned = LearnedAggregator(sample=5)
    eraser = ge.GraphEraser(model=factory, num_shards=3, epochs=2, aggregation=learned).fit(graph)
    with rows_seen() as rows:
        for nodes in (graph.test_nodes[:1], graph.test_nodes, graph.test_nodes[5:8]):
            eraser.predict(nodes)
    assert min(rows) < 0.2 * graph.num_nodes
    requests: list[Request] = [ge.Nodes(graph.train_nodes[3:5]), ge.Edges([tuple(graph.edges[-1])])]
    for request in requests:
        eraser.unlearn(request)
        eraser.predict(graph.test_nodes[:2])
    fresh = ge.GraphEraser(**eraser.get_params()).fit(
        graph.without(requests), partition=eraser.partition_
    )
    found, expected = eraser._snapshot.state.tensors(), fresh._snapshot.state.tensors()
    assert dict(found).keys() == dict(expected).keys()
    for name, tensor in dict(expected).items():
        np.testing.assert_array_equal(dict(found)[name], tensor)
    some = graph.test_nodes[10:13]
    np.testing.assert_array_equal(eraser.predict_proba(some), fresh.predict_proba(some))


def test_hops_are_kept_with_a_run(graph: ge.Graph, tmp_path: Path) -> None:
    eraser = ge.GraphEraser(model=ge.CustomModel(GlobalMean, hops="all"), num_shards=2, epochs=1)
    eraser.fit(graph).save(tmp_path)
    loaded = ge.GraphEraser.load(tmp_path, model=GlobalMean)
    some = graph.test_nodes[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (loaded.predict_proba(some) == eraser.predict_proba(some)).all()


def test_hops_have_no_part_in_training(graph: ge.Graph) -> None:
    model = ge.CustomModel(sage)
    first, second = (trained(replace(model, hops=hops), graph)[0] for hops in ("auto", 5))
    assert first.digest == second.digest
