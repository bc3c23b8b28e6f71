"""Training options and code of one's own on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import grapheraser as ge
from grapheraser.cli.app import app
from tests.cli.commands import data, run

CODE = """
from functools import partial
from pathlib import Path

import torch
from torch_geometric.nn import SAGEConv

import grapheraser as ge

Path("imported").touch()


class Net(torch.nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.first, self.norm = SAGEConv(in_channels, 8), torch.nn.BatchNorm1d(8)
        self.second = SAGEConv(8, out_channels)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def loss(scores, labels):
    return torch.nn.functional.multi_margin_loss(scores, labels)


net = ge.CustomModel(Net, lr=0.05, hops=2)
halves = partial(torch.optim.Adam, lr=0.5)
nothing = 3
"""
FEW = ("--shards", 3, "--epochs", 2)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with a module of the user's own that leaves a mark when imported."""
    (tmp_path / "mine.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    yield tmp_path
    sys.modules.pop("mine", None)


def forgotten(name: str = "mine") -> None:
    """As in a new process."""
    sys.modules.pop(name, None)
    Path("imported").unlink(missing_ok=True)


def refused(*arguments: object) -> Any:
    done = run(*arguments, "--json")
    assert done.returncode == 1
    return json.loads(done.stdout)["error"]


# Verbs that read a run without what it was fitted with; all others that name one take --trust.
READERS = {"access", "info", "receipts"}
OF_LINKS, OF_EMBEDDINGS, OF_SERVICE = {"rank"}, {"changes"}, {"serve", "restore"}
# It takes runs of earlier versions alone.
OF_EARLIER = {"upgrade"}


def options_of_verbs() -> dict[str, set[str]]:
    """The options of every verb that names a run."""
    verbs = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: {option for parameter in verb.params for option in parameter.opts}
        for name, verb in verbs.items()
        if any(parameter.metavar == "RUN" for parameter in verb.params)
    }


def test_every_verb_that_loads_a_run_takes_trust(folder: Path) -> None:
    verbs = options_of_verbs()
    without = {name for name, options in verbs.items() if "--trust" not in options}
    assert without == READERS | OF_EMBEDDINGS
    data("fit", "demo", "--model", "mine:Net", *FEW, "--out", "run")
    forgotten()
    for name in READERS:
        assert run(name, "run").returncode == 0
    assert not Path("imported").exists()
    assert data("info", "run")["own_code"] == ["mine:Net"]


@pytest.mark.parametrize("model", ["mine:Net", "mine:net"])
def test_every_verb_works_on_a_run_of_ones_own_module(folder: Path, model: str) -> None:
    report = data("fit", "demo", "--model", model, *FEW, "--out", "run")
    assert report["engine"] == "pyg"
    trust = ("--trust", "mine:Net")
    change = {"set_labels": {"nodes": [4], "y": [1]}}
    Path("changes.jsonl").write_text(json.dumps(change) + "\n")
    node = int(ge.load_dataset("demo").train_nodes[0])
    verbs: list[tuple[object, ...]] = [
        ("predict", "run", "--nodes", "1,2", "--explain"),
        ("evaluate", "run"),
        ("unlearn", "run", "--nodes", node, "--dry-run"),
        ("unlearn", "run", "--nodes", node),
        ("reshard", "run", "--shards", 2),
        ("update", "run", "--file", "changes.jsonl"),
        ("verify", "run", "--deep"),
        ("export", "run", "--out", "exported"),
        ("backup", "run", "saved"),
        ("audit", "run", "--minutes", 0.01),
    ]
    assert {str(verb[0]) for verb in verbs} == (
        options_of_verbs().keys() - READERS - OF_LINKS - OF_EMBEDDINGS - OF_SERVICE - OF_EARLIER
    )
    for verb in verbs:
        forgotten()
        error = refused(*verb)
        assert "fitted with a model of its own, 'mine:Net'" in error["message"]
        assert error["hint"] == "if you trust that code, add --trust mine:Net."
        assert not Path("imported").exists()
        done = run(*verb, *trust, "--json")
        # An audit in so little time says by its status what it could not try.
        assert done.returncode == 0 or verb[0] == "audit", done.stderr
        assert "error" not in json.loads(done.stdout)
        assert Path("imported").exists()
    assert len(ge.GraphEraser.load("run", model=sys.modules["mine"].Net).receipts_) == 3
    for verb in (("serve", "run"), ("restore", "saved", "again")):
        forgotten()
        assert "fitted with a model of its own, 'mine:Net'" in refused(*verb)["message"]
        assert not Path("imported").exists()


def test_nothing_is_imported_because_a_run_says_so(folder: Path) -> None:
    data("fit", "demo", *FEW, "--out", "run")
    manifest = json.loads(Path("run/run.json").read_text())
    strange = {"type": "mine:Net", "name": "Net", "options": {}}
    manifest["configuration"]["arguments"]["model"] = strange
    Path("run/run.json").write_text(json.dumps(manifest))
    for given in ((), ("--trust", "mine"), ("--trust", "mine:net"), ("--trust", "other:Net")):
        refused("predict", "run", "--nodes", 1, *given)
        assert not Path("imported").exists()


def test_trust_that_a_run_has_no_use_for_is_refused(folder: Path) -> None:
    data("fit", "demo", *FEW, "--out", "run")
    error = refused("predict", "run", "--nodes", 1, "--trust", "mine:Net")
    assert "has no model, optimizer or loss of its own" in error["message"]
    assert not Path("imported").exists()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nowhere:Net", "can't be imported"),
        ("mine:Nobody", "can't be imported"),
        ("mine:nothing", "must be a class, a function"),
        ("gcn:plain", "can't be imported"),
        (":Net", "must be package.module:Name"),
    ],
)
def test_a_model_that_is_not_there_is_told(folder: Path, model: str, words: str) -> None:
    error = refused("fit", "demo", "--model", model, *FEW, "--out", "run")
    assert words in error["message"]
    assert not Path("run").exists()


