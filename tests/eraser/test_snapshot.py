"""One fitted value: no reader sees two states, and no argument counts before the next fit."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation import MeanAggregator
from grapheraser.audit.attacks.answers import ask, state_of
from grapheraser.errors import ParameterError


def test_predictions_during_a_request_are_of_one_state(
    small: ge.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole request comes between looking up the nodes and asking about them."""
    eraser = ge.GraphEraser(num_shards=3, epochs=3).fit(small)
    nodes, gone = small.ids[20:30], small.ids[:3]
    before = eraser.predict_proba(nodes)
    look_up = ge.Graph.positions
    started: list[bool] = []

    def interrupted(graph: ge.Graph, wanted: Any) -> Any:
        found = look_up(graph, wanted)
        if not started:
            started.append(True)
            request = threading.Thread(target=eraser.unlearn, args=(ge.Nodes(gone),))
            request.start()
            request.join()
        return found

    monkeypatch.setattr(ge.Graph, "positions", interrupted)
    during = eraser.predict_proba(nodes)
    assert len(eraser.receipts_) == 1
    assert during.tobytes() == before.tobytes()
    assert eraser.predict_proba(nodes).tobytes() != before.tobytes()


def test_another_device_counts_from_the_next_fit_on(small: ge.Graph) -> None:
    for device in ("cuda:0", "meta"):
        eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(small)
        eraser.set_params(device=device)
        receipt = eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
        assert receipt.device == "cpu"
        assert "gpu" not in receipt.versions
        assert eraser.verify().identical


def test_a_version_is_of_what_was_fitted_not_of_what_is_to_be(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=2, aggregation="routed").fit(small)
    before = ask(state_of(eraser), small, small.ids[:5])
    eraser.set_params(seed=9, model="mlp")
    after = state_of(eraser)
    assert after.ensemble.seed == 0
    assert np.array_equal(ask(after, small, small.ids[:5]), before)


def test_cut_figures_go_with_the_ties_that_they_counted(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(small)
    assert eraser.partition_.edge_cut > 0
    eraser.unlearn(ge.Edges([tuple(small.edges[0].tolist())]))
    assert eraser.partition_.quality is None


def test_requests_from_several_threads_are_carried_out_one_by_one(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=2).fit(small)
    gone = small.train_nodes[:6]
    with ThreadPoolExecutor(6) as pool:
        receipts = list(pool.map(lambda node: eraser.unlearn(ge.Nodes([node])), gone))
    assert sorted(receipt.sequence for receipt in receipts) == [1, 2, 3, 4, 5, 6]
    assert not eraser.graph_.contains(gone).any()
    assert eraser.verify().identical


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_takes_requests_of_its_own(small: ge.Graph, copied: Any) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=2).fit(small)
    other = copied(eraser)
    other.unlearn(ge.Nodes(small.train_nodes[:1]))
    assert (len(other.receipts_), len(eraser.receipts_)) == (1, 0)


def test_scikit_learn_takes_it_for_what_the_guide_says(small: ge.Graph) -> None:
    sklearn = pytest.importorskip("sklearn.base")
    validation = pytest.importorskip("sklearn.utils.validation")
    guide = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    for name in ("get_params", "set_params", "clone", "is_classifier", "check_is_fitted"):
        assert f"`{name}`" in guide
    assert "`classes_`" in guide
    eraser = ge.GraphEraser(num_shards=3, epochs=1)
    copy = sklearn.clone(eraser.set_params(epochs=2))
    assert copy.get_params() == eraser.get_params()
    assert sklearn.is_classifier(copy)
    with pytest.raises(ge.errors.NotFittedError):
        _ = copy.classes_
    copy.fit(small)
    validation.check_is_fitted(copy)
    assert copy.classes_.tolist() == [0, 1, 2]
    posteriors = copy.predict_proba(small.ids)
    assert posteriors.shape[1] == len(copy.classes_)
    assert copy.predict(small.ids).tolist() == copy.classes_[posteriors.argmax(axis=1)].tolist()


def test_scikit_learn_can_tell_whether_it_is_fitted(small: ge.Graph) -> None:
    validation = pytest.importorskip("sklearn.utils.validation")
    eraser = ge.GraphEraser(num_shards=2, epochs=1)
    with pytest.raises(Exception, match="not fitted yet"):
        validation.check_is_fitted(eraser)
    validation.check_is_fitted(eraser.fit(small))
    assert pytest.importorskip("sklearn.base").is_classifier(eraser)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_shards": "4"}, "'num_shards' of GraphEraser must be an int"),
        ({"num_shards": None}, "'num_shards' of GraphEraser must be an int"),
        ({"epochs": 2.5}, "'epochs' of GraphEraser must be a positive int"),
        ({"aggregation": MeanAggregator}, "a name or an Aggregator"),
    ],
    ids=repr,
)
def test_arguments_of_another_kind_are_refused(
    small: ge.Graph, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        ge.GraphEraser(**arguments).fit(small)


def test_a_name_is_no_partition(small: ge.Graph) -> None:
    name: Any = "metis"
    with pytest.raises(ParameterError, match="must be a Partition"):
        ge.GraphEraser(num_shards=2, epochs=1).fit(small, partition=name)
