"""What a receipt says about a state, and how often that is worked out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray

import grapheraser as ge
import grapheraser.eraser.snapshot as seals_module
from grapheraser.receipts import digest_of
from grapheraser.store import aggregator_digest, shard_digest


def test_what_changed_in_the_aggregator_is_told_to_the_caller_alone(small: ge.Graph) -> None:
    eraser = ge.GraphEraser(model="closed-form").fit(small)
    old = dict(eraser.aggregator_.tensors)
    receipt = eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    new = eraser.aggregator_.tensors
    differs = sorted(name for name in new if old[name].tobytes() != new[name].tobytes())
    assert list(receipt.details.relearned) == differs
    assert differs
    assert len(differs) < len(new)
    assert eraser.receipts_[-1] == receipt
    assert eraser.receipts_[-1].details.relearned == ()
    assert eraser.receipts_[-1].parts == ()


def test_each_state_is_digested_once(small: ge.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    digested = []

    def counted(tensors: Mapping[str, NDArray[np.generic]]) -> str:
        digested.append(tensors)
        return aggregator_digest(tensors)

    monkeypatch.setattr(seals_module, "aggregator_digest", counted)
    eraser = ge.GraphEraser(model="closed-form").fit(small)
    receipts = [eraser.unlearn(ge.Nodes([node])) for node in small.train_nodes[:3].tolist()]
    assert len(digested) == 4
    for one, next_ in pairwise(receipts):
        assert one.after == next_.before
        assert one.register_after == next_.register_before


def test_the_document_names_the_files_of_the_version(tmp_path: Path, small: ge.Graph) -> None:
    eraser = ge.GraphEraser(num_shards=3, epochs=2).fit(small)
    receipt = eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    eraser.save(tmp_path / "run")
    found: dict[str, Any] = dict(eraser._snapshot.document)
    assert receipt.after == digest_of(found)
    (aggregator,) = (tmp_path / "run").glob("aggregator-*.safetensors")
    assert found["aggregator"] == hashlib.sha256(aggregator.read_bytes()).hexdigest()
    files = {
        str(shard): hashlib.sha256(safetensors.numpy.save(weights.arrays)).hexdigest()
        for shard, weights in eraser.shards_.items()
    }
    assert found["shards"] == digest_of({"0": digest_of(files)})
    on_disk = {
        hashlib.sha256(file.read_bytes()).hexdigest() for file in tmp_path.glob("*/shards/*")
    }
    assert on_disk == set(files.values())
    assert {shard_digest(weights) for weights in eraser.shards_.values()} == on_disk
    assert found["graph"] == eraser.graph_.fingerprint


def test_two_fits_of_the_same_graph_can_not_be_told_by_their_receipts(small: ge.Graph) -> None:
    """Every commitment is fresh, though both states have the same bits."""
    receipts = []
    for _ in range(2):
        eraser = ge.GraphEraser(num_shards=3, epochs=2).fit(small)
        receipts.append(eraser.unlearn(ge.Nodes(small.train_nodes[:1])))
    one, other = (receipt.to_dict() for receipt in receipts)
    for name in ("before", "after", "request", "register_before", "register_after", "run"):
        assert one[name] != other[name]
    assert one["configuration"] == other["configuration"]
