"""The deep search finds every planted residue, and nothing on a clean run."""

from __future__ import annotations

import base64
import gzip
import io
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import grapheraser as ge
from grapheraser.errors import ParameterError
from grapheraser.store import aggregator_digest, load_run, save_run, shard_digest
from grapheraser.store.residues.forgotten import Forgotten, Row
from grapheraser.store.residues.search import Search, search_run
from tests.property.test_targets import World, fitted

NODE = 5


@pytest.fixture(scope="module")
def graph() -> ge.Graph:
    return ge.load_dataset("demo")


@pytest.fixture(scope="module")
def before(graph: ge.Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("residue") / "before"
    ge.GraphEraser(num_shards=20, partition="hash", epochs=3).fit(graph).save(path)
    return path


@pytest.fixture(scope="module")
def node(graph: ge.Graph) -> int:
    """A training node whose features and ties are enough to recognise it by."""
    rich = np.diff(graph.x.indptr)[graph.positions(graph.train_nodes)] >= 6
    tied = graph.degree[graph.positions(graph.train_nodes)] >= 2
    return int(graph.train_nodes[rich & tied][3])


@pytest.fixture(scope="module")
def forgotten(graph: ge.Graph, node: int) -> Forgotten:
    return Forgotten.of(graph, ge.Nodes([node]))


@pytest.fixture(scope="module")
def clean(before: Path, node: int) -> Path:
    path = before.with_name("after")
    shutil.copytree(before, path)
    eraser = ge.GraphEraser.load(path)
    eraser.unlearn(ge.Nodes([node]))
    eraser.save(path)
    return path


@pytest.fixture
def run(clean: Path, tmp_path: Path) -> Path:
    """A copy to plant something in."""
    return Path(shutil.copytree(clean, tmp_path / "run"))


def kinds(search: Search) -> set[str]:
    return {residue.kind for residue in search.residues}


def test_a_clean_run_passes(before: Path, clean: Path, forgotten: Forgotten) -> None:
    for path, sought in ((before, None), (clean, None), (clean, forgotten)):
        search = search_run(path, sought)
        assert search.clean, search.residues
        assert search.files == sum(1 for file in path.rglob("*") if file.is_file())


def test_before_the_request_everything_is_found(before: Path, forgotten: Forgotten) -> None:
    assert {"id", "edge", "feature row"} <= kinds(search_run(before, forgotten))


def test_an_old_weight_file_is_found(before: Path, run: Path) -> None:
    for file in (before / "shards").iterdir():
        if not (run / "shards" / file.name).exists():
            shutil.copy(file, run / "shards" / file.name)
    assert {"stray file", "old weights"} <= kinds(search_run(run))


def test_old_weights_under_another_name_and_packed_are_found(before: Path, run: Path) -> None:
    with zipfile.ZipFile(run / "notes.dat", "w") as archive:
        for file in (before / "shards").iterdir():
            archive.write(file, f"{file.name}.txt")
    assert "old weights" in kinds(search_run(run))


def test_old_weights_in_place_of_the_new_ones_are_found(before: Path, run: Path) -> None:
    """Also when the manifest was put back with them, so that no file is a stray."""
    eraser = ge.GraphEraser.load(run)
    old = ge.GraphEraser.load(before)
    new = {shard: weights.digest for shard, weights in eraser.shards_.items()}
    shard = next(shard for shard in new if old.shards_[shard].digest != new[shard])
    state = eraser._snapshot.state
    shards = {**state.shards, shard: old.shards_[shard]}
    eraser._fitted = replace(
        eraser._fitted, state=replace(state, ensemble=replace(state.ensemble, shards=shards))
    )
    eraser.save(run)
    assert "old weights" in kinds(search_run(run))


def test_a_stale_posterior_is_found(before: Path, run: Path, node: int) -> None:
    stale = ge.GraphEraser.load(before).predict_proba([node, node + 1])
    np.save(run / "cache.npy", stale)
    assert "stale posterior" in kinds(search_run(run))


def test_stale_posteriors_in_a_tensor_file_are_found(before: Path, run: Path, node: int) -> None:
    stale = ge.GraphEraser.load(before).predict_proba([node])
    safetensors.numpy.save_file({"posteriors": stale[None]}, run / "aggregator-0.safetensors")
    assert "stale posterior" in kinds(search_run(run))


@pytest.mark.parametrize("form", ["int32", "int64", "dense", "npz", "gzip", "text"])
def test_a_feature_row_in_a_leftover_file_is_found(
    run: Path, graph: ge.Graph, forgotten: Forgotten, node: int, form: str
) -> None:
    row = forgotten.rows[node]
    columns = np.array(row.columns)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x_indices=np.concatenate([[1, 2], columns, [3]]).astype(np.int32))
    content = {
        "int32": b"junk" + columns.astype(np.int32).tobytes() + b"junk",
        "int64": columns.astype(np.int64).tobytes(),
        "dense": b"\1" * 3 + row.dense(graph.num_features).tobytes(),
        "npz": buffer.getvalue(),
        "gzip": gzip.compress(b"junk" + columns.astype(np.int32).tobytes()),
        "text": ("features: " + ", ".join(map(str, row.columns))).encode(),
    }[form]
    (run / ".graph.npz.partial").write_bytes(content)
    search = search_run(run, forgotten)
    assert {"temporary file", "feature row"} <= kinds(search)
    assert any(str(node) in r.what for r in search.residues if r.kind == "feature row")


