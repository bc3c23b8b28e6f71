"""Whole graphs beside their rivals: the script goes on, and tables say what it found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grapheraser_lab.bench import graph_rivals
from grapheraser_lab.rivals import tuned_graphs
from tests.graphs.collections import Parts, collection_of, random_parts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection of 60 graphs in ten folds, and rivals that are trained for two epochs."""
    monkeypatch.setattr(tuned_graphs, "GRID", tuned_graphs.GRID[3:5])
    collection = collection_of(random_parts(60, seed=5))
    data = tmp_path / "tasks" / "graphs"
    data.mkdir(parents=True)
    arrays: dict[str, Any] = graph_rivals.arrays_of(collection)
    np.savez(data / "mutag.npz", **arrays, y=collection.y, fold=np.arange(60) % 10)
    return tmp_path


def test_rivals_are_read_fold_by_fold(folder: Path) -> None:
    file, out = folder / "tasks" / "graphs" / "mutag.npz", folder / "rivals.jsonl"
    rows = [
        row
        for conv, folds in (("gin", [0, 3, 5]), ("gcn", [3, 5]))
        for row in tuned_graphs.work(file, folds, conv, most=2)
    ]
    out.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"cut off')
    report = graph_rivals.run(["mutag"], root=folder, keep=folder)
    (row,) = report["rows"]
    assert row["tested"] == [3, 5]
    said = [cell["refitted"] for conv in ("gin", "gcn") for cell in row[conv]]
    assert said == [found["refitted"] for found in rows[1:]]
    assert "Mean ratio" in graph_rivals.markdown(report)
    out.write_text("".join(f"{json.dumps(row)}\n" for row in rows[:2]))
    (row,) = graph_rivals.run(["mutag"], root=folder, keep=folder)["rows"]
    assert (row["tested"], len(row["gin"]), len(row["gcn"])) == ([0, 3], 2, 0)
    assert "ratio" not in graph_rivals.markdown({"rows": [row]}).partition("\n")[2]


def test_what_is_done_is_not_asked_for_again() -> None:
    done = {("ptc", fold, "gin") for fold in (0, 1, 2, 7)}
    told = tuned_graphs.jobs(["nci1:8-9", "ptc", "mutag:3"], done, 4)
    assert told == [
        ("nci1", [8, 9], "gin"),
        ("nci1", [8, 9], "gcn"),
        ("ptc", [3, 4, 5, 6], "gin"),
        ("ptc", [8, 9], "gin"),
        ("ptc", [0, 1, 2, 3], "gcn"),
        ("ptc", [4, 5, 6, 7], "gcn"),
        ("ptc", [8, 9], "gcn"),
        ("mutag", [3], "gin"),
        ("mutag", [3], "gcn"),
    ]


def test_a_ratio_is_that_of_the_better_rival_in_its_favour() -> None:
    row = {
        "closed-form": [0.9, 0.7],
        "gin": [{"stopped": 0.5, "refitted": 0.8}, {"stopped": 0.9, "refitted": 0.8}],
        "gcn": [{"stopped": 0.4, "refitted": 0.3}] * 2,
    }
    found, error = graph_rivals.ratio(row)
    assert found == pytest.approx(0.8 / 0.8)
    assert error == pytest.approx(np.std([0.1, -0.1], ddof=1) / np.sqrt(2) / 0.8)


@pytest.mark.parametrize("conv", ["gin", "gcn"])
@pytest.mark.parametrize("on_gpu", [False, True])
def test_networks_side_by_side_are_each_its_own(folder: Path, conv: str, on_gpu: bool) -> None:
    """Against one network over dense neighbours and PyTorch's own batch norm."""
    world = tuned_graphs.World(folder / "tasks" / "graphs" / "mutag.npz", "cpu")
    world.on_gpu = on_gpu  # its sums, on this device
    torch.manual_seed(0)
    setting = tuned_graphs.Setting(conv, 2, 5, "mean", 0.0, 0.01)
    graphs = torch.tensor([[[7, 2, 9], [4, 5, 60]]])
    batch = tuned_graphs.laid_out(world, graphs, 60, 400).step(0)
    net = tuned_graphs.Networks(world, setting, 2, 3)
    out = net(batch)
    out[0, :3].sum().backward()
    assert not any(values.grad[1].any() for values in net.parameters() if values.grad is not None)
    parts = random_parts(60, seed=5)
    for network, some in ((0, [7, 2, 9]), (1, [4, 5])):
        x = torch.cat([world.plain[world.offset[g] : world.offset[g + 1]] for g in some])
        near = _adjacency([parts[graph] for graph in some])
        share = 1 / torch.sqrt(near.sum(1) + 1)
        over = torch.eye(len(near)) + near
        over = over if conv == "gin" else share[:, None] * over * share
        seen = []
        for layer in net.layers:
            assert isinstance(layer, tuned_graphs.Layer)
            x = over @ x @ layer.first[network]
            x = F.relu(F.batch_norm(x, None, None, training=True))
            if conv == "gin":
                x = F.relu(F.batch_norm(x @ layer.second[network], None, None, training=True))
            sizes = [len(parts[graph][0]) for graph in some]
            seen.append(torch.stack([part.mean(0) for part in torch.split(x, sizes)]))
        wanted = torch.cat(seen, 1) @ net.head[network] + net.bias[network]
        assert torch.allclose(out[network, : len(some)], wanted, atol=1e-5)


def _adjacency(parts: Parts) -> torch.Tensor:
    first = np.cumsum([0, *(len(labels) for labels, _, _ in parts)])
    near = torch.zeros(int(first[-1]), int(first[-1]))
    for start, (_, edges, _) in zip(first, parts, strict=False):
        u, v = (edges + start).T
        near[u, v] = near[v, u] = 1
    return near
