"""Modules of one's own: refused once, at `fit`, or trained whatever a request leaves of a shard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn

import grapheraser as ge
from grapheraser.errors import ParameterError
from tests.property.test_training import Normed
from tests.strategies import TwoHops


def refused(graph: ge.Graph, model: Any, match: str) -> None:
    eraser = ge.GraphEraser(model=model, num_shards=3, epochs=1)
    with pytest.raises(ParameterError, match=match) as caught:
        eraser.fit(graph)
    assert caught.value.hint


class OfData(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, data: Any) -> Any:
        return self.linear(data.x)


class WithBatch(TwoHops):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:  # type: ignore[override]
        del batch
        return super().forward(x, edge_index)


class ByName(TwoHops):
    def forward(self, x: Tensor, edge_index: Tensor, *, time: Tensor) -> Tensor:  # type: ignore[override]
        del time
        return super().forward(x, edge_index)


class Anything(TwoHops):
    def forward(self, *args: Tensor, **named: Tensor) -> Tensor:
        return super().forward(*args, **named)


class WithOptions(TwoHops):
    def forward(self, x: Tensor, edge_index: Tensor, scale: float = 1.0) -> Tensor:
        return super().forward(x, edge_index) * scale


def test_a_forward_that_needs_what_we_can_not_give_is_refused_at_fit(small: ge.Graph) -> None:
    refused(small, OfData, r"OfData must take x and edge_index\. It takes \(data\)")
    refused(small, WithBatch, "WithBatch needs 'batch', which graph 'small' does not have")
    refused(small, ByName, "ByName needs 'time'")
    for fine in (Anything, WithOptions):
        assert ge.GraphEraser(fine, num_shards=2, epochs=1).fit(small).verify().identical


def test_a_factory_that_makes_no_module_is_refused_at_fit(small: ge.Graph) -> None:
    def one_argument(in_channels: int) -> nn.Module:
        return TwoHops(in_channels, 3)

    refused(small, one_argument, "can't be called with the numbers of features and classes")
    refused(small, lambda *shape: shape, r"must make a torch\.nn\.Module\. Got tuple")


@pytest.mark.parametrize("model", [Normed, "gin:paper"], ids=str)
@pytest.mark.parametrize("engine", ["pyg", "auto"])
def test_batch_norm_does_not_block_a_deletion_that_leaves_one_node(
    tmp_path: Path, small: ge.Graph, model: Any, engine: str
) -> None:
    eraser = ge.GraphEraser(model, num_shards=3, epochs=3, engine=engine).fit(small)
    first, second = eraser.partition_.members(0), eraser.partition_.members(1)
    receipt = eraser.unlearn(ge.Nodes([*first[1:], second[0]]))
    notes = receipt.details.notes
    assert [note for note in notes if "single node" in note] == [
        "shard 0 was trained on a single node: its batch norms take the variance as 0"
    ]
    rest = small.without(ge.Nodes([*first[1:], second[0]]))
    afresh = ge.GraphEraser(model, num_shards=3, epochs=3, engine=engine).fit(rest)
    for shard, weights in eraser.shards_.items():
        assert weights.digest == afresh.shards_[shard].digest
    assert np.isfinite(eraser.predict_proba(rest.ids)).all()
    assert eraser.verify().identical
    eraser.save(tmp_path / "run")
    own = {} if isinstance(model, str) else {"model": model}
    assert ge.GraphEraser.load(tmp_path / "run", **own).verify().identical
    later = eraser.unlearn(ge.Nodes([second[1]]))
    assert not any("single node" in note for note in later.details.notes)
