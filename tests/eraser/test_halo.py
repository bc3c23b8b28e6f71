"""Shards that see a halo: better alone, exact, and plain about what a request makes stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import ParameterError
from grapheraser.partition.halo import halo_key, task_graph
from grapheraser.store.residues.search import search_run
from tests.strategies import engines


def fitted(graph: ge.Graph, **changes: Any) -> ge.GraphEraser:
    options = {"num_shards": 3, "epochs": 2, "global_expert": False, "halo": True}
    return ge.GraphEraser(**{**options, **changes}).fit(graph)


def weights(eraser: ge.GraphEraser) -> dict[int, str]:
    return {shard: found.digest for shard, found in eraser.shards_.items()}


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_it_is_a_flag(small: ge.Graph, value: Any) -> None:
    with pytest.raises(ParameterError, match="'halo' of GraphEraser must be True or False"):
        fitted(small, halo=value)


@pytest.mark.parametrize("engine", engines())
def test_one_shard_has_no_halo(small: ge.Graph, engine: str) -> None:
    with_halo, without = (
        fitted(small, num_shards=1, engine=engine, halo=halo) for halo in (True, False)
    )
    assert weights(with_halo) == weights(without)


@pytest.mark.parametrize("engine", engines())
def test_labels_outside_a_shard_have_no_part_in_it(small: ge.Graph, engine: str) -> None:
    eraser = fitted(small, engine=engine)
    partition = eraser.partition_
    other = small.y.copy()
    rows = small.positions(partition.members(0))
    outside = np.setdiff1d(np.arange(small.num_nodes), rows)
    other[outside] = (other[outside] + 1) % small.num_classes
    again = fitted(small.with_fields(y=other), engine=engine)
    assert weights(again)[0] == weights(eraser)[0]
    assert weights(again)[1] != weights(eraser)[1]


@pytest.mark.parametrize("engine", engines())
def test_features_in_the_halo_have_a_part(small: ge.Graph, engine: str) -> None:
    eraser = fitted(small, engine=engine)
    seen = task_graph(small, eraser.partition_, 0, halo_key(0))
    halo = np.setdiff1d(seen.ids, eraser.partition_.members(0))
    filled = [v for v in halo.tolist() if small.x[small.positions([v])].nnz]
    before = weights(eraser)
    receipt = eraser.unlearn(ge.Features(filled[:1]))
    assert 0 in receipt.retrained
    assert weights(eraser)[0] != before[0]


def test_receipts_name_the_shards_that_see_an_inserted_node(small: ge.Graph) -> None:
    eraser = fitted(small)
    one_of_each = [int(eraser.partition_.members(shard)[0]) for shard in range(3)]
    assert eraser.insert(1000, small.x[[1]], 0, one_of_each).retrained == (0, 1, 2)
    assert eraser.insert(1001, small.x[[1]], 0, small.test_nodes[:2]).retrained == tuple(
        eraser.partition_.shard_of([1001]).tolist()
    )
    assert eraser.unlearn(ge.Nodes([1000])).retrained == (0, 1, 2)
    assert eraser.verify().identical


def test_a_saved_run_goes_on_with_its_halo(tmp_path: Path, small: ge.Graph) -> None:
    eraser = fitted(small)
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    assert back.halo is True
    request = ge.Nodes(small.train_nodes[:2])
    assert back.unlearn(request).retrained == eraser.unlearn(request).retrained
    assert weights(back) == weights(eraser)
    back.save(tmp_path / "run")
    assert search_run(tmp_path / "run").clean


def test_resharding_keeps_the_halo(small: ge.Graph) -> None:
    eraser = fitted(small, num_shards=4)
    eraser.reshard(2)
    assert weights(eraser) == weights(fitted(small, num_shards=2))
    assert eraser.verify().identical


@pytest.mark.slow
def test_shards_that_stand_alone_predict_better(demo: ge.Graph) -> None:
    alone, seeing = (
        fitted(demo, model="sage", num_shards=20, epochs=50, halo=halo).score(demo.test_nodes)
        for halo in (False, True)
    )
    assert seeing > alone


@pytest.mark.data
@pytest.mark.slow
def test_on_cora_a_halo_lifts_sage_by_far(data_root: Path) -> None:
    graph = ge.load_dataset("cora")
    alone, seeing = (
        fitted(graph, model="sage", num_shards=20, epochs=100, halo=halo).score(graph.test_nodes)
        for halo in (False, True)
    )
    assert seeing > alone + 0.04
