"""Guessing the label of a forgotten node."""

from __future__ import annotations

import grapheraser as ge
from grapheraser_lab.bench.attacked import label_attack


def test_label_counts_give_a_forgotten_label_away_to_who_sees_both_versions(
    demo: ge.Graph,
) -> None:
    counts = ge.GraphEraser(model="closed-form", members=("labels",)).fit(demo)
    words = ge.GraphEraser(model="closed-form", members=("words",)).fit(demo)
    found, others = (label_attack(run, demo, requests=40) for run in (counts, words))
    assert found["requests"] == 40
    assert found["right"] > 0.9
    assert others["right"] < found["right"]
    assert found["majority"] < 0.5
    assert not counts.receipts_