def test_what_is_said_about_training_is_used_saved_and_loaded(folder: Path) -> None:
    options = {
        "--learning-rate": 0.05,
        "--weight-decay": 0.01,
        "--optimizer": "adamw",
        "--loss": "cross_entropy",
        "--class-weights": "balanced",
        "--early-stopping": 2,
        "--layers": 3,
        "--hidden": 6,
        "--dropout": 0.25,
        "--norm": "batch",
        "--neighbours": "4,3,-1",
        "--batch-size": 500,
    }
    words = [word for pair in options.items() for word in pair]
    data("fit", "demo", *FEW, *words, "--engine", "pyg", "--out", "run")
    eraser = ge.GraphEraser.load("run")
    assert eraser.training == ge.Training(
        learning_rate=0.05,
        weight_decay=0.01,
        optimizer="adamw",
        loss="cross_entropy",
        class_weights="balanced",
        early_stopping=2,
        layers=3,
        hidden=6,
        dropout=0.25,
        norm="batch",
        neighbours=(4, 3, -1),
        batch_size=500,
    )
    assert eraser.epochs == 2
    assert eraser.shards_[0].tensors["conv2.lin.weight"].shape == (6, 6)
    assert data("verify", "run")["identical"]


@pytest.mark.parametrize(
    ("text", "weights"),
    [("1,2.5,1,1,1", (1.0, 2.5, 1.0, 1.0, 1.0)), ("0:2,3:0.5", ((0, 2.0), (3, 0.5)))],
)
def test_class_weights_are_read(folder: Path, text: str, weights: Any) -> None:
    graph = ge.load_dataset("demo")
    if ":" not in text:
        text = ",".join(["1", "2.5", *["1"] * (graph.num_classes - 2)])
        weights = (1.0, 2.5, *[1.0] * (graph.num_classes - 2))
    options = ("--class-weights", text, "--engine", "pyg")
    data("fit", "demo", *FEW, *options, "--out", "run")
    found = ge.GraphEraser.load("run").training
    assert found is not None
    assert found.class_weights == weights


def test_functions_of_ones_own_are_trusted_by_name(folder: Path) -> None:
    options = ("--engine", "pyg", "--optimizer", "mine:sgd", "--loss", "mine:loss")
    data("fit", "demo", *FEW, *options, "--early-stopping", 1, "--out", "run")
    forgotten()
    both_named = "add --trust mine:sgd --trust mine:loss."
    assert refused("verify", "run")["hint"].endswith(both_named)
    assert "--trust mine:loss" in refused("verify", "run", "--trust", "mine:sgd")["hint"]
    assert not Path("imported").exists()
    both = ("--trust", "mine:sgd", "--trust", "mine:loss")
    assert data("verify", "run", *both)["identical"]
    data("fit", "demo", *FEW, "--engine", "pyg", "--optimizer", "mine:halves", "--out", "halves")
    assert data("verify", "halves", "--trust", "torch.optim.adam:Adam")["identical"]


def test_bad_words_about_training_are_told(folder: Path) -> None:
    for words in (
        ("--optimizer", "lion"),
        ("--loss", "nll"),
        ("--class-weights", "even"),
        ("--class-weights", "9:1"),
        ("--layers", 0),
        ("--layers", 3, "--engine", "cpu"),
        ("--neighbours", "3,3", "--engine", "cpu"),
        ("--neighbours", "3,3,3"),
        ("--neighbours", "many"),
        ("--batch-size", 10),
        ("--task", "links", "--neighbours", "3,3"),
        ("--optimizer", "mine:sgd", "--learning-rate", 0.1),
        ("--model", "mine:Net", "--hidden", 3),
        ("--model", "closed-form", "--dropout", 0.1),
        ("--task", "links", "--layers", 3),
    ):
        refused("fit", "demo", "--shards", 3, *words, "--out", "run")
        assert not Path("run").exists()


def test_a_link_run_may_have_encoders_of_ones_own(folder: Path) -> None:
    options = ("--task", "links", "--members", "both", "--model", "mine:Net", *FEW)
    data("fit", "demo", *options, "--out", "run")
    forgotten()
    assert "--trust mine:Net" in refused("rank", "run", "--node", 3)["hint"]
    for verb in (("rank", "run", "--node", 3), ("predict", "run", "--pairs", "3-17")):
        assert data(*verb, "--trust", "mine:Net")
