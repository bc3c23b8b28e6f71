"""Typed graphs on the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from grapheraser import Graph, GraphEraser, LinkEraser, Nodes
from tests.cli.commands import data, run
from tests.property.test_typed import KNOWS, built, world_of

pytestmark = pytest.mark.filterwarnings("ignore:the closed form ignores the weights")


def test_nodes_and_relations_are_named_with_their_types(tmp_path: Path) -> None:
    world = world_of(np.random.default_rng(3), {"a": 40, "b": 15, "c": 4})
    built(world).to_npz(tmp_path / "typed.npz")
    data("import", tmp_path / "typed.npz", "--out", tmp_path / "store")
    folder = tmp_path / "run"
    data("fit", tmp_path / "store", "--model", "closed-form", "--out", folder)
    assert len(data("predict", folder, "--nodes", "0,a/1")["predictions"]) == 2
    data("unlearn", folder, "--nodes", "c/1,b/3")
    u, v = next(pair for pair in world["e"][KNOWS])
    (tmp_path / "r.jsonl").write_text(f'{{"edges": [["a/{u}", "knows", "a/{v}"]]}}')
    data("unlearn", folder, "--file", tmp_path / "r.jsonl")
    left = GraphEraser.load(folder).graph_
    assert left.contains(["c/1", "b/3", "b/4"]).tolist() == [False, False, True]
    assert len(left.facts) < len(built(world).facts)
    assert "bit-identical" in run("verify", folder).stdout


def test_facts_are_fitted_asked_and_forgotten(tmp_path: Path) -> None:
    triples = [(f"p{i}", "lives in", f"c{i % 4}") for i in range(20)]
    triples += [(f"c{i}", "in", f"land{i % 2}") for i in range(4)]
    triples += [(f"p{i}", "citizen of", f"land{i % 2}") for i in range(15)]
    lines = ["head,relation,tail", *(",".join(fact) for fact in triples)]
    (tmp_path / "facts.csv").write_text("\n".join(lines))
    folder = tmp_path / "run"
    data("import", tmp_path / "facts.csv", "--out", tmp_path / "store")
    assert Graph.open(tmp_path / "store") == Graph.from_facts(triples)
    data("fit", tmp_path / "store", "--task", "links", "--steps", "2", "--out", folder)
    facts = LinkEraser.load(folder)
    (said,) = data("predict", folder, "--facts", "p17,citizen of,land1")["predictions"]
    fact = ("p17", "citizen of", "land1")
    assert said["fact"] == [*fact]
    assert said["probability"] == round(float(facts.predict_proba([fact])[0]), 6)
    ranked = data("rank", folder, "--node", "p17", "--relation", "citizen of", "--top", "1")
    assert [link["node"] for link in ranked["links"]] == ["land1"]
    heads = data("rank", folder, "--node", "land1", "--relation", "citizen of", "--inverse")
    assert {"p15", "p17", "p19"} <= {link["node"] for link in heads["links"]}
    (tmp_path / "held.csv").write_text("p17,citizen of,land1\np16,citizen of,land0\n")
    score = data("evaluate", folder, "--facts", tmp_path / "held.csv")
    assert score == {
        "run": str(folder),
        **facts.score([fact, ("p16", "citizen of", "land0")]).to_dict(),
    }
    assert "MRR" in run("evaluate", folder, "--facts", tmp_path / "held.csv").stdout
    before = len(facts.graph_.facts)
    data("unlearn", folder, "--edges", "p1-lives in-c1")
    assert len(LinkEraser.load(folder).graph_.facts) == before - 1


def test_what_exists_only_through_a_node_goes_with_it(tmp_path: Path) -> None:
    world = world_of(np.random.default_rng(3), {"a": 40, "b": 120, "c": 4})
    graph, folder = built(world), tmp_path / "run"
    GraphEraser("closed-form").fit(graph).save(folder)
    node, followed = next(
        (i, graph.without(Nodes([i], cascade="b")))
        for i in range(40)
        if graph.num_nodes - graph.without(Nodes([i], cascade="b")).num_nodes > 1
    )
    plan = data("unlearn", folder, "--nodes", f"a/{node}", "--cascade", "b", "--dry-run")
    assert any("exist only through those named" in note for note in plan["plan"]["notes"])
    (tmp_path / "r.jsonl").write_text(f'{{"nodes": ["a/{node}"], "cascade": ["b"]}}')
    copied = tmp_path / "copied"
    shutil.copytree(folder, copied)
    data("unlearn", folder, "--nodes", f"a/{node}", "--cascade", "b")
    data("unlearn", copied, "--file", tmp_path / "r.jsonl")
    for path in (folder, copied):
        eraser = GraphEraser.load(path)
        assert eraser.graph_ == followed
        assert eraser.receipts_[0].aggregation["members"] == ["paths"]
    failed = run("unlearn", folder, "--edges", "a/0-a/1", "--cascade", "b")
    assert failed.returncode
    assert "'cascade' goes with nodes (found none)" in failed.stderr