def test_old_pages_of_the_graph_are_searched(
    before: Path, run: Path, forgotten: Forgotten, node: int
) -> None:
    """Also under another name, and packed."""
    with zipfile.ZipFile(run / "notes.dat", "w") as archive:
        for file in (before / "pages").iterdir():
            if not (run / "pages" / file.name).exists():
                archive.write(file, f"{file.name}.txt")
    found = search_run(run, forgotten).residues
    assert {residue.kind for residue in found} == {"stray file", "id", "edge", "feature row"}
    assert {f"node {node} in an array 'ids'", f"of node {node}"} <= {r.what for r in found}
    edges = {f"{u}-{v}" for u, v in forgotten.edges}
    assert edges == {residue.what for residue in found if residue.kind == "edge"}


def test_a_leftover_temporary_file_is_found_without_knowing_what_was_forgotten(run: Path) -> None:
    (run / "run.json.partial").write_bytes(b"")
    (run / "shards" / "x.safetensors.partial").write_bytes(b"\0\0")
    assert [r.kind for r in search_run(run).residues] == ["temporary file"] * 2


def test_an_id_in_a_log_is_found(run: Path, forgotten: Forgotten, node: int) -> None:
    (run / ".history.log").write_text(f"03:14 carried out: {node} (done in 12.5 ms)\n")
    found = [r for r in search_run(run, forgotten).residues if r.kind == "id"]
    assert [(r.file, r.what) for r in found] == [(".history.log", f"node {node}")]


def test_an_id_in_a_log_is_found_without_knowing_it(run: Path, node: int) -> None:
    (run / "history.log").write_text(f"03:14 unlearn nodes [{node}, 6]\n")
    assert "id" in kinds(search_run(run))


def test_ids_of_the_current_graph_in_a_log_are_no_residue_of_their_own(
    run: Path, graph: ge.Graph
) -> None:
    (run / "history.log").write_text(f"predict nodes: {graph.test_nodes[0]}\n")
    assert kinds(search_run(run)) == {"stray file"}


@pytest.mark.parametrize("form", ["{}-{}", "({}, {})", "{},{}", "{} {}"])
def test_a_forgotten_tie_is_found_in_text(run: Path, forgotten: Forgotten, form: str) -> None:
    u, v = min(forgotten.edges)
    (run / "log").write_text("x " + form.format(v, u) + "\n")
    assert "edge" in kinds(search_run(run, forgotten))


def test_a_forgotten_tie_is_found_in_an_array(run: Path, forgotten: Forgotten) -> None:
    np.save(run / "edge_index.npy", np.array([[1, u] for u in min(forgotten.edges)]))
    assert "edge" in kinds(search_run(run, forgotten))


