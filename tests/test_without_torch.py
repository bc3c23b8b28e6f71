"""The core where torch and PyG can't be imported: it never asks for them, and has the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge

ROOT = Path(__file__).parents[1]
MODELS = ("gcn", "sage", "gat", "gin", "mlp")
OPTIONS: dict[str, Any] = {"num_shards": 2, "epochs": 2}
# Whoever asks for torch is written down, and is told that it is not installed.
BLOCKED = """
import json, sys
from pathlib import Path

class Blocked:
    asked = []
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torch_geometric", "triton"):
            self.asked.append(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import grapheraser as ge
from grapheraser.errors import GraphEraserError

folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
graph = ge.load_dataset("demo")
graph = graph.subgraph(graph.ids[:300])
"""
WORK = """
import importlib, pkgutil
import grapheraser.cli

for module in pkgutil.iter_modules(grapheraser.cli.__path__, "grapheraser.cli."):
    importlib.import_module(module.name)
digests = {}
for number, model in enumerate(("gcn", "sage", "gat", "gin", "mlp", "closed-form")):
    partition = ("hash", "blpa", "bekm", "bekm-gnn", "metis", "hash")[number]
    shards = {} if model == "closed-form" else options
    eraser = ge.GraphEraser(model=model, partition=partition, **shards).fit(graph)
    eraser.unlearn([ge.Nodes(graph.train_nodes[:2]), ge.Edges([tuple(graph.edges[-1])])])
    eraser.update([ge.SetFeatures(graph.train_nodes[5:6], graph.x[:1].toarray())])
    eraser.save(folder / model)
    loaded = ge.GraphEraser.load(folder / model)
    assert loaded.verify().identical
    assert (loaded.predict(graph.test_nodes) == eraser.predict(graph.test_nodes)).all()
    digests[model] = {shard: weights.digest for shard, weights in loaded.shards_.items()}
eraser.export(folder / "exported")
links = ge.LinkEraser().fit(graph)
links.unlearn(ge.Edges([tuple(graph.edges[0])]))
links.rank(int(graph.ids[0]), top=3)
links.save(folder / "links")
assert ge.LinkEraser.load(folder / "links").verify().identical
print(json.dumps({"asked": Blocked.asked, "digests": digests}))
"""
REFUSED = """
def told(work):
    try:
        work()
    except GraphEraserError as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]

def own(inputs, classes): ...

loaded = ge.GraphEraser.load(folder)
node = ge.Nodes(graph.train_nodes[:1])
assert len(loaded.predict(graph.test_nodes)) == len(graph.test_nodes)
print(json.dumps({
    "engine": told(lambda: ge.GraphEraser(engine="pyg").fit(graph)),
    "optimizer": told(lambda: ge.GraphEraser(training=ge.Training(optimizer="sgd")).fit(graph)),
    "module": told(lambda: ge.GraphEraser(model=own).fit(graph)),
    "device": told(lambda: ge.GraphEraser(device="cuda").fit(graph)),
    "links": told(lambda: ge.LinkEraser("shards").fit(graph)),
    "data": told(graph.to_pyg),
    "export": told(lambda: loaded.export(folder / "exported")),
    "retrain": told(lambda: loaded.unlearn(node)),
    "verify": told(loaded.verify),
    "another device": told(lambda: ge.GraphEraser.load(folder, device="cuda")),
    "download": told(lambda: ge.load_dataset("cora", root=folder / "nothing")),
}))
"""


def without_torch(code: str, folder: Path) -> Any:
    """Run code where torch can't be imported; it sees a folder, the options and a graph."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code, str(folder), json.dumps(OPTIONS)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
def test_the_core_never_asks_for_torch_and_has_the_same_bits(tmp_path: Path) -> None:
    found = without_torch(WORK, tmp_path)
    assert found["asked"] == []
    for model in MODELS:
        here = ge.GraphEraser.load(tmp_path / model)
        assert here.verify().identical, model
        digests = {str(shard): weights.digest for shard, weights in here.shards_.items()}
        assert found["digests"][model] == digests
    assert ge.LinkEraser.load(tmp_path / "links").verify().identical


@pytest.mark.gnn
def test_what_needs_torch_says_how_to_install_it(tmp_path: Path) -> None:
    graph = ge.load_dataset("demo")
    graph = graph.subgraph(graph.ids[:300])
    ge.GraphEraser(engine="pyg", **OPTIONS).fit(graph).save(tmp_path / "run")
    found = without_torch(REFUSED, tmp_path / "run")
    other = {"retrain": "ParameterError", "verify": "ParameterError"}
    other["download"] = "DatasetNotFoundError"
    for case, (error, message) in found.items():
        assert error == other.get(case, "MissingExtraError"), (case, message)
        assert "pip install '.[gnn]'" in message, case
