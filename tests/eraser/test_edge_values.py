"""What edges carry is used by the model, or refused, or warned about."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GCNConv, GraphSAGE, Sequential

import grapheraser as ge
from grapheraser.engines.reference import reproducible
from grapheraser.errors import GraphError, ParameterError
from grapheraser.models import KINDS
from grapheraser.models.spec import CLOSED_FORM
from tests.strategies import TwoHops, Weighing, small_graph, with_edge_values


class Weighted(nn.Module):
    """Two convolutions that read weights, as anybody would write them."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(in_channels, 16), GCNConv(16, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        h = F.relu(self.first(x, edge_index, edge_weight))
        scores: Tensor = self.second(h, edge_index, edge_weight)
        return scores


def telling_weights() -> Data:
    """As many neighbours of the other class as of the own: only weights tell them apart."""
    rng = np.random.default_rng(3)
    n = 400
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 8)) + 0.2 * (2 * y[:, None] - 1)
    pairs = np.unique(np.sort(rng.integers(n, size=(5 * n, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    weights = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1.0, 0.02).astype(np.float32)
    test = rng.random(n) < 0.3
    return Data(
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(y),
        edge_index=torch.from_numpy(np.concatenate([pairs, pairs[:, ::-1]]).T.copy()),
        edge_weight=torch.from_numpy(np.concatenate([weights, weights])),
        train_mask=torch.from_numpy(~test),
        test_mask=torch.from_numpy(test),
    )


@functools.cache
def plain_pyg(*, weighted: bool) -> float:
    """Accuracy of the module in a loop of its own."""
    data = telling_weights()
    weights = (data.edge_weight,) if weighted else ()
    with reproducible(0):
        module = Weighted(data.num_features, 2)
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=0.001)
        for _ in range(100):
            optimizer.zero_grad()
            scores = module(data.x, data.edge_index, *weights)
            loss = F.cross_entropy(scores[data.train_mask], data.y[data.train_mask])
            torch.autograd.backward(loss)
            optimizer.step()
        with torch.no_grad():
            found = module.eval()(data.x, data.edge_index, *weights).argmax(dim=1)
    return float((found == data.y)[data.test_mask].float().mean())


def pygs_gcn(in_channels: int, out_channels: int) -> nn.Module:
    return GCN(in_channels, 16, 2, out_channels)


def sequential(in_channels: int, out_channels: int) -> nn.Module:
    layer = GCNConv(in_channels, out_channels)
    return Sequential("x, edge_index, edge_weight", [(layer, "x, edge_index, edge_weight -> x")])


MODELS = [(Weighted, "auto"), ("gcn", "pyg"), ("gcn", "cpu"), (pygs_gcn, "auto")]


@pytest.mark.parametrize(("model", "engine"), MODELS)
def test_one_shard_scores_as_plain_pyg_does_with_weights(model: Any, engine: str) -> None:
    with_weights = plain_pyg(weighted=True)
    assert with_weights - plain_pyg(weighted=False) > 0.2
    eraser = ge.GraphEraser(model, num_shards=1, engine=engine).fit(telling_weights())
    assert eraser.score(eraser.graph_.test_nodes) >= with_weights - 0.01


@pytest.mark.parametrize(("model", "engine"), [*MODELS, (sequential, "auto")])
def test_a_forgotten_weighted_edge_leaves_what_a_fresh_fit_gives(model: Any, engine: str) -> None:
    graph = ge.Graph.from_pyg(telling_weights())
    arguments = {"model": model, "engine": engine, "num_shards": 3, "epochs": 3}
    eraser = ge.GraphEraser(**arguments).fit(graph)
    request = ge.Edges(graph.training_graph.edges[:2])
    eraser.unlearn(request)
    fresh = ge.GraphEraser(**arguments).fit(graph.without(request))
    ids = eraser.graph_.ids
    assert eraser.predict_proba(ids).tobytes() == fresh.predict_proba(ids).tobytes()
    assert eraser.verify().identical


def test_a_module_gets_the_edges_as_they_are_directed() -> None:
    seen: list[dict[str, Tensor]] = []

    class Looking(Weighing):
        def forward(
            self,
            x: Tensor,
            edge_index: Tensor,
            edge_weight: Tensor | None = None,
            edge_attr: Tensor | None = None,
        ) -> Tensor:
            assert edge_weight is not None
            assert edge_attr is not None
            seen.append({"i": edge_index, "w": edge_weight, "a": edge_attr})
            return super().forward(x, edge_index, edge_weight, edge_attr)

    graph = with_edge_values(small_graph(), columns=2, directed=True)
    training, whole = graph.training_graph.to_pyg(), graph.to_pyg()
    eraser = ge.GraphEraser(ge.CustomModel(Looking, hops="all"), num_shards=1, epochs=1).fit(graph)
    eraser.predict(graph.ids)
    for given, data in ((seen[0], training), (seen[-1], whole)):
        assert torch.equal(given["i"], data.edge_index)
        assert torch.equal(given["w"], data.edge_weight)
        assert torch.equal(given["a"], data.edge_attr)
    assert whole.is_directed()


@pytest.mark.parametrize("model", [kind for kind in KINDS if kind != "gcn"] + list(CLOSED_FORM))
def test_other_built_in_models_refuse_weights_and_directions_with_the_ways_out(model: str) -> None:
    plain = small_graph()
    eraser = ge.GraphEraser(model, num_shards=2, epochs=1)
    with pytest.raises(GraphError, match=f"'{model}' can't use the 'edge_weight'") as caught:
        eraser.fit(with_edge_values(plain))
    assert "graph.without_weights(), or use model='gcn'" in str(caught.value.hint)
    with pytest.raises(GraphError, match="directions of the edges") as caught:
        eraser.fit(with_edge_values(plain, weighted=False, directed=True))
    assert "graph.undirected()" in str(caught.value.hint)
    if model not in CLOSED_FORM:
        eraser.fit(with_edge_values(plain, directed=True).undirected().without_weights())


def test_gcn_refuses_features_of_edges_and_negative_weights() -> None:
    plain = small_graph()
    with pytest.raises(GraphError, match="'gcn' can't use the 'edge_attr'") as caught:
        ge.GraphEraser("gcn").fit(with_edge_values(plain, columns=2))
    assert "graph.without_edge_attr(), or use a module of your own" in str(caught.value.hint)
    data = with_edge_values(plain).to_pyg()
    data.edge_weight *= -1
    graph = ge.Graph.from_pyg(data, num_classes=3)
    with pytest.raises(GraphError, match="must not be negative"):
        ge.GraphEraser("gcn").fit(graph)
    ge.GraphEraser(ge.CustomModel(Weighing, hops=2), num_shards=2, epochs=1).fit(graph)


def test_an_edge_that_the_model_cannot_use_is_refused_and_changes_nothing() -> None:
    graph = with_edge_values(small_graph())
    eraser = ge.GraphEraser("gcn", num_shards=2, epochs=1).fit(graph)
    row, near = graph.x[[0]], graph.ids[:2]
    for weights, message in (([1, -1], "negative"), ([1, np.nan], "finite"), (None, "needs one")):
        with pytest.raises(GraphError, match=message):
            eraser.insert(1000, row, 1, near, edge_weight=weights)
    assert eraser.graph_ == graph
    assert not eraser.receipts_
    eraser.insert(1000, row, 1, near, edge_weight=[1, 2])
    assert eraser.verify().identical


@pytest.mark.parametrize("model", [TwoHops, lambda i, o: GraphSAGE(i, 4, 2, o)])
def test_what_a_module_ignores_is_warned_of_once(model: Any) -> None:
    graph = with_edge_values(small_graph())
    own = ge.CustomModel(model, hops=2)
    with pytest.warns(UserWarning, match="ignores the 'edge_weight' of the graph") as caught:
        eraser = ge.GraphEraser(own, num_shards=2, epochs=1).fit(graph)
    assert len(caught) == 1
    assert "graph.without_weights()" in str(caught[0].message)
    eraser.unlearn(ge.Edges(graph.edges[:1]))
    ge.GraphEraser(own, num_shards=2, epochs=1).fit(graph.without_weights())


def test_a_module_that_needs_what_the_graph_does_not_have_is_refused_at_fit() -> None:
    class Needing(TwoHops):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(x, edge_index * (edge_weight > -1))

    plain = small_graph()
    with pytest.raises(ParameterError, match="needs 'edge_weight', which graph 'small'"):
        ge.GraphEraser(Needing, num_shards=2, epochs=1).fit(plain)
    model = ge.CustomModel(Needing, hops=2)
    ge.GraphEraser(model, num_shards=2, epochs=1).fit(with_edge_values(plain))


def attention(in_channels: int, out_channels: int) -> nn.Module:
    return GAT(in_channels, 4, 2, out_channels, edge_dim=2)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("factory", [Weighing, attention])
def test_posteriors_are_those_of_the_module_on_the_whole_graph(
    factory: Any, directed: bool
) -> None:
    plain = small_graph(1, n=300, ties=1)
    weighted = factory is Weighing
    graph = with_edge_values(plain, weighted=weighted, columns=2, directed=directed)
    eraser = ge.GraphEraser(factory, num_shards=1, epochs=2).fit(graph)
    module, data = factory(graph.num_features, graph.num_classes).eval(), graph.to_pyg()
    state = eraser.shards_[0].tensors
    module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    named = {"edge_weight": data.edge_weight} if weighted else {}
    with torch.no_grad():
        scores = module(data.x, data.edge_index, **named, edge_attr=data.edge_attr)
    expected = torch.softmax(scores, dim=1).numpy()
    some = np.array([3, 100, 250])
    np.testing.assert_allclose(eraser.predict_proba(graph.ids[some]), expected[some], atol=1e-6)
