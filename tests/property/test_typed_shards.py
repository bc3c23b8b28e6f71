"""Shards of typed graphs: what sequences leave is what a fit on the raw rest gives."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError, ParameterError
from tests.property.test_typed import MAKES, World, built, drawn, world_of

torch = pytest.importorskip("torch")

from tests.modules import Hetero, Sums  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*ignores the weights of relations")
SIZES = {"a": 30, "b": 20, "c": 4}


CASES: dict[str, dict[str, Any]] = {
    "rgcn": {"model": "rgcn"},
    "a halo": {"model": "rgcn", "halo": True, "training": ge.Training(hidden=8, dropout=0.0)},
    "learned": {"model": "rgcn", "aggregation": "learned", "sample": 6},
    "mean, all in shards": {"model": "rgcn", "aggregation": "mean", "context": "all"},
    "own": {"model": Sums},
    "to_hetero": {"model": ge.CustomModel(Hetero, hops=2)},
}


def fitted(world: World, case: str, seed: int = 0) -> ge.GraphEraser:
    arguments = {"num_shards": 3, "epochs": 2, "executor": ge.LocalExecutor(1), **CASES[case]}
    return ge.GraphEraser(seed=seed, **arguments).fit(built(world))


def bits(eraser: ge.GraphEraser) -> dict[str, str]:
    graph = eraser.graph_
    nodes = graph.ids[graph.types.of(graph.ids) == 0]  # type: ignore[union-attr]
    arrays = {**eraser._snapshot.state.tensors(), "posteriors": eraser.predict_proba(nodes)}
    digests = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}
    return digests | {"graph": graph.fingerprint}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_sequences_leave_what_a_fit_on_the_raw_rest_gives(case: str) -> None:
    rng = np.random.default_rng(len(case))
    world = world_of(rng, SIZES)
    eraser = fitted(world, case)
    for _ in range(3):
        changes, world = drawn(world, rng)
        eraser.update(changes)
        assert bits(eraser) == bits(fitted(world, case))
    assert eraser.verify().identical


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_long_sequences_leave_what_another_process_fits(case: str) -> None:
    rng = np.random.default_rng(100 + len(case))
    world = world_of(rng, SIZES)
    eraser = fitted(world, case, seed=3)
    for _ in range(2):
        for _ in range(4):
            changes, world = drawn(world, rng)
            eraser.update(changes)
        done = subprocess.run(
            [sys.executable, "-m", "tests.property.test_typed_shards", case],
            input=pickle.dumps(world),
            capture_output=True,
            check=True,
        )
        assert bits(eraser) == pickle.loads(done.stdout)


def test_only_the_shards_that_hold_an_edge_are_retrained() -> None:
    world = world_of(np.random.default_rng(1), SIZES)
    eraser = fitted(world, "rgcn")
    shard_of = eraser.partition_.shard_of
    ids, types = eraser.graph_.ids, eraser.graph_.types
    assert types is not None
    assert set(types.of(eraser.partition_.nodes).tolist()) == {0, 1, 2}  # every type has shards
    high = ids[types.of(ids) == 1]
    for u, v in list(world["e"][MAKES])[:6]:
        ends = shard_of(np.array([u, high[list(world["x"]["b"]).index(v)]]))
        plan = eraser.plan(ge.Edges([(u, v)], type=MAKES))
        assert plan.retrain == ((int(ends[0]),) if ends[0] == ends[1] else ())


def test_a_module_gets_what_pyg_gives_it() -> None:
    world = world_of(np.random.default_rng(2), SIZES)
    graph, seen = built(world), []

    class Spy(Sums):
        def forward(self, x_dict: Any, edge_index_dict: Any, edge_weight_dict: Any) -> Any:
            seen.append((x_dict, edge_index_dict, edge_weight_dict))
            return super().forward(x_dict, edge_index_dict, edge_weight_dict)

    ge.GraphEraser(Spy, num_shards=1, epochs=1, context="all").fit(graph).predict([0])
    x, edges, weights = seen[0]
    data = graph.to_pyg()
    for kind in ("a", "c"):
        assert torch.equal(x[kind], data[kind].x)
    assert x["b"].shape == (20, 1)
    for relation in data.edge_types:
        source, name, target = relation
        mine = edges[relation], edges[target, f"rev_{name}", source].flip(0)
        wanted = data[relation].edge_index
        carried = data[relation].get("edge_weight", torch.ones(wanted.shape[1]))
        for found in mine:
            pairs = zip(*found.tolist(), weights[relation].tolist(), strict=True)
            assert sorted(pairs) == sorted(zip(*wanted.tolist(), carried.tolist(), strict=True))


def test_a_typed_run_of_shards_is_saved_and_loaded(tmp_path: Any) -> None:
    world = world_of(np.random.default_rng(3), SIZES)
    eraser = fitted(world, "rgcn")
    assert eraser.unlearn(ge.Nodes([2], type="b")).statement == "exact"
    eraser.save(tmp_path / "run")
    loaded = ge.GraphEraser.load(tmp_path / "run")
    assert bits(loaded) == bits(eraser)
    assert loaded.verify().identical


def test_what_shards_of_typed_graphs_dont_take_is_refused() -> None:
    world = world_of(np.random.default_rng(4), SIZES)
    plain = ge.load_dataset("demo")
    with pytest.raises(GraphError, match="model 'rgcn' is for typed graphs"):
        ge.GraphEraser("rgcn").fit(plain)
    with pytest.raises(GraphError, match="model 'gcn' learns nothing from types"):
        ge.GraphEraser("gcn").fit(built(world))
    training = ge.Training(neighbours=[2, 2])
    with pytest.raises(ParameterError, match="'neighbours' of Training are for graphs without"):
        ge.GraphEraser("rgcn", training=training).fit(built(world))
    with pytest.raises(ParameterError, match="engine 'cpu' has no kernels for typed graphs"):
        ge.GraphEraser("rgcn", engine="cpu").fit(built(world))
    unfit: Any = len
    with pytest.raises(ParameterError, match="can't be called with the types and classes"):
        ge.GraphEraser(unfit).fit(built(world))


if __name__ == "__main__":
    raw = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(pickle.dumps(bits(fitted(raw, sys.argv[1], seed=3))))
