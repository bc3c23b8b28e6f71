"""A run that moves: engine cpu has the same bits there; what torch trained is never mixed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.engines import engine
from grapheraser.engines.engine import CudaEngine
from grapheraser.environment import torch_processor, versions
from grapheraser.eraser import settings as settings_module
from grapheraser.eraser.missing import MissingEngine
from grapheraser.eraser.settings import made_with, trained_elsewhere
from grapheraser.eraser.verify import verify
from grapheraser.errors import ParameterError
from tests.strategies import TwoHops, small_graph

pytest.importorskip("torch", reason="needs the extra 'gnn'")

ROOT = Path(__file__).parents[2]
CODE = """
import json, sys
import grapheraser as ge
from tests.strategies import small_graph

folder, back = sys.argv[1:]
run = ge.GraphEraser.load(folder)
request = ge.Nodes(run.graph_.train_nodes[:1])
found = {"before": run.verify().to_dict(), "plan": run.plan(request).to_dict()}
found["statement"] = run.unlearn(request).statement
found["after"] = run.verify().identical
fresh = ge.GraphEraser(**run.get_params()).fit(small_graph().without(request))
found["digests"], found["fresh"] = (
    {shard: weights.digest for shard, weights in each.shards_.items()} for each in (run, fresh)
)
said, expected = (each.predict_proba(run.graph_.ids) for each in (run, fresh))
found["same"] = said.tobytes() == expected.tobytes()
run.save(back)
print(json.dumps(found))
"""
needs_vectors = pytest.mark.skipif(
    str(torch_processor("cpu")).endswith("DEFAULT"), reason="torch uses no vectors on this machine"
)


def elsewhere(folder: Path, back: Path) -> dict[str, Any]:
    """Use a run where torch computes with the smallest set of instructions, and keep it."""
    environment = {
        **os.environ,
        "ATEN_CPU_CAPABILITY": "default",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(folder), str(back)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def moved(monkeypatch: pytest.MonkeyPatch, name: str = "OTHER") -> None:
    """Act as if torch computed with something else from now on."""
    monkeypatch.setattr(engine, "torch_processor", lambda device: name)


def digests(eraser: ge.GraphEraser | ge.LinkEraser) -> dict[str, str]:
    return {str(shard): weights.digest for shard, weights in eraser.shards_.items()}


@needs_vectors
@pytest.mark.long
def test_engine_cpu_has_the_same_bits_elsewhere(tmp_path: Path) -> None:
    run = ge.GraphEraser(num_shards=3, epochs=3).fit(small_graph())
    run.save(tmp_path / "run")
    found = elsewhere(tmp_path / "run", tmp_path / "back")
    assert found["before"]["verdict"] == "bit-identical"
    assert found["after"] is True
    request = ge.Nodes(run.graph_.train_nodes[:1])
    assert found["plan"]["retrain"] == list(run.plan(request).retrain)
    run.unlearn(request)
    assert found["digests"] == digests(run)
    assert ge.GraphEraser.load(tmp_path / "back").verify().identical


@needs_vectors
@pytest.mark.long
def test_a_run_that_torch_trained_is_retrained_whole_elsewhere(tmp_path: Path) -> None:
    run = ge.GraphEraser("gin", num_shards=3, epochs=3, engine="pyg").fit(small_graph())
    run.save(tmp_path / "run")
    found = elsewhere(tmp_path / "run", tmp_path / "back")
    before = found["before"]
    assert before["verdict"] == "not comparable here"
    assert (before["identical"], before["differences"]) == (False, [])
    assert "AVX" in before["elsewhere"]
    assert "DEFAULT here" in before["elsewhere"]
    assert found["plan"]["retrain"] == sorted(run.shards_)
    assert before["elsewhere"] in found["plan"]["notes"][0]
    # What is left is not a mixture: all of it is a fresh fit's, there.
    assert found["statement"] == "exact"
    assert found["after"] is True
    assert found["same"] is True
    assert found["digests"] == found["fresh"] != digests(run)
    # And coming back is another move.
    back = ge.GraphEraser.load(tmp_path / "back")
    assert back.plan(ge.Nodes(back.graph_.train_nodes[:1])).retrain == tuple(back.shards_)
    assert back.verify().verdict == "not comparable here"
    assert "DEFAULT" in back.receipts_[-1].versions["processor"]


@pytest.mark.parametrize("kind", ["own", "links"])
def test_every_change_retrains_what_was_trained_elsewhere(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = small_graph()
    few: dict[str, Any] = {"num_shards": 3, "epochs": 1}
    eraser: Any = ge.LinkEraser("shards", width=4, **few)
    brought: dict[str, Any] = {}
    if kind == "own":
        brought = {"model": ge.CustomModel(TwoHops)}
        eraser = ge.GraphEraser(**brought, **few)
    eraser.fit(graph)
    across = next(
        ge.Edges([tuple(edge)])
        for edge in graph.edges.tolist()
        if not eraser.plan(ge.Edges([tuple(edge)])).retrain
    )
    eraser.save(tmp_path / "run")
    moved(monkeypatch)
    for change in (across, ge.SetFeatures(graph.ids[:1], graph.x[[5]])):
        run = type(eraser).load(tmp_path / "run", **brought)
        plan = run.plan(change)
        assert plan.retrain == tuple(run.shards_)
        assert "processor OTHER here" in plan.notes[-1]
        assert any("trained elsewhere; " in shard.why for shard in plan.shards)
        receipt = run.update(change)
        assert receipt.statement == ("exact as replayed" if kind == "own" else "exact")
        assert receipt.versions["processor"] == "OTHER"
        assert receipt.aggregation["notes"][-1] == plan.notes[-1]
        assert tuple(record.shard for record in receipt.details.shards) == plan.retrain
        assert run.verify().identical
        assert not run.plan(ge.Nodes(run.graph_.ids[:1])).notes  # from here on all is of here


def test_another_torch_is_another_place(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ge.GraphEraser(num_shards=3, epochs=1, engine="pyg").fit(small_graph())
    request = ge.Nodes(run.graph_.train_nodes[:1])
    here = versions()
    assert len(run.plan(request).retrain) < 3
    monkeypatch.setattr(settings_module, "versions", lambda device: {**here, "numpy": "9"})
    assert len(run.plan(request).retrain) < 3
    monkeypatch.setattr(settings_module, "versions", lambda device: {**here, "torch": "9.9"})
    plan = run.plan(request)
    assert len(plan.retrain) == 3
    assert f"torch {here['torch']} there, torch 9.9 here" in plan.notes[0]


def test_a_run_that_does_not_name_its_processor_is_retrained_once(tmp_path: Path) -> None:
    run = ge.GraphEraser(num_shards=3, epochs=1, engine="pyg").fit(small_graph())
    now = run._snapshot
    # As runs were written before: what torch computed with stood in the settings.
    resolved = {**now.configuration["resolved"], "processor": "AVX512"}
    settings = {**now.configuration, "resolved": resolved}
    run._fitted = type(now).first(
        now.task, now.arguments, now.settings, now.state, settings, versions()
    )
    run.save(tmp_path / "run")
    old = ge.GraphEraser.load(tmp_path / "run")
    assert old.verify().identical  # the same bits are the same bits, whatever is recorded
    request = ge.Nodes(old.graph_.train_nodes[:1])
    assert "processor not recorded there" in old.plan(request).notes[0]
    assert old.plan(request).retrain == tuple(old.shards_)
    old.unlearn(request)
    assert old.verify().identical
    assert len(old.plan(ge.Nodes(old.graph_.train_nodes[:1])).retrain) < 3


def test_a_new_log_does_not_hide_a_move(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ge.GraphEraser(num_shards=3, epochs=1, engine="pyg").fit(small_graph()).save(tmp_path / "run")
    moved(monkeypatch)
    run = ge.GraphEraser.load(tmp_path / "run")
    run.begin_log()
    assert run.plan(ge.Nodes(run.graph_.train_nodes[:1])).retrain == tuple(run.shards_)


def test_a_moved_run_that_was_changed_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ge.GraphEraser("gin", num_shards=3, epochs=1, engine="pyg").fit(small_graph())
    shard, weights = next(iter(run.shards_.items()))
    name, tensor = next(iter(weights.tensors.items()))
    forged = replace(weights, tensors={**weights.tensors, name: tensor + 1})
    ensemble = replace(run._snapshot.state.ensemble, shards={**run.shards_, shard: forged})
    now = replace(run._snapshot, state=replace(run._snapshot.state, ensemble=ensemble))
    other = replace(now, seals=replace(now.seals, versions={**now.seals.versions, "torch": "1"}))
    found = verify(other)
    assert found.verdict == "NOT identical"
    assert not any("values differ" in line for line in found.differences)  # nobody can tell
    assert any("weights of the shards" in line for line in found.differences)
    assert any("values differ" in line for line in verify(now).differences)


def test_gpus_are_told_apart_and_closed_forms_move_freely(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ge.GraphEraser(num_shards=3, epochs=1).fit(small_graph())._snapshot.settings
    made = {**versions(), "torch": "1", "gpu": "A", "triton": "3"}
    assert trained_elsewhere(settings, made) is None
    monkeypatch.setattr(settings_module, "versions", lambda device: {**made, "gpu": "B"})
    on_gpu = replace(settings, engine=CudaEngine())
    assert trained_elsewhere(on_gpu, made) == "gpu A there, gpu B here"
    model = ge.GraphEraser("closed-form").fit(small_graph())._snapshot.settings.training
    assert trained_elsewhere(replace(on_gpu, training=model), made) is None


def test_shards_that_are_kept_without_their_engine_keep_what_trained_them() -> None:
    settings = ge.GraphEraser(num_shards=3, epochs=1).fit(small_graph())._snapshot.settings
    without = replace(settings, engine=MissingEngine("cuda", "there is no GPU."))
    made = made_with(without, {"torch": "1", "gpu": "A", "numpy": "1"})
    assert (made["torch"], made["gpu"], made["numpy"]) == ("1", "A", versions()["numpy"])


def test_a_worker_of_another_kind_is_refused() -> None:
    here = torch_processor("cpu")
    engine.check_processor(here, "cpu")
    engine.check_processor(None, "cpu")
    with pytest.raises(ParameterError, match="on this machine, and with X where training began"):
        engine.check_processor("X", "cpu")
    assert engine.PygEngine.on("cpu").processor == here


def test_a_processor_is_told_by_its_kind_and_by_what_steers_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = str(torch_processor("cpu"))
    assert len(here.split(", ")) >= 2
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    assert torch_processor("cpu") == f"{here}, MKL_CBWR=COMPATIBLE"
    assert torch_processor("cuda") is None
