"""GraphEraser's contract: scikit-learn's conventions, and what each request does."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

import grapheraser as ge
from grapheraser.engines import ShardTask, TrainingConfig, resolve_engine
from grapheraser.errors import (
    GraphError,
    InputError,
    NotFittedError,
    ParameterError,
    PartitionError,
    TrainingError,
    UnknownNodeError,
)
from grapheraser.graph import TRAIN, Request
from grapheraser.models import KINDS, resolve_model
from grapheraser.seeding import derive
from grapheraser.store import shard_digest
from tests.graph.oracle import plain
from tests.strategies import TwoHops, engines


def fitted(graph: ge.Graph, **changes: Any) -> ge.GraphEraser:
    return ge.GraphEraser(**{"num_shards": 3, "epochs": 3, **changes}).fit(graph)


@pytest.fixture
def eraser(small: ge.Graph) -> ge.GraphEraser:
    return fitted(small)


# -- scikit-learn's conventions -------------------------------------------------------------------


def test_the_constructor_only_stores_its_arguments() -> None:
    nonsense: dict[str, Any] = {"num_shards": -3, "model": object(), "epochs": "many"}
    eraser = ge.GraphEraser(**nonsense)
    for name, value in nonsense.items():
        assert getattr(eraser, name) is value
    assert set(vars(eraser)) - {"_turn"} == set(eraser.get_params())


def test_get_and_set_params() -> None:
    eraser = ge.GraphEraser(num_shards=7)
    params = eraser.get_params()
    assert params["num_shards"] == 7
    assert params["model"] == "gcn"
    assert eraser.set_params(model="sage", seed=3) is eraser
    assert (eraser.model, eraser.seed) == ("sage", 3)
    assert ge.GraphEraser(**eraser.get_params()).get_params() == eraser.get_params()
    with pytest.raises(ParameterError, match=r"no parameter 'shards'\. Choose from: model, "):
        eraser.set_params(shards=3)


def test_scikit_learn_can_clone_it(small: ge.Graph) -> None:
    eraser = fitted(small, seed=4, model=ge.ModelSpec("gcn", hidden=4))
    copy = clone(eraser)
    assert copy.get_params() == eraser.get_params()
    with pytest.raises(NotFittedError):
        _ = copy.graph_


def test_repr_shows_what_differs_from_the_defaults() -> None:
    assert repr(ge.GraphEraser()) == "GraphEraser()"
    assert repr(ge.GraphEraser(num_shards=3)) == "GraphEraser(num_shards=3)"


def test_fit_returns_self_and_sets_fitted_attributes(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=1, global_expert=False)
    assert eraser.fit(small) is eraser
    assert eraser.graph_ == small
    assert list(eraser.shards_) == [0, 1, 2]
    assert eraser.partition_.sizes.sum() == len(small.train_nodes)
    assert eraser.receipts_ == ()
    assert eraser.engine_ in engines()
    assert eraser.aggregator_.tensors == {}


def test_before_fit_everything_says_not_fitted(tmp_path: Path) -> None:
    eraser = ge.GraphEraser()
    uses: list[Any] = [
        lambda: eraser.predict([0]),
        lambda: eraser.predict_proba([0]),
        lambda: eraser.score([0]),
        lambda: eraser.plan(ge.Nodes([0])),
        lambda: eraser.unlearn(ge.Nodes([0])),
        lambda: eraser.insert(0, [1.0], 0, []),
        eraser.verify,
        lambda: eraser.save(tmp_path / "run"),
    ]
    uses += [
        lambda name=name: getattr(eraser, name)
        for name in ("graph_", "partition_", "shards_", "aggregator_", "receipts_", "engine_")
    ]
    for use in uses:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            use()
    assert not (tmp_path / "run").exists()
    assert not hasattr(eraser, "graph_"), "scikit-learn's check_is_fitted asks this way"


def test_changing_a_parameter_after_fit_changes_no_fitted_state(
    eraser: ge.GraphEraser, small: ge.Graph
) -> None:
    twin = fitted(small)
    eraser.set_params(model="mlp", epochs=50, seed=9, aggregation="majority")
    node = ge.Nodes(small.train_nodes[:1])
    assert eraser.unlearn(node).shards == twin.unlearn(node).shards
    assert eraser.verify().identical


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no shards": (
        {"num_shards": 0, "partition": "random"},
        r"'num_shards' of \w+ must be an int in \[1, 30\]\. Got 0",
    ),
    "more shards than nodes": (
        {"num_shards": 31, "partition": "random"},
        r"in \[1, 30\]\. Got 31",
    ),
    "too many shards": ({"num_shards": 10**7}, r"in \[1, 1048576\]\. Got 10000000"),
    "engine as a list": ({"engine": []}, r"unknown engine \[\]"),
    "half a shard": ({"num_shards": 2.5}, "'num_shards' .* Got 2.5"),
    "no epochs": ({"epochs": 0}, "'epochs' .* Got 0"),
    "epochs as text": ({"epochs": "3"}, "'epochs'"),
    "seed as text": ({"seed": "0"}, "'seed' of GraphEraser"),
    "unknown model": ({"model": "bert"}, "unknown model 'bert'"),
    "unknown partition": ({"partition": "magic"}, "unknown partition method 'magic'"),
    "unknown aggregation": ({"aggregation": "magic"}, "unknown aggregation 'magic'"),
    "unknown executor": ({"executor": "magic"}, "unknown executor 'magic'"),
    "unknown engine": ({"engine": "magic"}, "unknown engine 'magic'"),
    "unknown device": ({"device": "abacus"}, "'device' of GraphEraser"),
    "gamma": ({"gamma": 2.0}, r"'gamma' .* in \[0, 1\]"),
    "cpu engine for a module": ({"model": TwoHops, "engine": "cpu"}, "built-in models only"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_argument_is_told_at_fit(small: ge.Graph, case: str) -> None:
    changes, message = BAD[case]
    with pytest.raises(ParameterError, match=message):
        fitted(small, **changes)


def test_a_graph_without_anything_to_train_on_is_refused(small: ge.Graph) -> None:
    nothing = small.subgraph(small.test_nodes)
    with pytest.raises(GraphError, match="no training nodes"):
        fitted(nothing)
    with pytest.raises(GraphError, match="no nodes"):
        fitted(small.subgraph([]))
    bare = ge.Graph.from_arrays(np.zeros((4, 0)), [[0], [1]], [0, 1, 0, 1])
    with pytest.raises(GraphError, match="no feature columns"):
        fitted(bare)


# -- fitting and predicting -----------------------------------------------------------------------


def test_pyg_data_goes_into_fit_and_is_not_changed(small: ge.Graph) -> None:
    data = small.to_pyg()
    before = {key: value.clone() for key, value in data.to_dict().items()}
    eraser = fitted(data)
    assert eraser.graph_ == small
    assert all((data[key] == value).all() for key, value in before.items())


def test_fit_leaves_the_graph_as_it_was(small: ge.Graph) -> None:
    before = plain(small)
    eraser = fitted(small)
    eraser.unlearn(ge.Nodes(small.train_nodes[:2]))
    assert plain(small) == before


def test_fitting_again_starts_over(small: ge.Graph) -> None:
    eraser = fitted(small)
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    eraser.fit(small)
    assert eraser.receipts_ == ()
    assert eraser.graph_ == small
    assert eraser.verify().identical


@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_are_probabilities_by_node_id(small: ge.Graph, kind: str) -> None:
    eraser = fitted(small, model=kind)
    posteriors = eraser.predict_proba(small.ids)
    assert posteriors.shape == (40, 3)
    assert posteriors.dtype == np.float32
    np.testing.assert_allclose(posteriors.sum(axis=1), 1, atol=1e-5)
    assert (posteriors >= 0).all()
    assert (eraser.predict(small.ids) == posteriors.argmax(axis=1)).all()
    picks = small.ids[[7, 3, 7]]
    assert eraser.predict_proba(picks).tobytes() == posteriors[[7, 3, 7]].tobytes()


def test_score_is_the_share_of_right_answers(eraser: ge.GraphEraser, small: ge.Graph) -> None:
    right = eraser.predict(small.test_nodes) == small.y[small.positions(small.test_nodes)]
    assert eraser.score(small.test_nodes) == pytest.approx(right.mean())


def test_asking_for_nobody_and_for_strangers(eraser: ge.GraphEraser) -> None:
    assert eraser.predict_proba([]).shape == (0, 3)
    assert eraser.predict([]).shape == (0,)
    with pytest.raises(UnknownNodeError, match="node 999"):
        eraser.predict([999])
    with pytest.raises(UnknownNodeError, match="node 'a'"):
        eraser.predict(["a"])
    with pytest.raises(ParameterError, match="integers"):
        eraser.predict([0.5])
    with pytest.raises(GraphError, match="no nodes to score"):
        eraser.score([])


def test_nodes_without_a_label_can_be_predicted_but_not_scored(small: ge.Graph) -> None:
    y = small.y.copy()
    y[:2] = -1
    graph = ge.Graph.from_arrays(
        small.x, small.edges.T, y, ids=small.ids, num_classes=3, each_edge_once=True
    )
    eraser = fitted(graph)
    assert eraser.predict(graph.ids[:2]).shape == (2,)
    with pytest.raises(GraphError, match="2 of the nodes have no label"):
        eraser.score(graph.ids[:5])


def test_one_shard_is_training_from_scratch(small: ge.Graph) -> None:
    eraser = fitted(small, num_shards=1, seed=5)
    model = resolve_model("gcn")
    engine = resolve_engine("auto", TrainingConfig(model), "cpu")
    task = ShardTask(0, small.training_graph, derive(5, "train", 0))
    scratch = engine.train(task, TrainingConfig(model, epochs=3))
    assert eraser.shards_[0].digest == scratch.digest


def test_another_seed_is_another_model(small: ge.Graph) -> None:
    first, second = (fitted(small, seed=seed, partition="hash") for seed in (0, 1))
    assert first.shards_[0].digest != second.shards_[0].digest
    assert fitted(small, seed=1, partition="hash").shards_[0].digest == second.shards_[0].digest


# -- what may stand in for a name -----------------------------------------------------------------


class Last:
    """An aggregator of the user's own: whatever the last shard says."""

    name = "last"

    def fit(self, ensemble: Any) -> Last:
        return self

    def refit(self, fitted: Any, ensemble: Any, change: Any) -> Last:
        return self

    def restore(self, tensors: Any) -> Last:
        return self

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        return {}

    def predict_proba(self, ensemble: Any, positions: Any) -> NDArray[np.float32]:
        posteriors: NDArray[np.float32] = ensemble.posteriors(positions)[-1]
        return posteriors


