"""The arena: a method of anybody's goes in by one command, and a page comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser_lab.arena.methods import method_of
from grapheraser_lab.arena.worlds import world_of
from tests.cli.commands import run


class Counting:
    """Answers with shares of classes among all nodes: exact, and never any good."""

    exact = True
    keeps: Any = None

    def fit(self, graph: ge.Graph) -> None:
        self.graph = graph

    def unlearn(self, request: Any) -> None:
        self.graph = self.keeps or self.graph.without(request)

    def predict_proba(self, nodes: Any) -> Any:
        assert self.graph.contains(np.asarray(nodes)).all()  # never asked about who is gone
        counts = np.bincount(self.graph.y[self.graph.y >= 0], minlength=self.graph.num_classes)
        return np.tile(counts / counts.sum(), (len(nodes), 1))


class Lying(Counting):
    """Claims to have forgotten, and keeps everything."""

    def unlearn(self, request: Any) -> None:
        del request


class Known:
    """Answers whether a pair is an edge, and forgets edges."""

    task = "links"

    def fit(self, graph: ge.Graph) -> None:
        self.graph = graph

    def unlearn(self, request: Any) -> None:
        self.graph = self.graph.without(request)

    def predict_proba(self, pairs: Any) -> Any:
        return self.graph.has_edges(pairs).astype(float)


class Keeping(Known):
    """Answers as if nothing had been forgotten."""

    def unlearn(self, request: Any) -> None:
        del request


def _run(out: Path, *words: str) -> Any:
    sizes = ("--seeds", "1", "--workers", "0", "--stream", "6", "--attacked", "8")
    done = run("arena", "run", *words, "--datasets", "demo", *sizes, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_method_of_ones_own_ends_in_a_page(tmp_path: Path) -> None:
    found = _run(tmp_path, f"{__name__}:Counting", "--requests", "nodes,edges")
    assert not found["failed"]
    kinds = {one["kind"].removeprefix("arena-") for one in found["results"]}
    assert kinds == {"utility", "stream", "versions", "members", "edges"}
    assert all(one["same"] for one in found["results"] if one["kind"] == "arena-utility")
    page = Path(found["page"]).read_text()
    assert "Counting" in page
    assert "yes (claimed)" in page
    assert {file.name for file in tmp_path.iterdir()} >= {"index.html", "table.md", "cells.csv"}


def test_shadow_models_tell_edges_that_were_kept_and_not_those_that_were_forgotten(
    tmp_path: Path,
) -> None:
    kept, gone = (f"{__name__}:{name}" for name in ("Keeping", "Known"))
    found = _run(tmp_path, kept, gone, "--requests", "edges", "--questions", "members")
    assert {one["method"]: one["auc"] for one in found["results"]} == {kept: 1.0, gone: 0.5}


@pytest.mark.long
@pytest.mark.parametrize("module", ["fine_tuning", "fine_tuning_links"])
def test_methods_of_the_documentation_go_through(module: str, tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric", reason="needs PyG")
    found = _run(tmp_path, f"examples.{module}:FineTuning", "--questions", "utility")
    (one,) = found["results"]
    assert one["before"] > 0.5
    assert not one["same"]
    assert "FineTuning" in Path(found["page"]).read_text()


def test_what_is_there_is_not_measured_again(tmp_path: Path) -> None:
    words = (f"{__name__}:Counting", "--questions", "utility")
    first = _run(tmp_path, *words)
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    assert _run(tmp_path, *words)["results"] == first["results"]
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()} == before


def test_an_edited_method_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for edit in ("", "# edited", ""):
        (tmp_path / "edited.py").write_text(f"from {__name__} import Counting  {edit}")
        _run(tmp_path, "edited:Counting", "--questions", "utility")
    assert len(list((tmp_path / "cells").iterdir())) == 2


def test_a_method_that_only_claims_to_forget_is_seen(tmp_path: Path) -> None:
    (one,) = _run(tmp_path, f"{__name__}:Lying", "--questions", "utility")["results"]
    assert one["claims_exact"]
    assert not one["same"]
    assert one["apart"] > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ("closed-form,links,embeddings", "nodes,edges,features"),
        ("graphs", "graphs,nodes,edges"),
        ("recommendation", "users,items,interactions"),
    ],
)
def test_rows_of_ours_are_exact_in_every_task_and_kind_of_request(
    rows: str, kinds: str, tmp_path: Path
) -> None:
    found = _run(tmp_path, *rows.split(","), "--requests", kinds)
    assert not found["failed"]
    results = found["results"]
    ends = [
        one["points"][-1] if "points" in one else one
        for one in results
        if one["kind"] in ("arena-utility", "arena-stream")
    ]
    assert len(ends) == 2 * len(rows.split(",")) * len(kinds.split(","))
    assert all(one["same"] and one["apart"] == 0 and one["after"] > 0.1 for one in ends)
    seen = {one["requests"] for one in results if one.get("auc") is not None}
    assert seen == set(kinds.split(",")) - {"graphs", "items"}  # nothing of these is left to ask
    for one in results:
        if one["kind"] == "arena-edges":  # planted edges leave nothing
            assert one["healed"] == one["clean"]
            assert one["recovery"] == one["recovery_retrained"]


def test_worlds_ask_about_what_is_left_alone() -> None:
    for task in ("nodes", "links", "embeddings"):
        world = world_of(task, "demo", seed=0)
        request = world.request("nodes", world.order("nodes", 0)[:200])
        rest = world.without(request)
        assert rest.graph.contains(rest.questions.ravel()).all()
        assert len(rest.questions) == len(rest.truth)


def test_inside_a_collection_each_graph_keeps_a_node() -> None:
    world = world_of("graphs", "demo", seed=0)
    parts = world.order("nodes", 0)
    rest = world.without(world.request("nodes", parts))
    sizes = {len(rest.graph[int(one)].nodes) for one in rest.graph.train_graphs}
    assert sizes == {1}
    assert len(rest.graph) == len(world.graph)


def test_what_is_no_method_is_refused() -> None:
    with pytest.raises(ge.errors.ParameterError, match="Choose from: default"):
        method_of("magic")
    with pytest.raises(ge.errors.ParameterError, match="has no 'fit'"):
        method_of("json:JSONDecoder")
