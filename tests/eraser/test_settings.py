"""What a run was set to survives a folder, or is asked for again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.aggregation import (
    MEMBERS,
    LearnedAggregator,
    MeanAggregator,
    PooledAggregator,
    RoutedAggregator,
)
from grapheraser.errors import CorruptRunError, GraphEraserError, ParameterError, PartitionError
from grapheraser.partition import Assignment, HashPartitioner
from tests.strategies import TwoHops


@dataclass(frozen=True)
class Reversed(MeanAggregator):
    """A user's own, under the name of a built-in one."""

    def predict_proba(self, ensemble: Any, positions: Any) -> NDArray[np.float32]:
        return super().predict_proba(ensemble, positions)[:, ::-1].copy()


@dataclass(frozen=True)
class Mine(MeanAggregator):
    """A user's own, under a name of its own, with something that JSON can't hold."""

    name: str = "mine"
    share: float = 0.5
    table: dict[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Remainder:
    """A data-free partitioner of the user's own."""

    name: str = "remainder"
    inputs: frozenset[str] = frozenset()
    strict: bool = False
    times: int = 1

    def __call__(self, graph: ge.Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        del capacity
        return Assignment((self.times * graph.ids + seed) % num_shards)


class Backwards(HashPartitioner):
    """A data-free partitioner of the user's own, under the name of a built-in one."""

    def __call__(self, graph: ge.Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        labels = super().__call__(graph, num_shards, capacity=capacity, seed=seed).labels
        return Assignment(num_shards - 1 - labels)


def fitted(graph: ge.Graph, **changes: Any) -> ge.GraphEraser:
    return ge.GraphEraser(**{"num_shards": 3, "epochs": 2, **changes}).fit(graph)


def answers(eraser: ge.GraphEraser) -> bytes:
    return eraser.predict_proba(eraser.graph_.ids).tobytes()


# -- own aggregations -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "own",
    [Reversed(), Mine(), Mine(share=0.25), Mine(table={"a": 1})],
    ids=repr,
)
def test_an_aggregation_of_ones_own_comes_back_when_it_is_brought(
    tmp_path: Path, small: ge.Graph, own: Any
) -> None:
    eraser = fitted(small, aggregation=own)
    eraser.save(tmp_path / "run")
    with pytest.raises(ParameterError, match=type(own).__name__) as caught:
        ge.GraphEraser.load(tmp_path / "run")
    assert "aggregation=" in str(caught.value.hint)
    back = ge.GraphEraser.load(tmp_path / "run", aggregation=own)
    assert answers(back) == answers(eraser)
    assert back.verify().identical
    receipts = [run.unlearn(ge.Nodes(small.train_nodes[:1])) for run in (eraser, back)]
    assert receipts[0].configuration == receipts[1].configuration


def test_another_aggregation_than_the_runs_is_refused(tmp_path: Path, small: ge.Graph) -> None:
    fitted(small, aggregation=Mine(share=0.25)).save(tmp_path / "run")
    for other in (Reversed(), Mine(share=0.75), PooledAggregator(MEMBERS)):
        with pytest.raises(ParameterError, match=r"'aggregation' of GraphEraser\.load"):
            ge.GraphEraser.load(tmp_path / "run", aggregation=other)


@pytest.mark.parametrize(
    "aggregation",
    [
        "mean",
        RoutedAggregator(floor=0.2),
        LearnedAggregator(sample=0.5),
        PooledAggregator(MEMBERS),
        PooledAggregator(("words", "features"), sample=0.5),
        PooledAggregator(("labels",), shards=False, sample=7),
        PooledAggregator((), sample="all"),
    ],
    ids=repr,
)
def test_built_in_aggregations_come_back_by_themselves(
    tmp_path: Path, small: ge.Graph, aggregation: Any
) -> None:
    eraser = fitted(small, aggregation=aggregation)
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    assert answers(back) == answers(eraser)
    assert back.verify().identical


# -- own partitioners -----------------------------------------------------------------------------


@pytest.mark.parametrize("own", [Remainder(), Remainder(times=2), Backwards()], ids=repr)
def test_a_data_free_partitioner_of_ones_own_places_and_cuts_again(
    tmp_path: Path, small: ge.Graph, own: Any
) -> None:
    eraser = fitted(small, partition=own, seed=1)
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    for node in range(1000, 1004):
        receipt = eraser.insert(node, [1.0] * 12, 1, small.ids[10:12])
        assert receipt.statement == "exact"
    afresh = fitted(eraser.graph_, partition=own, seed=1)
    assert np.array_equal(afresh.partition_.labels, eraser.partition_.labels)
    assert eraser.verify().identical

    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run", partition=own)
    assert back.verify().identical
    assert (
        back.insert(1004, [1.0] * 12, 1, []).shards == eraser.insert(1004, [1.0] * 12, 1, []).shards
    )


def test_without_its_own_partitioner_a_run_does_what_needs_none(
    tmp_path: Path, small: ge.Graph
) -> None:
    eraser = fitted(small, partition=Backwards())
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    assert answers(back) == answers(eraser)
    assert back.unlearn(ge.Nodes(small.train_nodes[:1])).statement == "exact"
    uses: list[Any] = [
        back.verify,
        lambda: back.insert(1000, [1.0] * 12, 1, []),
        lambda: back.fit(small),
    ]
    for use in uses:
        with pytest.raises(PartitionError, match=r"'hash'.*Backwards") as caught:
            use()
        assert "partition=" in str(caught.value.hint)
    assert len(back.receipts_) == 1


def test_a_partition_function_is_needed_for_the_next_fit_alone(
    tmp_path: Path, small: ge.Graph
) -> None:
    def halves(graph: ge.Graph, num_shards: int, seed: int) -> NDArray[np.int64]:
        return np.arange(graph.num_nodes) * num_shards // graph.num_nodes

    fitted(small, partition=halves).save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    back.insert(1000, [1.0] * 12, 1, small.ids[:2])
    assert back.verify().identical
    with pytest.raises(PartitionError, match="halves"):
        back.fit(small)
    assert ge.GraphEraser.load(tmp_path / "run", partition=halves).fit(small)
    with pytest.raises(ParameterError, match=r"'partition' of GraphEraser\.load"):
        ge.GraphEraser.load(tmp_path / "run", partition=Remainder())


def test_a_given_cut_that_nobody_here_can_make_again_is_not_claimed_to_be_data_free(
    small: ge.Graph,
) -> None:
    part = ge.partition_graph(small, Remainder(), num_shards=3)
    assert part.data_free
    plain = ge.GraphEraser(epochs=1).fit(small, partition=part)
    receipt = plain.unlearn(ge.Nodes(small.train_nodes[:1]))
    assert receipt.statement == "exact given partition"
    assert plain.verify().identical
    own = ge.GraphEraser(epochs=1, partition=Remainder()).fit(small, partition=part)
    assert own.unlearn(ge.Nodes(small.train_nodes[:1])).statement == "exact"
    by_hash = ge.partition_graph(small, "hash", num_shards=3)
    also = ge.GraphEraser(epochs=1, partition="random").fit(small, partition=by_hash)
    assert also.unlearn(ge.Nodes(small.train_nodes[:1])).statement == "exact"
    assert also.verify().identical


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"delta": np.int64(30)},
        {"seed": np.int64(3)},
        {"num_shards": np.int64(2)},
        {"gamma": np.float32(0.5)},
        {"aggregation": "learned", "sample": np.int64(20)},
        {"aggregation": "learned", "sample": np.float32(0.5)},
        {"aggregation": LearnedAggregator(sample=np.int64(7))},  # type: ignore[arg-type]
        {"model": ge.ModelSpec("gcn", hidden=np.int64(4))},  # type: ignore[arg-type]
        pytest.param(
            {"model": ge.CustomModel(TwoHops, lr=np.float32(0.1))},  # type: ignore[arg-type]
            marks=pytest.mark.gnn,
        ),
    ],
    ids=repr,
)
def test_numbers_of_numpy_are_as_good_as_pythons(
    tmp_path: Path, small: ge.Graph, changes: dict[str, Any]
) -> None:
    eraser = fitted(small, **changes)
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    eraser.save(tmp_path / "run")
    own: dict[str, Any] = (
        {"model": TwoHops} if isinstance(changes.get("model"), ge.CustomModel) else {}
    )
    back = ge.GraphEraser.load(tmp_path / "run", **own)
    assert back.verify().identical
    receipts = [run.unlearn(ge.Nodes(small.train_nodes[1:2])) for run in (eraser, back)]
    assert receipts[0].shards == receipts[1].shards


