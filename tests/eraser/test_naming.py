"""However nodes are named, an eraser gives the same answers and forgets the same nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import grapheraser as ge
from grapheraser.errors import ParameterError


@pytest.fixture
def eraser(small: ge.Graph) -> ge.GraphEraser:
    return ge.GraphEraser(num_shards=3, epochs=2).fit(small)


def test_answers_do_not_depend_on_how_nodes_are_named(
    eraser: ge.GraphEraser, small: ge.Graph
) -> None:
    mask = np.isin(small.ids, small.test_nodes)
    ids = small.ids[mask]
    expected, score = eraser.predict_proba(ids), eraser.score(ids)
    naming: Any
    for naming in (mask, mask.tolist(), torch.from_numpy(mask), torch.from_numpy(ids), list(ids)):
        assert eraser.predict_proba(naming).tobytes() == expected.tobytes()
        assert eraser.score(naming) == score
    twice = eraser.predict([*ids, ids[0]])
    assert twice.tolist() == [*expected.argmax(axis=1), expected[0].argmax()]
    for naming in (ids[0], torch.tensor(ids[0])):
        assert eraser.explain(naming) == eraser.explain(int(ids[0]))
    for bad in (mask[:-1], ids.astype(float), ids.reshape(1, -1)):
        with pytest.raises(ParameterError):
            eraser.predict(bad)


def test_a_mask_is_planned_and_forgotten_as_its_nodes_are(small: ge.Graph) -> None:
    mask = np.isin(small.ids, small.train_nodes[:3])
    erasers = [ge.GraphEraser(num_shards=3, epochs=2).fit(small) for _ in range(2)]
    assert (
        erasers[0].plan(ge.Nodes(mask)).counts == erasers[1].plan(ge.Nodes(small.ids[mask])).counts
    )
    receipts = [
        erasers[0].unlearn(ge.Nodes(mask)),
        erasers[1].unlearn(ge.Nodes(small.ids[mask])),
    ]
    asked = [{str(part.about) for part in receipt.parts} for receipt in receipts]
    assert asked[0] == asked[1]
    assert erasers[0].graph_ == erasers[1].graph_
    assert erasers[0].verify().identical
    with pytest.raises(ParameterError, match="one per node"):  # it was about the graph before
        erasers[0].unlearn(ge.Nodes(mask))