def test_a_module_factory_works_wherever_a_name_works(small: ge.Graph) -> None:
    learning = ("mean", "learned", "routed")
    for model, aggregation in product((TwoHops, ge.CustomModel(TwoHops, lr=0.1)), learning):
        eraser = fitted(small, model=model, aggregation=aggregation, sample="all")
        assert eraser.engine_ == "pyg"
        assert eraser.predict(small.test_nodes).shape == (10,)
        eraser.unlearn([ge.Nodes(small.train_nodes[:1]), ge.Edges([tuple(small.edges[-1])])])
        assert eraser.verify().identical


def test_a_module_that_does_not_fit_is_refused(small: ge.Graph, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"must return \[nodes, classes\]"):
        fitted(small, model=lambda inputs, classes: TwoHops(inputs, classes + 2))
    fitted(small, model=TwoHops).save(tmp_path / "run")
    with pytest.raises(ParameterError, match="not the one that was trained"):
        ge.GraphEraser.load(
            tmp_path / "run", model=lambda inputs, classes: TwoHops(inputs, classes + 2)
        )


def test_a_partition_function_works_wherever_a_name_works(small: ge.Graph) -> None:
    def by_id(graph: ge.Graph, num_shards: int, seed: int) -> NDArray[np.int64]:
        labels: NDArray[np.int64] = (graph.ids + seed) % num_shards
        return labels

    eraser = fitted(small, partition=by_id, seed=1)
    assert (eraser.partition_.labels == (small.train_nodes + 1) % 3).all()
    assert eraser.partition_.method == "by_id"
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    assert eraser.verify().identical


