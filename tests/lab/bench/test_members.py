"""grapheraser bench members."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation.members import BEST
from grapheraser_lab.bench import members


def test_selections_of_members_are_judged_on_training_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = ge.load_dataset("demo")
    monkeypatch.setattr(members, "load_dataset", lambda name, split_seed=0: graph)
    report = members.run(["demo", "1e3"], requests=2)
    rows = {row["members"]: row for row in report["rows"] if row["dataset"] == "demo"}
    assert list(rows) == list(members.SELECTIONS)
    left = graph.training_graph.with_split(test_share=1 / 8, seed=0)
    assert not np.isin(left.test_nodes, graph.test_nodes).any()
    alone = ge.GraphEraser("closed-form", members=BEST).fit(left)
    assert rows["both"]["f1"] == alone.evaluate()["f1"]
    assert all(row["best_power"] <= row["log_loss"] + 1e-6 for row in rows.values())
    assert all(len(row["seconds"]) == 2 for row in rows.values())
    assert "| 1e3 |" in members.markdown(report)
