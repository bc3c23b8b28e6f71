"""What a receipt says about the aggregator."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
import grapheraser.eraser.state as state_module
from grapheraser.training import digest_tensors, tensor_digests


def test_the_aggregator_is_named_by_its_tensors_before_and_after(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(model="closed-form").fit(small)
    old = dict(eraser.aggregator_.tensors)
    receipt = eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    new = eraser.aggregator_.tensors
    assert receipt.aggregation["before"] == digest_tensors(old)
    assert receipt.aggregation["after"] == digest_tensors(new)
    differs = sorted(name for name in new if old[name].tobytes() != new[name].tobytes())
    assert receipt.aggregation["relearned"] == differs
    assert differs
    assert len(differs) < len(new)


def test_each_state_is_digested_once(small: ge.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    digested = []

    def counted(tensors: Mapping[str, NDArray[np.generic]]) -> dict[str, str]:
        digested.append(tensors)
        return tensor_digests(tensors)

    monkeypatch.setattr(state_module, "tensor_digests", counted)
    eraser = ge.GraphEraser(model="closed-form").fit(small)
    receipts = [eraser.unlearn(ge.Nodes([node])) for node in small.train_nodes[:3].tolist()]
    assert len(digested) == 4
    for one, next_ in pairwise(receipts):
        assert one.aggregation["after"] == next_.aggregation["before"]