def test_an_aggregator_of_ones_own_works_wherever_a_name_works(small: ge.Graph) -> None:
    eraser = fitted(small, aggregation=Last())
    assert eraser.predict(small.test_nodes).shape == (10,)
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    assert eraser.receipts_[0].aggregation["name"] == "last"


def test_a_given_partition_is_used_and_restricted_to_what_is_left(small: ge.Graph) -> None:
    part = ge.partition_graph(small, "random", num_shards=5, seed=3)
    rest = small.without(ge.Nodes(small.train_nodes[:4]))
    eraser = ge.GraphEraser(epochs=1).fit(rest, partition=part)
    assert eraser.partition_.nodes.tolist() == rest.train_nodes.tolist()
    assert (eraser.partition_.labels == part.shard_of(rest.train_nodes)).all()
    assert eraser.partition_.num_shards == 5


def test_a_partition_that_misses_nodes_is_refused(small: ge.Graph) -> None:
    part = ge.partition_graph(small.subgraph(small.ids[:20]), "random", num_shards=2)
    with pytest.raises(PartitionError, match=r"has no shard for \d+ nodes"):
        ge.GraphEraser(epochs=1).fit(small, partition=part)


# -- forgetting -----------------------------------------------------------------------------------


def test_one_node_of_many_shards_retrains_one(demo: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=20, epochs=2).fit(demo)
    before = dict(eraser.shards_)
    node = int(demo.train_nodes[100])
    receipt = eraser.unlearn(ge.Nodes([node]))
    (shard,) = receipt.retrained
    changed = [s for s in before if eraser.shards_[s] is not before[s]]
    assert changed == [shard]


