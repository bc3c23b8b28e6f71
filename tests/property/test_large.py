"""The largest real graphs go end to end: on the disk, forgotten from, saved, loaded, verified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.store import spool
from grapheraser.store.graphs import write_graph

pytestmark = [pytest.mark.long, pytest.mark.data]


@pytest.mark.parametrize("name", ["wordnet", "debian"])
def test_a_thousand_nodes_and_the_hub_are_forgotten(
    name: str, data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (data_root / f"{name}.npz").exists():
        pytest.skip(f"there is no {name}.npz")
    monkeypatch.setattr(spool, "LARGE", 0)
    write_graph(ge.load_dataset(name, data_root), tmp_path / "G")
    graph = ge.load_dataset(tmp_path / "G")
    hub = int(graph.ids[graph.degree.argmax()])
    assert name != "debian" or len(graph.neighbours(hub)) == 21_815
    order = np.random.default_rng(0).permutation(graph.train_nodes)
    eraser = ge.GraphEraser("closed-form").fit(graph)
    eraser.save(tmp_path / "run")
    eraser = ge.GraphEraser.load(tmp_path / "run")
    forgotten = [hub, *(int(node) for node in order[:1_000] if node != hub)][:1_000]
    eraser.unlearn(ge.Nodes([hub]))
    eraser.save(tmp_path / "run")
    for start in range(1, 1_000, 333):
        eraser.unlearn(ge.Nodes(forgotten[start : start + 333]))
    eraser.save(tmp_path / "run")
    again = ge.GraphEraser.load(tmp_path / "run")
    assert not again.graph_.contains(forgotten).any()
    assert again.graph_ == graph.without(ge.Nodes(forgotten))
    assert again.verify().identical
