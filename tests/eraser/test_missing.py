"""A run on a machine that lacks what trained it, and on one that has more."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import grapheraser as ge
from grapheraser.eraser.save import save
from grapheraser.eraser.snapshot import document
from grapheraser.errors import ParameterError
from grapheraser.receipts import digest_of
from tests.strategies import TwoHops


@pytest.fixture
def eraser(small: ge.Graph) -> ge.GraphEraser:
    return ge.GraphEraser(num_shards=3, epochs=2, seed=4).fit(small)


@pytest.fixture
def saved(eraser: ge.GraphEraser, tmp_path: Path) -> Path:
    eraser.save(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def from_a_gpu(eraser: ge.GraphEraser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same run as if a GPU had trained it, on a machine without one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    now = eraser._snapshot
    configuration = deepcopy(now.configuration)
    for part in ("arguments", "resolved"):
        configuration[part].update(device="cuda:0", engine="cuda")
    described = document(now.state, configuration, now.seals)
    state = digest_of(described)
    ends = replace(now.ends, configuration=digest_of(configuration), state=state, fitted=state)
    save(replace(now, configuration=configuration, document=described, ends=ends), tmp_path / "gpu")
    return tmp_path / "gpu"


@pytest.mark.parametrize("device", [None, "cuda:1", "cpu"])
def test_a_run_from_a_gpu_predicts_without_one(
    eraser: ge.GraphEraser, from_a_gpu: Path, device: str | None
) -> None:
    back = ge.GraphEraser.load(from_a_gpu, device=device)
    ids = back.graph_.ids
    assert back.predict_proba(ids).tobytes() == eraser.predict_proba(ids).tobytes()
    assert back.engine_ == "cuda"
    assert back.plan(ge.Nodes(back.graph_.train_nodes[:1])).retrain
    uses: list[Any] = [
        lambda: back.unlearn(ge.Nodes(back.graph_.train_nodes[:1])),
        lambda: back.insert(1000, [1.0] * 12, 0, []),
        back.verify,
    ]
    missing = "trained on device 'cuda:0'" if device == "cpu" else "no CUDA device"
    for use in uses:
        with pytest.raises(ParameterError, match=f"can't be retrained here.*{missing}"):
            use()
    assert back.receipts_ == ()


def test_what_trains_no_shard_needs_no_gpu(from_a_gpu: Path) -> None:
    back = ge.GraphEraser.load(from_a_gpu)
    receipt = back.unlearn(ge.Nodes(back.graph_.test_nodes[:1]))
    assert receipt.retrained == ()
    assert (receipt.device, receipt.versions["gpu"]) == ("cuda:0", "none")


def test_a_run_from_a_cpu_is_not_trained_on_anything_else(tmp_path: Path, small: ge.Graph) -> None:
    """The reference engine would run there, and give other bits."""
    ge.GraphEraser(model=TwoHops, num_shards=2, epochs=1).fit(small).save(tmp_path / "run")
    back = ge.GraphEraser.load(tmp_path / "run", model=TwoHops, device="meta")
    with pytest.raises(ParameterError, match="trained on device 'cpu', and this is 'meta'"):
        back.unlearn(ge.Nodes(small.train_nodes[:1]))


class Counting:
    """An executor that says how much it did."""

    name = "counting"

    def __init__(self) -> None:
        self.ran = 0

    def map(self, function: Any, tasks: Any, *, names: Any, tick: Any = None) -> list[Any]:
        del names, tick
        self.ran += len(tasks)
        return [function(task) for task in tasks]


def test_a_loaded_run_unlearns_with_another_executor(
    eraser: ge.GraphEraser, saved: Path, small: ge.Graph
) -> None:
    executor = Counting()
    back = ge.GraphEraser.load(saved, executor=executor)
    node = ge.Nodes(small.train_nodes[:1])
    assert back.unlearn(node).shards == eraser.unlearn(node).shards
    assert executor.ran == 1
    assert back.executor is executor


def test_a_device_that_is_none_is_refused_at_once(tmp_path: Path, small: ge.Graph) -> None:
    ge.GraphEraser(num_shards=2, epochs=1).fit(small).save(tmp_path / "run")
    with pytest.raises(ParameterError, match="a torch device"):
        ge.GraphEraser.load(tmp_path / "run", device="gpu")