def test_a_forgotten_node_is_neither_predicted_for_nor_anyones_neighbour(
    eraser: ge.GraphEraser, small: ge.Graph
) -> None:
    hub = int(small.ids[small.degree.argmax()])
    around = small.neighbours(hub)
    before = eraser.predict_proba(around)
    eraser.unlearn(ge.Nodes([hub]))
    with pytest.raises(UnknownNodeError, match=f"node {hub}"):
        eraser.predict([hub])
    assert all(hub not in eraser.graph_.neighbours(node) for node in around)
    assert not np.array_equal(eraser.predict_proba(around), before)


def test_a_test_node_retrains_nothing_and_changes_its_neighbours_posteriors(
    eraser: ge.GraphEraser, small: ge.Graph
) -> None:
    node = next(
        int(n)
        for n in small.test_nodes
        if len(small.neighbours(n)) and small.x[small.positions([n])].nnz
    )
    around, shards = small.neighbours(node), dict(eraser.shards_)
    before = eraser.predict_proba(around)
    receipt = eraser.unlearn(ge.Nodes([node]))
    assert receipt.shards == ()
    assert receipt.details.untrained == 1
    assert all(eraser.shards_[shard] is weights for shard, weights in shards.items())
    assert not np.array_equal(eraser.predict_proba(around), before)
    assert eraser.verify().identical


def test_an_edge_between_shards_retrains_nothing_but_changes_predictions(
    eraser: ge.GraphEraser, small: ge.Graph
) -> None:
    edges = small.edges
    trained = (small.role[small.positions(edges.ravel())] == TRAIN).reshape(-1, 2).all(axis=1)
    ends = eraser.partition_.shard_of(edges[trained].ravel()).reshape(-1, 2)
    edge = tuple(edges[trained][ends[:, 0] != ends[:, 1]][0].tolist())
    before = eraser.predict_proba(edge)
    receipt = eraser.unlearn(ge.Edges([edge]))
    assert receipt.shards == ()
    assert not np.array_equal(eraser.predict_proba(edge), before)
    assert edge[1] not in eraser.graph_.neighbours(edge[0])


def test_an_emptied_shard_leaves_the_ensemble(eraser: ge.GraphEraser) -> None:
    gone = shard_digest(eraser.shards_[1])
    receipt = eraser.unlearn(ge.Nodes(eraser.partition_.members(1)))
    assert list(eraser.shards_) == [0, 2]
    assert receipt.retrained == ()
    (record,) = receipt.shards
    assert (record.shard, record.nodes, record.before, record.after) == (1, 0, gone, None)
    assert eraser.predict(eraser.graph_.test_nodes).shape == (10,)
    assert eraser.verify().identical


def test_an_emptied_shard_comes_back_with_an_insertion(eraser: ge.GraphEraser) -> None:
    eraser.unlearn(ge.Nodes(eraser.partition_.members(1)))
    receipt = eraser.insert(1000, [1.0] * 12, 0, [])
    assert receipt.retrained == (1,)
    (record,) = receipt.shards
    assert record.before is None
    assert list(eraser.shards_) == [0, 1, 2]
    assert eraser.verify().identical


