"""The evidence: it says no where something is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

import grapheraser as ge
from grapheraser.demo.scene import AGGREGATION
from grapheraser.demo.story import DemoResult, prove
from grapheraser.errors import VerificationError
from grapheraser.store.keys import known_keys


def test_the_model_that_forgot_has_the_digests_of_one_that_never_saw(result: DemoResult) -> None:
    proof = result.proof
    assert proof.is_identical
    assert proof.different == []
    assert proof.unlearned.keys() == {"shard 0", "shard 1", "shard 2", AGGREGATION}
    assert proof.key == known_keys()[0]
    assert proof.slot[1] == "empty"
    assert len(proof.slot[0]) == 64


def test_a_model_of_another_seed_has_other_digests(result: DemoResult) -> None:
    params = {**result.eraser.get_params(), "seed": 1}
    other = ge.GraphEraser(**params).fit(result.eraser.graph_)
    proof = prove(result.eraser, other, result.proof.part)
    assert not proof.is_identical
    assert proof.different == sorted(proof.unlearned)
    assert proof.verification.identical, "the run itself is sound"


def test_a_receipt_about_another_node_is_refused(result: DemoResult) -> None:
    part = result.proof.part
    forged = replace(part, about={"forget": "node", "ids": ["1"]})
    with pytest.raises(VerificationError):
        prove(result.eraser, result.eraser, forged)