def test_no_file_names_a_digest_of_old_weights(before: Path, run: Path) -> None:
    """Nothing in the run could confirm a guess at what its weights were before the request."""
    old = ge.GraphEraser.load(before)
    digests = {weights.digest for weights in old.shards_.values()}
    digests |= {shard_digest(weights) for weights in old.shards_.values()}
    left = ge.GraphEraser.load(run).shards_.values()
    digests -= {weights.digest for weights in left} | {shard_digest(weights) for weights in left}
    digests |= {old.graph_.fingerprint, aggregator_digest(old.aggregator_.tensors)}
    assert len(digests) >= 4
    for file in run.rglob("*"):
        if file.is_file():
            raw = file.read_bytes()
            envelope = json.loads(raw)["payload"] if file.parent.name == "receipts" else ""
            text = raw + base64.b64decode(envelope)
            assert not any(d.encode() in text or bytes.fromhex(d) in text for d in digests)


def test_a_link_is_found(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("x")
    (run / "link").symlink_to(tmp_path / "elsewhere")
    assert kinds(search_run(run)) == {"link"}


def test_a_column_that_no_node_of_the_shard_has_is_found(run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    shard, weights = next(iter(eraser.shards_.items()))
    unused = np.setdiff1d(np.arange(eraser.graph_.num_features), weights.columns)[0]
    columns = np.append(weights.columns, unused).astype(np.int32)
    state = eraser._snapshot.state
    fake = type(weights)(columns, dict(weights.tensors))
    shards = {**state.shards, shard: fake}
    eraser._fitted = replace(
        eraser._fitted, state=replace(state, ensemble=replace(state.ensemble, shards=shards))
    )
    eraser.save(run)
    assert "feature column" in kinds(search_run(run))


def test_forgotten_data_survives_its_file(forgotten: Forgotten, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(forgotten.to_lines())
    assert Forgotten.read(tmp_path / "f") == forgotten


@pytest.mark.parametrize(
    "line", ["[1]", "{", '{"nodes": 3}', '{"who": [1]}', '{"rows": {"1": {}}}', '{"edges": [[1]]}']
)
def test_a_bad_line_is_refused_by_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "f").write_text(f'{{"nodes": [1]}}\n{line}\n')
    with pytest.raises(ParameterError, match="f:2"):
        Forgotten.read(tmp_path / "f")


def test_a_dense_row_has_its_values_in_its_columns() -> None:
    assert Row((1, 3), (2.0, 4.0)).dense(5).tolist() == [0, 2, 0, 4, 0]


def test_a_label_that_is_still_there_or_learned_from_is_found(run: Path) -> None:
    eraser = ge.GraphEraser.load(run)
    node = int(eraser.aggregator_.tensors["nodes"][0])  # a sampled one
    forgotten = Forgotten.of(eraser.graph_, ge.Labels([node]))
    assert forgotten.labels == {node}
    assert kinds(search_run(run, forgotten)) == {"label"}
    stored = load_run(run)
    half_done = replace(stored, graph=stored.graph.without(ge.Labels([node])))
    save_run(run.with_name("half done"), half_done)
    found = search_run(run.with_name("half done"), forgotten)
    assert any("not trained on" in residue.what for residue in found.residues)
    eraser.unlearn(ge.Labels([node]))
    eraser.save(run)
    assert search_run(run, forgotten).residues == ()


def test_forgotten_labels_survive_their_file(tmp_path: Path) -> None:
    path = tmp_path / "forgotten.jsonl"
    path.write_text(Forgotten(labels=frozenset({4, 2})).to_lines())
    assert path.read_text() == '{"labels": [2, 4]}\n'
    assert Forgotten.read(path) == Forgotten(labels=frozenset({2, 4}))


@pytest.mark.parametrize("kind", ["several", "numbers", "one number"])
def test_labels_that_are_still_there_are_found_target_by_target(kind: str, tmp_path: Path) -> None:
    eraser = fitted(World.of(kind, 5))
    all_of, one_of = (int(node) for node in eraser.graph_.train_nodes[:2])
    request = [ge.Labels([all_of]), ge.Labels([one_of], target=0)]
    sought = Forgotten.of(eraser.graph_, request)
    (tmp_path / "sought").write_text(sought.to_lines())
    assert Forgotten.read(tmp_path / "sought") == sought
    eraser.save(tmp_path / "run")
    found = {residue.what for residue in search_run(tmp_path / "run", sought).residues}
    assert found == {f"node {node} still has its label" for node in (all_of, one_of)}
    eraser.unlearn(request)
    eraser.save(tmp_path / "run")
    assert search_run(tmp_path / "run", sought).clean
    assert search_run(tmp_path / "run").clean
