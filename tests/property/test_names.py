"""Named nodes are forgotten as exactly as any, and what their names leave behind is nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import CorruptRunError, GraphError, UnknownNodeError
from grapheraser.graph.ids import name_id
from grapheraser.store import page_names
from grapheraser.store.residues.forgotten import Forgotten
from grapheraser.store.residues.search import search_run
from tests.strategies import called, engines, small_graph, with_names

pytestmark = pytest.mark.slow
CASES = [(model, engine) for model in ("gcn", "mlp") for engine in engines()]


def eraser_of(**changes: Any) -> ge.GraphEraser:
    return ge.GraphEraser(**{"num_shards": 3, "epochs": 3, **changes})


def bits(eraser: ge.GraphEraser) -> dict[str, bytes]:
    """Everything that was learned and everything that is predicted."""
    tensors = {name: array.tobytes() for name, array in eraser._snapshot.state.tensors().items()}
    return tensors | {"posteriors": eraser.predict_proba(eraser.graph_.ids).tobytes()}


@pytest.mark.parametrize(("model", "engine"), [*CASES, ("closed-form", "auto")])
@settings(max_examples=5)
@given(st.integers(0, 3), st.randoms(use_true_random=False))
def test_unlearned_equals_fitted_afresh_whatever_the_order_of_arrival(
    model: str, engine: str, seed: int, random: Any
) -> None:
    small = small_graph(seed=seed, split="mixed")
    order = list(range(small.num_nodes))
    random.shuffle(order)
    lost = random.sample(small.ids.tolist(), 3)
    eraser = eraser_of(model=model, engine=engine).fit(with_names(small))
    assert bits(eraser) == bits(eraser_of(model=model, engine=engine).fit(with_names(small, order)))
    receipt = eraser.unlearn(ge.Nodes([called(node) for node in lost]))
    assert receipt.statement == "exact"
    rest = with_names(small.without(ge.Nodes(lost)))
    assert eraser.graph_ == rest
    assert bits(eraser) == bits(eraser_of(model=model, engine=engine).fit(rest))


@pytest.fixture
def run(small: ge.Graph, tmp_path: Path) -> Path:
    eraser_of().fit(with_names(small)).save(tmp_path / "run")
    return tmp_path / "run"


def test_what_is_asked_by_name_is_answered_by_name(small: ge.Graph, run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    one, other = (called(node) for node in small.edges[0])
    assert eraser.explain(one).node == one
    assert eraser.predict([one]).tolist() == eraser.predict([int(name_id(one))]).tolist()
    assert eraser.plan(ge.Edges([(one, other)])).counts["edges"] == 1
    eraser.insert("somebody new", np.ones(small.num_features), 0, [one, other])
    assert eraser.graph_.names_of(eraser.graph_.neighbours("somebody new")).tolist() == sorted(
        [one, other], key=name_id
    )
    eraser.unlearn([ge.Edges([(one, other)]), ge.Nodes("somebody new")])
    assert eraser.verify().identical
    with pytest.raises(UnknownNodeError, match="node 'somebody new' is not in the graph"):
        eraser.unlearn([ge.Features([one]), ge.Nodes(["somebody new"])])


def test_named_nodes_are_added_changed_and_asked_about(small: ge.Graph, run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    one, other, third = (called(node) for node in small.train_nodes[:3])
    row = np.ones((1, small.num_features))
    asked = eraser.predict_proba_new(row, [[one, other]])
    eraser.update(
        [
            ge.AddNodes(["new 1", "new 2"], np.vstack([row, row]), [0, -1], [("new 1", one)]),
            ge.AddEdges([("new 2", other)]),
            ge.SetFeatures([one], row),
            ge.SetLabels([other], [1]),
            ge.Nodes([third]),
        ]
    )
    graph = eraser.graph_
    assert set(graph.names_of(graph.neighbours("new 1"))) == {one}
    assert graph.labels(["new 1", "new 2", other]).tolist() == [0, -1, 1]
    assert third not in set(graph.names_of(graph.ids))
    assert graph.ids.tolist() == [name_id(name) for name in graph.names_of(graph.ids)]
    assert eraser.verify().identical
    assert asked.shape == (1, small.num_classes)
    eraser.save(run)
    assert names_on_disk(run) == set(graph.names_of(graph.ids))
    with pytest.raises(GraphError, match="node 'new 1' is in the graph already"):
        eraser.update(ge.AddNodes(["new 1"], row))
    with pytest.raises(GraphError, match="have names: a new one needs one"):
        eraser.update(ge.AddNodes([17], row))


def test_what_is_skipped_is_told_by_name(small: ge.Graph, run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    there = called(small.train_nodes[0])
    receipt = eraser.unlearn(ge.Nodes([there, "nobody"]), missing="skip")
    assert [str(node) for part in receipt.skipped for node in part.ids] == ["'nobody'"]
    with pytest.raises(UnknownNodeError, match="node 'nobody' is not in the graph"):
        eraser.unlearn(ge.Labels(["nobody"]))


def names_on_disk(run: Path) -> set[str]:
    return {name for file in (run / "pages").iterdir() for name in page_names(file.read_bytes())}


def test_a_forgotten_name_is_nowhere_in_the_folder(small: ge.Graph, run: Path) -> None:
    graph = with_names(small)
    assert names_on_disk(run) == set(graph.names_of(graph.ids))
    lost = [called(node) for node in small.train_nodes[:2]]
    forgotten = Forgotten.of(graph, ge.Nodes(lost))
    assert forgotten.names == set(lost)
    found = search_run(run, forgotten)
    assert {residue.what for residue in found.residues if residue.kind == "name"} == {
        f"node {name!r}" for name in lost
    }
    eraser = ge.GraphEraser.load(run)
    eraser.unlearn(ge.Nodes(lost))
    eraser.save(run)
    assert search_run(run, forgotten).clean
    assert names_on_disk(run) == set(graph.names_of(graph.ids)) - set(lost)
    everything = b"".join(file.read_bytes() for file in run.rglob("*") if file.is_file())
    assert not any(name.encode() in everything for name in lost)
    again = ge.GraphEraser.load(run)
    assert again.verify().identical
    assert again.graph_.names is not None
    assert again.graph_.names.tolist() == eraser.graph_.names.tolist()  # type: ignore[union-attr]


def test_a_planted_name_is_found(small: ge.Graph, run: Path, tmp_path: Path) -> None:
    lost = called(small.train_nodes[0])
    lines = tmp_path / "forgotten.jsonl"
    lines.write_text(Forgotten.of(with_names(small), ge.Nodes(lost)).to_lines())
    forgotten = Forgotten.read(lines)
    assert forgotten.names == {lost}
    eraser = ge.GraphEraser.load(run)
    eraser.unlearn(ge.Nodes(lost))
    eraser.save(run)
    for content in (f"asked by {lost}.".encode(), b"\0\1" + lost.encode() + b"\0"):
        (run / "note").write_bytes(content)
        found = {residue.kind for residue in search_run(run, forgotten).residues}
        assert found == {"stray file", "name"}


def test_a_run_whose_names_were_altered_is_refused(run: Path) -> None:
    import hashlib
    import json

    from grapheraser.graph.pages import files as page_files
    from grapheraser.store import pages

    manifest = json.loads((run / "run.json").read_text())
    entry = manifest["graph"]
    index = page_files.read_index((run / entry["file"]).read_bytes(), page_files.GRAPH).copy()
    old = index["topology"][0].tobytes()
    content = (run / pages.page_file(old)).read_bytes()
    altered = content[:-4] + b"Zoo!"
    new = hashlib.sha256(altered).digest()
    (run / pages.page_file(new)).write_bytes(altered)
    index["topology"][0] = np.frombuffer(new, dtype="V32")[0]
    made = page_files.index_content(index)
    digest = hashlib.sha256(made).hexdigest()
    (run / f"graph-{digest[:20]}.npy").write_bytes(made)
    entry |= {"file": f"graph-{digest[:20]}.npy", "sha256": digest}
    (run / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(CorruptRunError, match="the names of "):
        ge.GraphEraser.load(run)


def test_links_are_ranked_and_forgotten_by_name(small: ge.Graph, tmp_path: Path) -> None:
    graph = with_names(small)
    with pytest.raises(GraphError, match="don't tell sides"):
        ge.LinkEraser(sides=5).fit(graph)
    links = ge.LinkEraser().fit(graph)
    one, other = (called(node) for node in small.edges[0])
    ranked = links.rank(one, top=3)
    assert ranked.node == one
    assert all(name in set(graph.names_of(graph.ids)) for name in ranked.nodes)
    by_id = links.rank(int(name_id(one)), top=3)
    assert by_id.to_dict() == ranked.to_dict()
    assert links.predict_proba([(one, other)]).shape == (1,)
    links.unlearn(ge.Edges([(one, other)]))
    assert links.verify().identical
    links.save(tmp_path / "run")
    assert ge.LinkEraser.load(tmp_path / "run").rank(one, top=3).node == one
