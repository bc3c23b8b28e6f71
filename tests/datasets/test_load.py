"""`load_dataset` by name and path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.datasets import PUBLIC, dataset_info
from grapheraser.errors import (
    GraphError,
    ParameterError,
    UnknownDatasetError,
)


def test_the_split_follows_from_its_seed(demo: ge.Graph) -> None:
    other = ge.load_dataset("demo", split_seed=1)
    assert other.test_nodes.tolist() != demo.test_nodes.tolist()
    assert other == ge.load_dataset("demo", split_seed=1)
    assert np.array_equal(other.x.data, demo.x.data)


def write_npz(path: Path) -> None:
    np.savez(
        path,
        x_data=np.ones(10, dtype=np.uint8),
        x_indices=np.arange(10) % 3,
        x_indptr=np.arange(11),
        x_shape=np.array([10, 3]),
        edge_index=np.array([[0, 1], [1, 2]]),
        y=np.arange(10) % 2,
    )


def test_a_path_names_a_file(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    assert ge.load_dataset(tmp_path / "mine.npz") == ge.load_dataset("mine", root=tmp_path)
    for path in (tmp_path / "nothing.npz", tmp_path, Path("cora")):
        with pytest.raises(GraphError, match=str(path)):
            ge.load_dataset(path)


@pytest.mark.parametrize("changes", [{"name": None}, {"name": 5}, {"root": 5}, {"split_seed": "a"}])
def test_what_names_nothing_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        ge.load_dataset(**{"name": "demo", **changes})


def test_any_compact_file_is_found_by_its_name(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    graph = ge.load_dataset("mine", root=tmp_path)
    assert graph.name == "mine"
    assert (len(graph.train_nodes), len(graph.test_nodes)) == (8, 2)
    assert ge.load_dataset(str(tmp_path / "mine.npz"), root="elsewhere") == graph


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="no such file"):
        ge.load_dataset(str(tmp_path / "nothing.npz"))


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    with pytest.raises(
        UnknownDatasetError, match=r"'coral'\. Known here: demo, demo-large, cora, .*mine"
    ):
        ge.load_dataset("coral", root=tmp_path)


def test_what_is_known_and_what_is_on_disk(tmp_path: Path) -> None:
    write_npz(tmp_path / "mine.npz")
    write_npz(tmp_path / "cora.npz")
    found = {info.name: info.available for info in dataset_info(tmp_path)}
    others = {"demo": True, "demo-large": True, "mine": True}
    assert found == {**others, **{name: name == "cora" for name in PUBLIC}}


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        (
            "demo",
            {"split": "public"},
            "has no public split. Those with one: cora, citeseer, pubmed",
        ),
        ("cs", {"split": "public"}, "has no public split"),
        ("cora", {"split": "public", "split_seed": 3}, "'split_seed' of load_dataset"),
        ("demo", {"split": "80/20"}, "'split' of load_dataset"),
    ],
)
def test_a_split_that_there_is_not_is_refused(
    name: str | Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        ge.load_dataset(name, **changes)


def test_a_file_keeps_the_split_that_it_has(tmp_path: Path, small: ge.Graph) -> None:
    path = tmp_path / "mine.npz"
    small.to_npz(path)
    for name, root in ((path, None), (str(path), None), ("mine", tmp_path)):
        for split in ("auto", "public"):
            graph = ge.load_dataset(name, root=root, split=split)
            assert graph.test_nodes.tolist() == small.test_nodes.tolist()
    drawn = ge.load_dataset(path, split="random", split_seed=3)
    assert drawn == small.with_split(seed=3)
    with pytest.raises(ParameterError, match="has one of its own"):
        ge.load_dataset(path, split_seed=3)


def test_a_file_without_a_split_gets_a_random_one(tmp_path: Path, small: ge.Graph) -> None:
    path = tmp_path / "mine.npz"
    plain = ge.Graph.from_arrays(small.x, small.edges.T, small.y, ids=small.ids)
    plain.to_npz(path)
    assert ge.load_dataset(path, split_seed=2) == plain.with_split(seed=2)
    with pytest.raises(ParameterError, match="has no public split"):
        ge.load_dataset(path, split="public")


def test_a_user_without_a_home_has_the_embedded_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GRAPHERASER_DATA", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert ge.load_dataset("demo").num_nodes == 2700
