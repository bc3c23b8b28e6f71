"""An exported run: other code gets the same answers from it."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import load_file as load_tensors

import grapheraser as ge
from grapheraser import errors
from grapheraser.models import PRESETS
from grapheraser.models.modules import build_module
from tests.strategies import TwoHops, small_graph, with_edge_values, with_names

ROOT = Path(__file__).parents[2]
EXAMPLE = runpy.run_path(str(ROOT / "examples/predict_exported.py"))


def eraser_of(**options: Any) -> ge.GraphEraser:
    return ge.GraphEraser(**{"num_shards": 4, "epochs": 8, **options})


GCNS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"model": "gcn:paper"},
    "shards alone": {"global_expert": False},
    "mean": {"aggregation": "mean"},
    "majority": {"aggregation": "majority"},
    "learned": {"aggregation": "learned"},
    "one shard": {"num_shards": 1},
    "closed-form": {"model": "closed-form"},
}


@pytest.mark.parametrize("case", GCNS)
def test_the_example_predicts_the_same_classes(case: str, demo: ge.Graph, tmp_path: Path) -> None:
    eraser = eraser_of(**GCNS[case]).fit(demo)
    eraser.unlearn(ge.Nodes([12, 99]))
    eraser.export(tmp_path / "export")
    ids, labels = EXAMPLE["predict"](tmp_path / "export")
    assert ids.tolist() == eraser.graph_.ids.tolist()
    assert labels.tolist() == eraser.predict(ids).tolist()


def test_the_example_has_fifty_lines() -> None:
    text = (ROOT / "examples/predict_exported.py").read_text().split('"""', 2)[2]
    assert len([line for line in text.splitlines() if line.strip()]) <= 50


@pytest.mark.parametrize("directed", [False, True])
def test_weights_and_directions_are_exported(
    directed: bool, demo: ge.Graph, tmp_path: Path
) -> None:
    graph = with_edge_values(demo, directed=directed)
    eraser = eraser_of(global_expert=False).fit(graph)
    eraser.export(tmp_path)
    ids, labels = EXAMPLE["predict"](tmp_path)
    assert labels.tolist() == eraser.predict(ids).tolist()


@pytest.mark.parametrize("model", ["sage", "gat", "gin", "mlp", "gin:paper", "sage:paper"])
def test_state_dicts_are_those_of_ordinary_modules(
    model: str, small: ge.Graph, tmp_path: Path
) -> None:
    eraser = eraser_of(model=model, aggregation="mean").fit(small)
    eraser.export(tmp_path)
    files = load_file(tmp_path / "graph.safetensors")
    x, edges = torch.from_numpy(small.x.toarray()), torch.from_numpy(files["edge_index"])
    positions = np.arange(small.num_nodes)
    for shard, expected in zip(
        eraser.shards_, eraser._snapshot.state.ensemble.posteriors(positions), strict=True
    ):
        module = build_module(PRESETS[model], small.num_features, small.num_classes).eval()
        module.load_state_dict(load_tensors(tmp_path / f"shards/{shard}.safetensors"))
        with torch.no_grad():
            found = module(x, edges).softmax(dim=1).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_module_of_ones_own_is_exported_by_its_name(small: ge.Graph, tmp_path: Path) -> None:
    eraser = eraser_of(model=TwoHops).fit(small)
    eraser.export(tmp_path)
    about = json.loads((tmp_path / "export.json").read_text())
    assert about["model"]["factory"] == "tests.modules:TwoHops"
    module = TwoHops(small.num_features, small.num_classes)
    module.load_state_dict(load_tensors(tmp_path / "shards/0.safetensors"))


