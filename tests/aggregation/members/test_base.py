"""What every closed-form member promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
import grapheraser.aggregation.members.features as features_module
from grapheraser.aggregation.members.base import (
    FittedMember,
    Ids,
    Member,
    labelled_places,
    relabelled,
    trained_among,
)
from grapheraser.aggregation.members.counting import Counting
from grapheraser.aggregation.members.features import FeatureRegression
from grapheraser.aggregation.members.interactions import InteractionRegression
from grapheraser.aggregation.members.pattern import PatternRegression
from grapheraser.aggregation.members.surprises import Surprises
from tests.aggregation.members.oracle import (
    GRAPHS,
    as_test_nodes,
    ensemble_of,
    known,
    random_graph,
    sample_of,
    step,
    unlabelled,
)

MEMBERS: dict[str, Member] = {
    "counting": Counting(),
    "words": Counting(("words",)),
    "labels": Counting(("labels",)),
    "edges": Counting(("edges",)),
    "pattern": PatternRegression(),
    "interactions": InteractionRegression(columns=7),
    "surprises": Surprises(),
    "features": FeatureRegression(),
}
# Number of feature columns, by what becomes of them.
WIDTHS = {"in blocks": 170, "apart": 200, "as they are": 300, "hashed": 600}


def bits(fitted: FittedMember, graph: ge.Graph, sample: Ids) -> dict[str, bytes]:
    """All that a fitted member is and says."""
    ensemble = ensemble_of(graph)
    found = {name: tensor.tobytes() for name, tensor in fitted.tensors.items()}
    every = np.arange(graph.num_nodes)
    found["(evidence)"] = fitted.evidence(ensemble, every).tobytes()
    found["(held out)"] = fitted.held_out(ensemble, sample).tobytes()
    return found


def check_steps(member: Member, graph: ge.Graph, data: st.DataObject) -> None:
    """Refit after each of a few steps is what a fit gives."""
    share = data.draw(st.sampled_from([(0.05, None), (0.5, None), (1.0, 6), (1.0, None)]))
    ensemble = ensemble_of(graph)
    fitted = member.fit(ensemble, sample_of(ensemble, *share))
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            fitted = member.restore(fitted.tensors)
        taken = step(ensemble, data)
        if taken is None:
            return
        ensemble, change = taken
        sample = sample_of(ensemble, *share)
        fitted = member.refit(fitted, ensemble, change, sample)
        fresh = member.fit(ensemble, sample)
        expected = bits(fresh, ensemble.graph, sample)
        assert bits(fitted, ensemble.graph, sample) == expected


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", ["counting", "pattern", "interactions", "surprises", "features"])
@settings(max_examples=10)
@given(data=st.data())
def test_after_any_steps_a_member_is_what_a_fit_gives(
    name: str, kind: str, data: st.DataObject
) -> None:
    check_steps(MEMBERS[name], GRAPHS[kind], data)


@pytest.mark.parametrize("name", ["words", "labels", "edges"])
@settings(max_examples=6)
@given(data=st.data())
def test_so_is_each_counting_member_alone(name: str, data: st.DataObject) -> None:
    check_steps(MEMBERS[name], data.draw(st.sampled_from(list(GRAPHS.values()))), data)


@pytest.mark.parametrize("width", WIDTHS)
@settings(max_examples=5)
@given(data=st.data())
def test_so_are_features_of_any_width(width: str, data: st.DataObject) -> None:
    graph = random_graph(8, num_features=WIDTHS[width], density=0.05, edges=120)
    check_steps(FeatureRegression(columns=7), graph, data)
    check_steps(InteractionRegression(columns=7), graph, data)


@pytest.mark.parametrize("unhashed", [0, 12, 24])
@settings(max_examples=10)
@given(data=st.data())
def test_so_are_few_features_however_they_are_laid_out(unhashed: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features_module, "UNHASHED", unhashed)
        kind = data.draw(st.sampled_from(["sparse", "dense", "hub", "many edges"]))
        check_steps(FeatureRegression(columns=7), GRAPHS[kind], data)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", MEMBERS)
def test_a_row_has_the_same_bits_whatever_else_is_asked_for(name: str, kind: str) -> None:
    graph = GRAPHS[kind]
    ensemble = ensemble_of(graph)
    fitted = MEMBERS[name].fit(ensemble, sample_of(ensemble))
    every = np.arange(graph.num_nodes)
    everything = fitted.evidence(ensemble, every)
    assert everything.shape == (graph.num_nodes, len(fitted.names), graph.num_classes)
    assert np.isfinite(everything).all()
    backwards = fitted.evidence(ensemble, every[::-1].copy())
    assert backwards[::-1].tobytes() == everything.tobytes()
    for row in every[::3]:
        assert fitted.evidence(ensemble, np.array([row])).tobytes() == everything[[row]].tobytes()


@pytest.mark.parametrize("name", MEMBERS)
def test_labels_of_test_nodes_are_never_read(name: str) -> None:
    graph = GRAPHS["hub"]
    others = graph.y.copy()
    hidden = graph.positions(graph.test_nodes)
    others[hidden] = (others[hidden] + 1) % graph.num_classes
    found = []
    for y in (graph.y, others):
        part = ge.Graph(
            graph.ids, graph.indptr, graph.indices, graph.x, y, graph.role, graph.num_classes
        )
        ensemble = ensemble_of(part)
        sample = sample_of(ensemble)
        found.append(bits(MEMBERS[name].fit(ensemble, sample), part, sample))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["counting", "features"])
def test_test_nodes_have_no_part_in_the_sums(name: str) -> None:
    graph = GRAPHS["many edges"]
    alone, whole = (
        MEMBERS[name].fit(ensemble_of(part), np.zeros(0, dtype=np.int64)).tensors
        for part in (graph.training_graph, graph)
    )
    for key, tensor in whole.items():
        assert tensor.tobytes() == alone[key].tobytes()


@pytest.mark.parametrize("name", MEMBERS)
def test_a_single_training_node_is_enough(name: str) -> None:
    graph = GRAPHS["sparse"]
    node, *others = known(graph)
    few = graph.without(ge.Nodes(others))
    ensemble = ensemble_of(few)
    for sample in ([], [node]):
        fitted = MEMBERS[name].fit(ensemble, np.array(sample, dtype=np.int64))
        held_out = fitted.held_out(ensemble, np.array(sample, dtype=np.int64))
        assert held_out.shape == (len(sample), len(fitted.names), graph.num_classes)
        assert np.isfinite(held_out).all()
        assert np.isfinite(fitted.evidence(ensemble, np.arange(few.num_nodes))).all()


def test_labelled_training_nodes_are_those_that_count() -> None:
    graph = as_test_nodes(GRAPHS["sparse"], GRAPHS["sparse"].train_nodes[:2])
    assert labelled_places(graph).tolist() == graph.places(list(known(graph))).tolist()
    asked = np.append(graph.ids[::2], graph.ids.max() + 7)
    expected = [node for node in asked.tolist() if node in known(graph)]
    assert trained_among(graph, asked).tolist() == graph.places(expected).tolist()


def test_a_node_with_another_label_or_role_is_noticed() -> None:
    graph = GRAPHS["sparse"]
    first, second, *_ = known(graph)
    after = as_test_nodes(unlabelled(graph, [first]), [second])
    new = int(after.ids.max()) + 1
    after = after.with_node(new, np.zeros(after.num_features), 0, [])
    assert relabelled(graph, after, after.ids).tolist() == [first, second]
    assert not len(relabelled(graph, graph, graph.ids))