def test_a_repeated_request_is_told_what_one_is_told_that_was_never_possible(
    eraser: ge.GraphEraser, small: ge.Graph
) -> None:
    requests: list[Any] = [
        ge.Nodes(small.train_nodes[:2]),
        ge.Edges([tuple(small.edges[-1].tolist())]),
        ge.Features(small.ids[-1:]),
    ]
    for request in requests:
        eraser.unlearn(request)
        with pytest.raises(InputError):
            eraser.unlearn(request)
    assert len(eraser.receipts_) == 3
    gone, never = int(small.train_nodes[0]), 10**9
    said = []
    for node in (gone, never):
        with pytest.raises(UnknownNodeError) as caught:
            eraser.unlearn(ge.Nodes([node]))
        said.append((caught.value.message.replace(str(node), "x"), caught.value.hint))
    assert said[0] == said[1], "nobody can tell who was forgotten"


def test_a_node_that_came_back_can_be_forgotten_again(
    eraser: ge.GraphEraser, small: ge.Graph
) -> None:
    node = int(small.train_nodes[0])
    eraser.unlearn(ge.Nodes([node]))
    eraser.insert(node, [1.0] * 12, 0, small.train_nodes[1:3])
    eraser.unlearn(ge.Nodes([node]))
    assert len(eraser.receipts_) == 3
    assert eraser.verify().identical


def test_a_plan_is_what_unlearn_does(eraser: ge.GraphEraser, small: ge.Graph) -> None:
    batch: list[Request] = [
        ge.Nodes(small.train_nodes[:3]),
        ge.Features(small.train_nodes[5:6]),
    ]
    state = eraser.shards_
    plan = eraser.plan(batch)
    assert eraser.shards_ is state, "a plan does nothing"
    receipt = eraser.unlearn(batch)
    assert receipt.retrained == plan.retrain
    named = {(part.about["forget"], *part.about["ids"]) for part in receipt.parts}
    nodes = {("node", str(node)) for node in plan.removal.nodes}
    assert named == nodes | {("features", str(node)) for node in plan.removal.features}


# -- adding ---------------------------------------------------------------------------------------


def test_an_inserted_node_joins_most_of_its_neighbours(small: ge.Graph) -> None:
    eraser = fitted(small, partition="random", gamma=1.0)
    home = eraser.partition_.members(2)[:2]
    receipt = eraser.insert(1000, [1.0] * 12, 1, [*home, *eraser.partition_.members(0)[:1]])
    assert receipt.action == "insert"
    assert receipt.retrained == (2,)
    assert eraser.partition_.shard_of([1000]).tolist() == [2]
    assert sorted(eraser.graph_.neighbours(1000))[:2]
    assert eraser.predict([1000]).shape == (1,)
    assert 1000 in eraser.graph_.train_nodes
    assert eraser.verify().identical


def test_under_hash_the_cut_stays_data_free(small: ge.Graph) -> None:
    eraser = fitted(small, partition="hash")
    receipt = eraser.insert(1000, [1.0] * 12, 1, small.ids[:3])
    assert receipt.statement == "exact"
    fresh = fitted(eraser.graph_, partition="hash")
    assert {s: w.digest for s, w in eraser.shards_.items()} == {
        s: w.digest for s, w in fresh.shards_.items()
    }


# -- proof ----------------------------------------------------------------------------------------


def test_verify_notices_a_weight_that_is_off_by_one_bit(eraser: ge.GraphEraser) -> None:
    assert eraser.verify().identical
    weights = eraser.shards_[1]
    name = "conv1.lin.weight"
    forged = np.array(weights.tensors[name])
    forged.view(np.uint32)[0, 0] ^= 1
    weights.tensors[name] = forged
    found = eraser.verify()
    assert not found.identical
    assert found.differences == (
        "weights of the shards: not what the last change left",
        f"shard 1/{name}: 1 of {forged.size} values differ",
    )


def test_verify_notices_a_broken_chain(eraser: ge.GraphEraser, small: ge.Graph) -> None:
    for node in small.train_nodes[:2]:
        eraser.unlearn(ge.Nodes([node]))
    eraser._fitted = replace(eraser._fitted, receipts=eraser.receipts_[1:])
    found = eraser.verify()
    assert not found.identical
    assert "receipt 1" in found.differences[0]


def test_verify_counts_what_it_compared(eraser: ge.GraphEraser, small: ge.Graph) -> None:
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    found = eraser.verify()
    assert found.receipts == 1
    # The partition; columns, two weights and two biases per shard; counts, two regressions and
    # posteriors of sampled nodes; the pool's sample, weights and offsets.
    assert found.tensors == 2 + 3 * 5 + (3 + 2 * 3 + 4) + 3
    assert found.to_dict()["identical"] is True
