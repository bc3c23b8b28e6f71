"""The command line on collections of graphs: fit, predict, forget, update, evaluate, verify."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.cli.commands import data
from tests.cli.commands import run as said
from tests.graphs.collections import random_parts


def written(path: Path) -> Path:
    parts = random_parts(40, seed=2)
    offset = np.append(0, np.cumsum([len(labels) for labels, _, _ in parts]))
    edges = [pairs + start for (_, pairs, _), start in zip(parts, offset, strict=False)]
    np.savez(
        path,
        node_offset=offset,
        edges=np.concatenate(edges),
        node_label=np.concatenate([labels for labels, _, _ in parts]),
        y=np.array([y for _, _, y in parts]),
        fold=np.arange(40) % 10,
    )
    return path


def test_a_collection_from_fit_to_verify(tmp_path: Path) -> None:
    file, run = written(tmp_path / "toy.npz"), str(tmp_path / "run")
    data("fit", file, "--task", "graphs", "--out", run)
    found = data("predict", run, "--graphs", "3,4")["predictions"]
    assert [one["graph"] for one in found] == [3, 4]
    assert abs(sum(found[0]["values"].values()) - 1) < 1e-6
    (why,) = data("predict", run, "--graphs", "3", "--explain")["predictions"][0]["explanations"]
    most = max(why["nodes"], key=lambda node: abs(why["nodes"][node]))
    told = said("predict", run, "--graphs", "3", "--explain").stdout
    assert f"\n{most} " in told.partition("nodes that decide")[2]
    assert "graph 900 is not in the collection" in said("predict", run, "--graphs", "900").stderr
    assert "test_f1" in data("evaluate", run)
    labels, edges, _ = random_parts(40, seed=2)[5]
    pair = "-".join(map(str, edges[0]))
    receipt = data("unlearn", run, "--graphs", "7", "--graph-edges", f"5-{pair}")["receipt"]
    assert receipt["counts"]["graphs"] == receipt["counts"]["graph_edges"] == 1
    lines = tmp_path / "changes.jsonl"
    new = {"node_label": labels.tolist(), "edges": edges.tolist()}
    lines.write_text(
        json.dumps({"add_graphs": {"ids": [90], "graphs": [new], "y": [1]}})
        + "\n"
        + json.dumps({"graph_nodes": [[9, 0]]})
    )
    told = said("update", run, "--file", str(lines)).stdout
    assert "added       1 graph\n" in told
    assert "\nset " not in told  # a graph that is added is not one that is set
    assert data("receipts", run)["receipts"][-1]["counts"]["added_graphs"] == 1
    assert "4 graphs" in said("evaluate", run).stdout
    assert "2 classes of graphs" in (about := said("info", run).stdout)
    assert "toy: 40 graphs\n" in about
    assert data("verify", run)["identical"]