def test_the_card_tells_data_metrics_receipts_and_limits(demo: ge.Graph, tmp_path: Path) -> None:
    eraser = eraser_of().fit(demo)
    eraser.export(tmp_path / "before")
    receipt = eraser.unlearn(ge.Nodes([12]))
    eraser.export(tmp_path / "after")
    before, after = ((tmp_path / part / "README.md").read_text() for part in ("before", "after"))
    _, head, body = after.split("---\n", 2)
    entries = dict(line.split(": ", 1) for line in head.splitlines())
    parsed = {key: json.loads(value) for key, value in entries.items()}
    (result,) = parsed["model-index"][0]["results"]
    f1 = eraser.score(eraser.graph_.labelled_test_nodes)
    assert result["metrics"][0]["value"] == round(f1, 4)
    assert parsed["pipeline_tag"] == "graph-ml"
    assert f"{eraser.graph_.num_nodes:,}" in body
    assert f"Micro F1 {f1:.4f}" in body
    assert receipt.digest in body
    assert "exact" in body
    assert "can't forget" in body
    assert "Nothing yet" in before
    assert receipt.digest not in before


def test_nothing_of_the_forgotten_is_in_a_later_export(small: ge.Graph, tmp_path: Path) -> None:
    graph = with_names(small)
    eraser = eraser_of().fit(graph)
    lost = graph.names_of(graph.train_nodes[:1])[0]
    eraser.export(tmp_path / "before")
    eraser.unlearn(ge.Nodes([lost]))
    eraser.export(tmp_path / "after")
    about = [tmp_path / part / "export.json" for part in ("before", "after")]
    names = [json.loads(file.read_text())["names"] for file in about]
    assert set(names[0]) - set(names[1]) == {lost}
    ids = [load_file(tmp_path / p / "graph.safetensors")["ids"] for p in ("before", "after")]
    assert len(ids[0]) == len(ids[1]) + 1
    # What a run that never saw the node exports.
    fresh = eraser_of().fit(eraser.graph_)
    fresh.export(tmp_path / "fresh")
    for file in (tmp_path / "fresh").rglob("*.safetensors"):
        other = tmp_path / "after" / file.relative_to(tmp_path / "fresh")
        assert file.read_bytes() == other.read_bytes()


def test_a_folder_that_holds_something_is_refused(small: ge.Graph, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    eraser = eraser_of(model="closed-form").fit(small)
    with pytest.raises(errors.ParameterError, match="holds something already"):
        eraser.export(tmp_path)
    with pytest.raises(errors.ParameterError, match="holds something already"):
        eraser.export(tmp_path / "mine")
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(errors.NotFittedError):
        eraser_of().export(tmp_path / "new")


def test_without_its_extra_onnx_says_what_to_install(
    small: ge.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    eraser = eraser_of(aggregation="mean").fit(small)
    with pytest.raises(errors.MissingExtraError, match="ONNX export needs"):
        eraser.export(tmp_path / "export", onnx=True)
    assert not (tmp_path / "export").exists()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gcn", "sage", "gat", "gin", "mlp"])
def test_onnx_files_give_the_same_logits(model: str, tmp_path: Path) -> None:
    reason = "the extra onnx, and onnxruntime to check it with, are not installed"
    pytest.importorskip("onnxscript", reason=reason)
    runtime = pytest.importorskip("onnxruntime", reason=reason)
    small = small_graph()
    graph = with_edge_values(small) if model == "gcn" else small
    eraser = eraser_of(model=model, aggregation="mean").fit(graph)
    eraser.export(tmp_path, onnx=True)
    given = {"x": graph.x.toarray(), "edge_index": graph.edge_index}
    if graph.edge_weight is not None:
        given["edge_weight"] = graph.edge_weight
    expected = eraser._snapshot.state.ensemble.posteriors(np.arange(graph.num_nodes))
    for shard, posteriors in zip(eraser.shards_, expected, strict=True):
        session = runtime.InferenceSession(str(tmp_path / f"shards/{shard}.onnx"))
        wanted = {part.name for part in session.get_inputs()}
        (logits,) = session.run(None, {k: v for k, v in given.items() if k in wanted})
        found = torch.from_numpy(logits).softmax(dim=1).numpy()
        np.testing.assert_allclose(found, posteriors, atol=1e-5)
