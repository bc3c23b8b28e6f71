"""Resharding: a fresh fit on what is left, as one more change of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.errors import GraphEraserError, ParameterError


def bits(eraser: ge.GraphEraser) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in eraser._snapshot.state.tensors().items()}


@pytest.mark.parametrize(
    "options", [{}, {"partition": "blpa"}, {"aggregation": "learned"}], ids=repr
)
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_it_is_a_fresh_fit_on_what_is_left(
    small: ge.Graph, options: dict[str, Any], shards: int
) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=2, **options).fit(small)
    eraser.unlearn(ge.Nodes(small.train_nodes[:5]))
    receipt = eraser.reshard(shards)
    afresh = ge.GraphEraser(num_shards=shards, epochs=2, **options).fit(eraser.graph_)
    assert bits(eraser) == bits(afresh)
    assert (receipt.action, receipt.sequence, eraser.num_shards) == ("reshard", 2, shards)
    assert receipt.statement == afresh.unlearn(ge.Nodes(small.train_nodes[5:6])).statement
    assert eraser.verify().identical


def test_receipts_go_on_from_it_also_through_a_folder(small: ge.Graph, tmp_path: Path) -> None:
    eraser = ge.GraphEraser(num_shards=4, epochs=2).fit(small)
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    eraser.reshard(2)
    eraser.save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run")
    assert back.num_shards == 2
    for run in (eraser, back):
        run.unlearn(ge.Nodes(small.train_nodes[1:2]))
        assert run.verify().identical
    assert [r.action for r in back.receipts_] == ["unlearn", "reshard", "unlearn"]
    assert bits(back) == bits(eraser)


@pytest.mark.parametrize("shards", [0, -1, 2.5, "3", None, 10_000_000], ids=repr)
def test_a_number_of_shards_that_makes_no_sense_changes_nothing(
    small: ge.Graph, shards: Any
) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=2).fit(small)
    before = bits(eraser)
    with pytest.raises(ParameterError, match="num_shards"):
        eraser.reshard(shards)
    assert bits(eraser) == before
    assert (eraser.num_shards, eraser.receipts_) == (3, ())


def test_plan_and_receipt_notice_shards_that_have_shrunk_to_half(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(small)
    few, many = small.train_nodes[:2], small.train_nodes[:20]
    assert eraser.plan(ge.Nodes(few)).notes == ()
    (note,) = eraser.plan(ge.Nodes(many)).notes
    assert "reshard(1)" in note
    receipt = eraser.unlearn(ge.Nodes(many))
    assert note in receipt.aggregation["notes"]
    eraser.reshard(1)
    assert eraser.plan(ge.Nodes(small.train_nodes[20:21])).notes == ()


def test_a_model_without_shards_has_none_to_reshard(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(model="closed-form").fit(small)
    before = bits(eraser)
    eraser.reshard(7)
    assert bits(eraser) == before
    with pytest.raises(GraphEraserError):
        ge.GraphEraser().reshard(2)
