from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load

import grapheraser as ge
from grapheraser.service.served import drawing
from grapheraser.service.served.drawing import Drawing, Drawings, draw
from grapheraser.service.served.serving import Published, Served
from tests.waiting import until


def published(model: ge.GraphEraser) -> Published:
    return Published(model, len(model.receipts_), model.predict_proba(model.graph_.ids))


@pytest.fixture
def model(small: ge.Graph) -> ge.GraphEraser:
    return ge.GraphEraser(num_shards=3, epochs=2).fit(small)


def pairs(made: Drawing) -> set[tuple[int, ...]]:
    return {tuple(sorted(map(int, pair))) for pair in made.ids[made.edges].reshape(-1, 2)}


def test_a_drawing_shows_all_nodes_edges_shards_and_predictions(model: ge.GraphEraser) -> None:
    made, graph = draw(published(model)), model.graph_
    assert made.settled
    np.testing.assert_array_equal(made.ids, graph.ids)
    assert pairs(made) == {tuple(sorted(map(int, edge))) for edge in graph.edges.reshape(-1, 2)}
    np.testing.assert_array_equal(made.classes, model.predict(graph.ids))
    trained = model.partition_.contains(graph.ids)
    np.testing.assert_array_equal(
        made.shards[trained], model.partition_.shard_of(graph.ids[trained])
    )
    assert (made.shards[~trained] == -1).all()
    assert made.about["nodes"] == graph.num_nodes


def test_what_is_forgotten_leaves_the_drawing_with_its_version(model: ge.GraphEraser) -> None:
    before = draw(published(model))
    gone = int(model.graph_.train_nodes[0])
    edge = tuple(map(int, model.graph_.without(ge.Nodes([gone])).edges.reshape(-1, 2)[0]))
    model.unlearn([ge.Nodes([gone]), ge.Edges([edge])])
    now = published(model)
    kept = before.moved_to(now)
    assert not kept.settled
    assert gone not in kept.ids
    assert pairs(kept) == {tuple(sorted(map(int, e))) for e in model.graph_.edges.reshape(-1, 2)}
    np.testing.assert_array_equal(kept.places, before.places[before.ids != gone])
    np.testing.assert_array_equal(kept.classes, model.predict(kept.ids))
    assert kept.tag != before.tag


def test_places_are_worked_out_from_what_remains_alone(model: ge.GraphEraser) -> None:
    gone = int(model.graph_.train_nodes[0])
    rest = model.graph_.without(ge.Nodes([gone]))
    model.unlearn(ge.Nodes([gone]))
    fresh = ge.GraphEraser(num_shards=3, epochs=2).fit(rest)
    after, anew = draw(published(model)), draw(published(fresh))
    np.testing.assert_array_equal(after.places, anew.places)
    np.testing.assert_array_equal(after.classes, anew.classes)


def test_of_a_large_graph_a_keyed_sample_is_drawn(
    model: ge.GraphEraser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "MAX_NODES", 20)
    monkeypatch.setattr(drawing, "MAX_EDGES", 5)
    made = draw(published(model))
    assert len(made.ids) == 20
    assert len(made.edges) == 5
    assert made.about["nodes"] == model.graph_.num_nodes
    gone = int(made.ids[0])
    if gone not in model.graph_.train_nodes:
        gone = int(np.intersect1d(made.ids, model.graph_.train_nodes)[0])
    model.unlearn(ge.Nodes([gone]))
    after = draw(published(model))
    assert len(np.intersect1d(made.ids, after.ids)) == 19  # one leaves, one comes in


def test_the_file_is_what_the_drawing_holds(model: ge.GraphEraser, tmp_path: Path) -> None:
    made = draw(published(model))
    (tmp_path / "drawing.safetensors").write_bytes(made.content)
    found = load(made.content)
    np.testing.assert_array_equal(found["ids"], made.ids)
    np.testing.assert_array_equal(found["places"], made.places)
    with safe_open(tmp_path / "drawing.safetensors", "numpy") as file:
        about = json.loads(file.metadata()["drawing"])
    assert (about["version"], about["settled"]) == (0, True)
    assert about["task"] == "classes"


def test_a_named_graph_is_drawn_with_its_names(small: ge.Graph) -> None:
    names = np.array([f"person {node}" for node in small.ids], dtype=object)
    ends = names[np.searchsorted(small.ids, small.edges.reshape(-1, 2))]
    graph = ge.Graph.from_arrays(small.x, ends.T, small.y, ids=names, test=names[:5])
    model = ge.GraphEraser(num_shards=2, epochs=1).fit(graph)
    made = draw(published(model))
    found = json.loads(load(made.content)["names"].tobytes())
    assert found == graph.names_of(made.ids).tolist()
    model.unlearn(ge.Nodes([graph.names_of(graph.train_nodes[:1])[0]]))
    assert made.moved_to(published(model)).names == model.graph_.names_of(model.graph_.ids).tolist()


def test_a_link_run_is_drawn_without_classes(small: ge.Graph) -> None:
    links = ge.LinkEraser().fit(small)
    made = draw(Published(links, 0))
    assert (made.classes == -1).all()
    assert (made.about["task"], made.about["classes"]) == ("links", [])


def test_drawings_follow_what_is_published_and_end_when_nobody_looks(nodes_run: Path) -> None:
    served, clock = Served(nodes_run, answered=1000), [0.0]
    drawings, before = Drawings(served, kept=5.0, clock=lambda: clock[0]), threading.enumerate()
    assert not drawings.is_kept

    def settled() -> bool:
        found = drawings.now()
        return found is not None and found.settled and found.of[1] == served.now.version

    until(settled)
    model = ge.GraphEraser.load(nodes_run)
    gone = int(model.graph_.train_nodes[0])
    model.unlearn(ge.Nodes([gone]))
    served.publish(model)
    found = drawings.now()
    assert found is not None
    assert gone not in found.ids
    assert found.of[1] == 1
    until(settled)
    clock[0] = 6.0
    until(lambda: not drawings.is_kept)
    assert not [t for t in threading.enumerate() if t.name == "drawing" and t not in before]
    until(settled)
    drawings.stop()
    until(lambda: not drawings.is_kept)


def test_a_drawing_that_fails_is_tried_again(
    nodes_run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    def broken(published: Published) -> Drawing:
        calls.append(published.version)
        if len(calls) == 1:
            raise MemoryError("node 17 is too much")
        return draw(published)

    monkeypatch.setattr(drawing, "draw", broken)
    clock = [0.0]
    drawings = Drawings(Served(nodes_run, answered=1000), kept=5.0, clock=lambda: clock[0])
    until(lambda: drawings.now() is not None)
    assert len(calls) == 2
    assert "MemoryError" in caplog.text
    assert "17" not in caplog.text
    clock[0] = 6.0
    until(lambda: not drawings.is_kept)
