"""What is measured of a method: streams are counted, distances are right, attacks look fairly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.graph import TEST, TRAIN
from grapheraser_lab.bench.comparison import validation_graph
from grapheraser_lab.rivals import run as tuning
from grapheraser_lab.rivals.gcn import View
from grapheraser_lab.rivals.measure import (
    SHARES,
    adversarial,
    false_edges,
    judged,
    membership,
    observed,
    remembered,
    shares,
    stream,
)
from grapheraser_lab.rivals.methods import METHODS, OWN_EPOCHS, Ids, Peer, Posteriors, Request

LINEAR = ("graph-editor", "projector", "cgu", "cgu-tuned", "scalegun")
TUNED: dict[str, dict[str, Any]] = {"gif": {"iterations": 3}, "gnndelete": {"steps": 3}}


def config(method: str, **more: Any) -> dict[str, Any]:
    tuned = TUNED.get(method, {})
    return {"dataset": "cora", "method": method, "seed": 0, "tuned": tuned, **more}


@dataclass(frozen=True, eq=False)
class Fake:
    """Answers by a table, and writes down what it forgets."""

    graph: ge.Graph
    table: Mapping[int, list[float]]
    learned: NDArray[np.float64]
    forgotten: tuple[int, ...] = ()

    def forget(self, request: Request) -> Peer:
        assert isinstance(request, ge.Nodes)
        gone = (*self.forgotten, *request.ids)
        return Fake(self.graph.without(request), self.table, self.learned, gone)

    def retrained(self) -> Peer:
        return self

    def answers(self, view: View, nodes: Ids) -> Posteriors:
        assert view.graph.contains(nodes).all()
        return np.array([self.table[int(node)] for node in nodes], dtype=np.float32)

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        return {"learned": self.learned}


def fake(graph: ge.Graph, answer: list[float], learned: list[float]) -> Fake:
    return Fake(graph, {int(node): answer for node in graph.ids}, np.array(learned))


@pytest.mark.parametrize("method", ["default", "paper-blpa", "gif", "gnndelete"])
def test_a_stream_counts_every_request_and_is_judged_now_and_then(
    offline: ge.Graph, method: str
) -> None:
    found = stream(config(method, requests=6, every=2))
    assert found["requests"] == 6
    assert [point["requests"] for point in found["points"]] == [0, 2, 4, 6]
    if METHODS[method].exact:
        assert all(point["same"] and point["apart"] == 0 for point in found["points"])
    else:
        assert found["points"][0]["apart"] == 0  # nothing was forgotten yet
        assert found["points"][-1]["apart"] > 0


def test_a_stream_leaves_half_of_the_training_nodes(offline: ge.Graph) -> None:
    found = stream(config("weights kept", requests=1000, every=10))
    assert found["requests"] == len(offline.train_nodes) // 2


@pytest.mark.parametrize("method", [name for name in METHODS if name != OWN_EPOCHS])
def test_every_method_is_judged_after_nodes_and_edges(offline: ge.Graph, method: str) -> None:
    found = shares(config(method))
    for kind in ("nodes", "edges"):
        assert list(found[kind]) == [f"{share:g}" for share in SHARES]
        for row in found[kind].values():
            assert 0 <= row["f1"] <= 1
            assert row["same"] == (row["parameters"] == 0 and row["apart"] == 0)
            # A linear rival solves anew where that is the shorter way, or its budget is spent.
            assert row["same"] == METHODS[method].exact or method in LINEAR
    assert ("pyg" in found) == (method == "retraining")


@pytest.mark.parametrize("method", ["weights kept", "closed-form"])
def test_false_edges_tie_classes_and_are_forgotten(offline: ge.Graph, method: str) -> None:
    false = false_edges(offline, 0.5, seed=3)
    assert len(false) == round(0.5 * offline.training_graph.num_edges)
    assert np.isin(false, offline.train_nodes).all()
    assert (offline.labels(false[:, 0]) != offline.labels(false[:, 1])).all()
    there = {tuple(sorted(edge)) for edge in offline.edges.tolist()}
    assert not there & {tuple(sorted(edge)) for edge in false.tolist()}
    found = adversarial(config(method))
    for share in ("0.1", "0.5"):
        assert found[share]["same"] == METHODS[method].exact
        if METHODS[method].exact:
            assert found[share]["f1"] == found["clean"]


def test_distances_are_those_computed_by_hand(middling: ge.Graph) -> None:
    one = fake(middling, [0.5, 0.3, 0.2], [3.0, 4.0])
    other = fake(middling, [0.2, 0.3, 0.5], [3.0, 9.0])
    found = judged(one, other)
    assert found["apart"] == pytest.approx(0.3)
    assert found["parameters"] == pytest.approx(5 / np.sqrt(90))
    assert not found["same"]
    truth = middling.labels(middling.test_nodes)
    assert (found["f1"], found["retrained_f1"]) == ((truth == 0).mean(), (truth == 2).mean())
    assert judged(one, one) == {**judged(one, one), "apart": 0, "parameters": 0, "same": True}
    # The same answers from other weights are not the same model.
    assert not judged(one, fake(middling, [0.5, 0.3, 0.2], [3.0, 4.1]))["same"]


def test_a_method_that_diverged_has_no_distance(middling: ge.Graph) -> None:
    lost = fake(middling, [np.nan] * 3, [np.nan, np.nan])
    found = judged(lost, fake(middling, [0.5, 0.3, 0.2], [3.0, 4.0]))
    assert (found["apart"], found["parameters"], found["same"]) == (None, None, False)


def test_an_attacker_sees_each_forgotten_node_beside_a_test_node(middling: ge.Graph) -> None:
    peer = fake(middling, [0.5, 0.3, 0.2], [0.0])
    seen = observed(peer, 10, seed=4)
    assert seen.member.tolist() == [True, False] * 10
    assert seen.request.tolist() == np.repeat(np.arange(10), 2).tolist()
    assert seen.before.shape == seen.alone_after.shape == (20, 3)
    assert peer.forgotten == ()


def test_the_same_nodes_are_asked_about_whatever_the_method(middling: ge.Graph) -> None:
    methods = [METHODS[name].fitted("cora", middling, 0, {}) for name in ("sgc", "weights kept")]
    first, second = (observed(peer, 6, seed=1) for peer in methods)
    assert first.labels.tolist() == second.labels.tolist()
    # What only leaves the graph leaves no trace where the asker hands it over.
    assert np.array_equal(second.before, second.after)
    assert not np.array_equal(first.before, first.after)


def test_a_model_that_still_knows_is_told_from_one_that_never_did(middling: ge.Graph) -> None:
    gone = ge.Nodes(middling.train_nodes[:9])
    classes = {int(node): int(middling.labels([node])[0]) for node in middling.ids}

    def sure(known: float) -> Fake:
        table = {}
        for node, label in classes.items():
            share = known if node in gone.ids else 0.4
            table[node] = [share if c == label else (1 - share) / 2 for c in range(3)]
        return Fake(middling, table, np.zeros(1))

    assert remembered(sure(0.9), middling, gone) == 1.0
    assert remembered(sure(0.4), middling, gone) == pytest.approx(0.5)


def test_both_attacks_are_made(offline: ge.Graph) -> None:
    found = membership(config("weights kept", requests=12))
    assert 0 <= found["plain"]["value"] <= 1
    assert found.keys() == {"plain", "informed"}


def test_settings_are_chosen_without_the_test_nodes(offline: ge.Graph) -> None:
    held_out = validation_graph(offline, 0)
    assert not np.isin(held_out.ids, offline.test_nodes).any()
    assert set(np.unique(held_out.role)) == {TRAIN, TEST}
    assert 0 < len(held_out.test_nodes) < len(held_out.train_nodes)


def test_the_nearest_to_retraining_is_chosen_and_never_one_that_diverged(
    offline: ge.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grapheraser_lab.rivals.gif._LARGEST", 0.0)  # no scale is raised
    grid = [{"scale": scale, "iterations": 60} for scale in (1e-3, 50.0, 500.0)]
    found = tuning.tuned(config("gif", grid=grid))
    apart = [one["apart"] for one in found["tried"]]
    assert apart[0] is None
    assert found["best"] == grid[int(np.argmin([np.inf, *apart[1:]]))]


def test_gnndelete_is_chosen_by_its_f1(offline: ge.Graph) -> None:
    grid = [{"lr": lr, "steps": 20} for lr in (0.001, 0.5)]
    found = tuning.tuned(config("gnndelete", grid=grid))
    best = max(one["f1"] for one in found["tried"])
    chosen = next(one for one in found["tried"] if one["settings"] == found["best"])
    assert chosen["f1"] == best
