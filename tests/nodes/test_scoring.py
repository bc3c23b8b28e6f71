"""Batch scoring: the rows of predict_proba, in a file, after any interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError, UnknownNodeError, WorkerError
from grapheraser.nodes.mitigations import Mitigation
from tests.strategies import TwoHops


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grapheraser.nodes.scoring.BLOCK", 7)


@pytest.fixture
def eraser(small: ge.Graph) -> ge.GraphEraser:
    return ge.GraphEraser(num_shards=3, epochs=2).fit(small)


def read(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as found:
        return dict(found)


class Stopped(ge.LocalExecutor):
    """Stops after three tasks, as after Ctrl-C."""

    def stream(self, function: Any, tasks: Any) -> Any:
        for count, done in enumerate(super().stream(function, tasks)):
            if count == 3:
                raise KeyboardInterrupt
            yield done


class Fails(ge.LocalExecutor):
    """Fails at one task."""

    def stream(self, function: Any, tasks: Any) -> Any:
        for place, outcome in super().stream(function, tasks):
            yield place, MemoryError("no room") if place == 1 else outcome


class Counts(ge.LocalExecutor):
    """Counts tasks."""

    def stream(self, function: Any, tasks: Any) -> Any:
        COUNTED.append(len(tasks))
        return super().stream(function, tasks)


COUNTED: list[int] = []


@pytest.mark.parametrize("model", ["gcn", "closed-form", TwoHops])
def test_the_rows_are_those_of_predict_proba(model: Any, small: ge.Graph, tmp_path: Path) -> None:
    shards: Any = {} if model == "closed-form" else {"num_shards": 3, "epochs": 2}
    eraser = ge.GraphEraser(model, **shards).fit(small)
    done = eraser.predict_to(tmp_path / "s.npz", posteriors=True)
    assert (done.rows, done.blocks, done.kept) == (40, 6, 0)
    found = read(tmp_path / "s.npz")
    assert (found["node"] == small.ids).all()
    blocks = [small.ids[start : start + 7] for start in range(0, 40, 7)]
    expected = np.concatenate([eraser.predict_proba(block) for block in blocks])
    assert found["posterior"].tobytes() == expected.tobytes()
    assert (found["class"] == expected.argmax(axis=1)).all()
    if model is not TwoHops:  # the bits of a node don't depend on the nodes beside it
        assert expected.tobytes() == eraser.predict_proba(small.ids).tobytes()
    assert [file.name for file in tmp_path.iterdir()] == ["s.npz"]


def test_names_of_nodes_and_classes_are_written(tmp_path: Path) -> None:
    names, words = ["ada", "bob", "cy", "dan"], ["cat", "dog", "cat", "dog"]
    graph = ge.Graph.from_tables(
        {"id": names, "label": words, "a": [1.0, 2, 3, 4], "b": [0.0, 1, 0, 1]},
        {"source": ["ada", "bob"], "target": ["bob", "cy"]},
    )
    eraser = ge.GraphEraser(num_shards=1, epochs=2).fit(graph)
    eraser.predict_to(tmp_path / "s.npz", ["cy", "ada"])
    found = read(tmp_path / "s.npz")
    assert found["name"].tolist() == ["cy", "ada"]
    assert (found["node"] == graph.ids_of(["cy", "ada"])).all()
    assert found["class_name"].tolist() == eraser.predict(["cy", "ada"]).tolist()
    assert found["class_name"].tolist() == [graph.class_names[c] for c in found["class"]]
    assert "posterior" not in found


def test_an_interrupted_call_goes_on_where_it_stopped(
    eraser: ge.GraphEraser, tmp_path: Path
) -> None:
    path, ids = tmp_path / "s.npz", eraser.graph_.ids
    eraser.save(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        ge.GraphEraser.load(tmp_path / "run", executor=Stopped()).predict_to(path)
    assert not path.exists()
    assert len(list((tmp_path / "s.npz.parts").glob("*.npy"))) == 3
    COUNTED.clear()
    again = ge.GraphEraser.load(tmp_path / "run", executor=Counts())
    assert again.predict_to(path, posteriors=True).kept == 3
    assert COUNTED == [3]
    assert read(path)["posterior"].tobytes() == eraser.predict_proba(ids).tobytes()
    assert not (tmp_path / "s.npz.parts").exists()


def test_what_was_scored_before_a_change_is_scored_again(
    eraser: ge.GraphEraser, tmp_path: Path
) -> None:
    path = tmp_path / "s.npz"
    eraser.save(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        ge.GraphEraser.load(tmp_path / "run", executor=Stopped()).predict_to(path)
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:2]))
    assert eraser.predict_to(path).kept == 0
    assert (read(path)["node"] == eraser.graph_.ids).all()


def test_a_block_that_fails_keeps_the_others(eraser: ge.GraphEraser, tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    eraser.save(tmp_path / "run")
    failing = ge.GraphEraser.load(tmp_path / "run", executor=Fails())
    with pytest.raises(WorkerError, match=r"1 of 6 blocks .* MemoryError: no room") as caught:
        failing.predict_to(path)
    assert "goes on from there" in str(caught.value.hint)
    assert eraser.predict_to(path).kept == 5


def test_posteriors_may_say_less(eraser: ge.GraphEraser, tmp_path: Path) -> None:
    less = Mitigation(top=1, decimals=1)
    eraser.predict_to(tmp_path / "s.npz", posteriors=True, mitigation=less)
    expected = less(eraser.predict_proba(eraser.graph_.ids))
    assert read(tmp_path / "s.npz")["posterior"].tobytes() == expected.tobytes()


def test_bad_nodes_change_nothing(eraser: ge.GraphEraser, tmp_path: Path) -> None:
    with pytest.raises(UnknownNodeError):
        eraser.predict_to(tmp_path / "s.npz", [0, 999])
    with pytest.raises(GraphError, match="no nodes to score"):
        eraser.predict_to(tmp_path / "s.npz", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_processes_give_the_rows_of_threads(eraser: ge.GraphEraser, tmp_path: Path) -> None:
    eraser.save(tmp_path / "run")
    found = []
    for executor in ("local", "process"):
        loaded = ge.GraphEraser.load(tmp_path / "run", executor=executor)
        loaded.predict_to(tmp_path / "s.npz", posteriors=True)
        found.append(read(tmp_path / "s.npz")["posterior"].tobytes())
    assert found[0] == found[1]
