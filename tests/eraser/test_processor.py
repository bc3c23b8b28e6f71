"""Another processor: engine cpu has the same bits there; what torch trained is not mixed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.environment import torch_processor
from grapheraser.errors import ParameterError
from grapheraser.training import engine
from tests.strategies import small_graph

ROOT = Path(__file__).parents[2]
CODE = """
import json, sys
import grapheraser as ge
from grapheraser.errors import GraphEraserError

def outcome(work):
    try:
        return work()
    except GraphEraserError as error:
        return error.message

found = []
for folder in sys.argv[1:]:
    run = ge.GraphEraser.load(folder)
    nodes = run.graph_.train_nodes[:1]
    found.append({
        "predicts": len(run.predict(nodes)),
        "verified": outcome(lambda: run.verify().identical),
        "unlearned": outcome(lambda: run.unlearn(ge.Nodes(nodes)).statement),
        "digests": {shard: weights.digest for shard, weights in run.shards_.items()},
    })
print(json.dumps(found))
"""
needs_vectors = pytest.mark.skipif(
    torch_processor("cpu") == "DEFAULT", reason="torch uses no vectors on this machine"
)


def elsewhere(*folders: Path) -> list[dict[str, Any]]:
    """Use runs where torch computes with the smallest set of instructions."""
    environment = {
        **os.environ,
        "ATEN_CPU_CAPABILITY": "default",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE, *map(str, folders)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@needs_vectors
def test_engine_cpu_has_the_same_bits_elsewhere_and_pyg_is_not_mixed(tmp_path: Path) -> None:
    stable = ge.GraphEraser(num_shards=3, epochs=3).fit(small_graph())
    stable.save(tmp_path / "cpu")
    ge.GraphEraser(num_shards=3, epochs=1, engine="pyg").fit(small_graph()).save(tmp_path / "pyg")
    same, other = elsewhere(tmp_path / "cpu", tmp_path / "pyg")
    assert same["verified"] is True
    assert same["unlearned"] == "exact"
    stable.unlearn(ge.Nodes(stable.graph_.train_nodes[:1]))
    here = {str(shard): weights.digest for shard, weights in stable.shards_.items()}
    assert same["digests"] == here
    assert other["predicts"] == 1
    for verb in ("verified", "unlearned"):
        assert "bit for bit: torch computed with" in other[verb]
        assert "DEFAULT here" in other[verb]


def test_what_a_module_of_your_own_says_is_not_mixed_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = small_graph()
    model = ge.CustomModel(module_of_its_own)
    eraser = ge.GraphEraser(model, num_shards=3, epochs=1).fit(graph)
    across = next(
        tuple(edge)
        for edge in graph.edges.tolist()
        if not eraser.plan(ge.Edges([tuple(edge)])).retrain
    )
    eraser.save(tmp_path / "run")
    monkeypatch.setattr(engine, "torch_processor", lambda device: "OTHER")
    elsewhere = ge.GraphEraser.load(tmp_path / "run", model=model)
    for request in (ge.Nodes(graph.train_nodes[:1]), ge.Edges([across])):
        with pytest.raises(ParameterError, match="and with OTHER here"):
            elsewhere.unlearn(request)
    assert not elsewhere.receipts_


def module_of_its_own(in_channels: int, out_channels: int) -> Any:
    from torch_geometric.nn import GCNConv

    return GCNConv(in_channels, out_channels)


def test_a_worker_of_another_kind_is_refused() -> None:
    here = torch_processor("cpu")
    engine.check_processor(here, "cpu")
    engine.check_processor(None, "cpu")
    with pytest.raises(ParameterError, match=f"computes with {here} on this machine, and with X"):
        engine.check_processor("X", "cpu")
    assert engine.PygEngine.on("cpu").processor == here
