"""A request that fails has changed nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import EmptyEnsembleError, GraphEraserError, InputError, TrainingError
from grapheraser.graph import Request
from tests.strategies import TwoHops, batches_for, small_graphs

if TYPE_CHECKING:
    from torch import Tensor

BAD: dict[str, Request] = {
    "unknown node": ge.Nodes([999]),
    "unknown edge": ge.Edges([(998, 999)]),
    "unknown features": ge.Features([999]),
    "nothing": ge.Nodes([]),
}


def same_objects(eraser: ge.GraphEraser) -> list[int]:
    fitted = eraser.aggregator_.fitted
    parts = (eraser.graph_, eraser.partition_, eraser.shards_, fitted, eraser.receipts_)
    return [id(part) for part in parts]


@pytest.mark.parametrize("case", BAD)
@settings(max_examples=5)
@given(st.data())
def test_a_bad_part_fails_the_whole_batch(case: str, data: st.DataObject) -> None:
    graph = data.draw(small_graphs())
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(graph)
    before = same_objects(eraser)
    good = [] if case == "nothing" else data.draw(batches_for(graph))
    batch = data.draw(st.permutations([*good, BAD[case]]))
    with pytest.raises(InputError):
        eraser.unlearn(batch)
    with pytest.raises(InputError):
        eraser.plan(batch)
    assert same_objects(eraser) == before


@settings(max_examples=5)
@given(small_graphs())
def test_the_last_shard_can_not_be_emptied(graph: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(graph)
    before = same_objects(eraser)
    with pytest.raises(EmptyEnsembleError, match="no shard would be left"):
        eraser.unlearn(ge.Nodes(graph.train_nodes.tolist()))
    assert same_objects(eraser) == before
    eraser.unlearn(ge.Nodes(graph.train_nodes[1:].tolist()))
    assert len(eraser.shards_) == 1


class Fragile(TwoHops):
    """Trains until it is told not to."""

    broken = False

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if Fragile.broken:
            raise RuntimeError("out of luck")
        return super().forward(x, edge_index)


@pytest.mark.gnn
def test_a_failed_training_changes_nothing(
    small: ge.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    eraser = ge.GraphEraser(model=Fragile, num_shards=3, epochs=1).fit(small)
    before = same_objects(eraser)
    node = int(small.train_nodes[0])
    (shard,) = eraser.plan(ge.Nodes([node])).retrain
    monkeypatch.setattr(Fragile, "broken", True)
    with pytest.raises(TrainingError, match=f"shard {shard}: RuntimeError: out of luck"):
        eraser.unlearn(ge.Nodes([node]))
    with pytest.raises(TrainingError):
        eraser.insert(1000, [1.0] * small.num_features, 0, [node])
    with pytest.raises(TrainingError) as caught:
        eraser.fit(small)
    assert set(caught.value.failures) == {0, 1, 2}
    assert same_objects(eraser) == before
    monkeypatch.setattr(Fragile, "broken", False)
    assert eraser.unlearn(ge.Nodes([node])).retrained == (shard,)


@pytest.mark.parametrize(
    "changes", [{"node_id": None}, {"label": 9}, {"features": [1.0]}, {"neighbours": [999]}]
)
def test_a_bad_insertion_changes_nothing(small: ge.Graph, changes: dict[str, object]) -> None:
    eraser = ge.GraphEraser(num_shards=2, epochs=1).fit(small)
    before = same_objects(eraser)
    taken = int(small.ids[0])
    node = {"node_id": 1000, "features": [1.0] * 12, "label": 0, "neighbours": [taken], **changes}
    if node["node_id"] is None:
        node["node_id"] = taken
    with pytest.raises(GraphEraserError):
        eraser.insert(**node)  # type: ignore[arg-type]
    assert same_objects(eraser) == before
