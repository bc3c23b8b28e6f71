"""Whole graphs beside their rivals: networks side by side learn apart, tables say what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grapheraser_lab.bench import graph_rivals
from grapheraser_lab.rivals import tuned_graphs
from tests.graphs.collections import collection_of, random_parts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection of 60 graphs in ten folds, and rivals that are trained for two epochs."""
    monkeypatch.setattr(tuned_graphs, "GRID", tuned_graphs.GRID[2:4])
    collection = collection_of(random_parts(60, seed=5))
    data = tmp_path / "tasks" / "graphs"
    data.mkdir(parents=True)
    arrays: dict[str, Any] = graph_rivals.arrays_of(collection)
    np.savez(data / "mutag.npz", **arrays, y=collection.y, fold=np.arange(60) % 10)
    return tmp_path


def _world(folder: Path) -> tuned_graphs.World:
    return tuned_graphs.World(folder / "tasks" / "graphs" / "mutag.npz", "cpu")


def test_rivals_are_read_from_their_curves(folder: Path) -> None:
    out, file = folder / "out", folder / "tasks" / "graphs" / "mutag.npz"
    out.mkdir()
    tuned_graphs.work(file, 0, out, epochs=2)
    assert graph_rivals.run(["mutag"], root=folder, keep=folder)["rows"] == []
    tuned_graphs.work(file, 1, out, epochs=2)
    before = (out / "mutag-0.json").read_text()
    tuned_graphs.work(file, 0, out, epochs=2)
    assert (out / "mutag-0.json").read_text() == before
    (row,) = (report := graph_rivals.run(["mutag"], root=folder, keep=folder))["rows"]
    curves = json.loads((out / "mutag-1.json").read_text())
    assert np.array(curves["judged"]).shape == (2, 10, 2)
    for fold, cell in enumerate(row["gcn"]):
        assert cell["refitted"] in [epoch[fold] for epoch in curves["refitted"]]
    assert "Mean ratio" in graph_rivals.markdown(report)


def test_setting_and_epoch_are_chosen_on_the_fold_held_out() -> None:
    def setting(judged: list[float], losses: list[float]) -> dict[str, Any]:
        pairs = zip(judged, losses, strict=True)
        tested = [[10 * sum(judged) + at] for at in range(len(judged))]
        curves = {"judged": [[[*pair]] for pair in pairs], "stopped": tested, "refitted": tested}
        return {"layers": 3, "hidden": 32, "readout": "sum", **curves}

    rows = [setting([0.5, 0.75, 0.25], [-1, -1, -1]), setting([0.5, 0.75, 0.25], [-1, -0.5, -1])]
    assert graph_rivals.chosen(rows, 0)["stopped"] == 10 * 1.5 + 1  # mean .625, of the lower loss
    assert graph_rivals.chosen(rows[:1], 0)["stopped"] == 10 * 1.5 + 1


def test_a_ratio_is_that_of_the_better_rival_in_its_favour() -> None:
    row = {
        "closed-form": [0.9, 0.7],
        "gin": [{"stopped": 0.5, "refitted": 0.8}, {"stopped": 0.9, "refitted": 0.8}],
        "gcn": [{"stopped": 0.4, "refitted": 0.3}] * 2,
    }
    found, error = graph_rivals.ratio(row)
    assert found == pytest.approx(0.8 / 0.8)
    assert error == pytest.approx(np.std([0.1, -0.1], ddof=1) / np.sqrt(2) / 0.8)


def test_batches_hold_the_graphs_as_they_are(folder: Path) -> None:
    world, parts = _world(folder), random_parts(60, seed=5)
    graphs = torch.tensor([[[7, 2], [5, 60]], [[1, 60], [3, 4]]])
    nodes, entries = world.room(graphs)
    made = tuned_graphs.laid_out(world, graphs, nodes, entries)
    for step in range(2):
        batch = made.step(step)
        dense = np.zeros((2 * nodes, 2 * nodes))
        np.add.at(dense, tuple(batch.ends.numpy()), 1)
        dense[-1, -1] = 0
        for network in range(2):
            first = network * nodes
            for place, graph in enumerate(graphs[step, network].tolist()):
                if graph == 60:
                    continue
                labels, edges, _ = parts[graph]
                own = slice(first, first + len(labels))
                wanted = np.zeros((len(labels), len(labels)))
                wanted[edges[:, 0], edges[:, 1]] = wanted[edges[:, 1], edges[:, 0]] = 1
                assert np.array_equal(dense[own, own], wanted)
                assert (batch.owners[own] == 2 * network + place).all()
                dense[own, own] = 0
                first += len(labels)
        assert dense.sum() == 0


def test_every_epoch_has_each_graph_once_for_each_network() -> None:
    learned = [np.arange(0, 200, 2), np.arange(150)]
    for epoch in tuned_graphs.epochs_of(learned, 3, nobody=200, seed=0):
        for network, some in enumerate(learned):
            told = epoch[:, network]
            assert sorted(told[told < 200].tolist()) == some.tolist()


@pytest.mark.parametrize("setting", [tuned_graphs.GRID[0], tuned_graphs.GRID[3]])
def test_networks_side_by_side_say_what_each_says_alone(
    folder: Path, setting: tuned_graphs.Setting
) -> None:
    world = _world(folder)
    torch.manual_seed(0)
    both = tuned_graphs.Networks(world, setting, 2, 2)
    alone = tuned_graphs.Networks(world, setting, 1, 2)
    alone.load_state_dict({name: part[1:] for name, part in both.state_dict().items()})
    graphs = torch.tensor([[[7, 2, 9], [5, 3, 60]]])
    said = []
    for net, asked in ((both, graphs), (alone, graphs[:, 1:])):
        batch = tuned_graphs.laid_out(world, asked, *world.room(asked)).step(0)
        out = net(batch)
        out[-1, :2].square().sum().backward()
        grads = [part.grad[-1] for part in net.parameters() if part.grad is not None]
        said.append([out[-1, :2], *grads, *(part[-1] for part in net.buffers())])
    for one, other in zip(*said, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-3)