# -- settings that were altered ------------------------------------------------------------------


@pytest.mark.parametrize("receipts", [0, 1])
def test_settings_that_the_run_was_not_fitted_with_are_noticed(
    tmp_path: Path, small: ge.Graph, receipts: int
) -> None:
    eraser = fitted(small)
    for node in small.train_nodes[:receipts]:
        eraser.unlearn(ge.Nodes([node]))
    eraser.save(tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    manifest = json.loads(file.read_text())
    manifest["configuration"]["arguments"]["gamma"] = 0.5
    file.write_text(json.dumps(manifest))
    found = ge.GraphEraser.load(tmp_path / "run").verify()
    assert any("settings" in difference for difference in found.differences)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"part": "ModelSpec", "options": {"kind": "gcn", "layers": 3}}},
        {"model": "sage"},
        {"partition": None},
        {"partition": "random"},
        {"aggregation": {"name": "mean"}},
        {"aggregation": {"part": "Popen", "options": {}}},
        {"aggregation": "mean"},
        {"global_expert": False},
        {"global_expert": "wide"},
        {"members": ["words"]},
        {"members": "words"},
        {"num_shards": "4"},
        {"halo": 1},
        {"device": 0},
        {"colour": 3},
    ],
    ids=repr,
)
def test_settings_that_make_no_sense_are_an_error_of_ours(
    tmp_path: Path, small: ge.Graph, changes: dict[str, Any]
) -> None:
    fitted(small).save(tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    manifest = json.loads(file.read_text())
    manifest["configuration"]["arguments"] |= changes
    file.write_text(json.dumps(manifest))
    with pytest.raises(GraphEraserError):
        ge.GraphEraser.load(tmp_path / "run")


# -- the ends of the receipts ---------------------------------------------------------------------


def test_receipts_that_the_manifest_lost_are_missed(tmp_path: Path, small: ge.Graph) -> None:
    eraser = fitted(small)
    for node in small.train_nodes[:2]:
        eraser.unlearn(ge.Nodes([node]))
    eraser.save(tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())

    def verified(changed: dict[str, Any]) -> Any:
        (tmp_path / "run" / "run.json").write_text(json.dumps(changed))
        return ge.GraphEraser.load(tmp_path / "run").verify()

    assert verified(manifest).identical
    settings = manifest["configuration"]
    without = {key: value for key, value in settings.items() if key != "history"}
    reset = {**settings, "history": {**settings["history"], "receipts": 0, "head": None, "log": []}}
    none = {"count": 0, "head": None}
    tampered: list[dict[str, Any]] = [
        {"receipts": none},
        {"receipts": {"count": 1, "head": eraser.receipts_[0].digest}},
        {"receipts": none, "configuration": reset},
    ]
    for changes in tampered:
        assert not verified({**manifest, **changes}).identical
    with pytest.raises(CorruptRunError, match="which receipts"):
        verified({**manifest, "receipts": none, "configuration": without})
