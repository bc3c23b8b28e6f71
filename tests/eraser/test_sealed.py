"""What changes an answer is sealed; what was loaded is what the last receipt describes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import grapheraser as ge
from grapheraser.eraser.load import load_eraser
from grapheraser.eraser.snapshot import document
from grapheraser.errors import CorruptRunError, GraphEraserError
from grapheraser.receipts import Receipts, digest_of
from grapheraser.store.manifest import is_signed, read_manifest
from tests.store.crafted import Folder, crafted
from tests.strategies import small_graph

pytest.importorskip("cryptography", reason="needs the extra 'sign'")
from grapheraser.store.keys import known_keys

# What may be changed in a manifest unnoticed, and why.
HARMLESS = {
    "signature.key": "a key that nobody knows: the state is compared in full, as without one",
    "partition.inputs in another order": "a set",
}


def graph() -> ge.Graph:
    rng = np.random.default_rng(0)
    edges = rng.integers(0, 60, (2, 150))
    names = np.array([f"node {number}" for number in range(60)], dtype=object)
    return ge.Graph.from_arrays(
        (rng.random((60, 6)) < 0.4).astype(np.float32),
        names[edges[:, edges[0] != edges[1]]],
        rng.integers(0, 2, 60),
        ids=names,
        class_names=["legit", "fraud"],
        test=names[50:],
    )


@pytest.fixture(scope="module", params=["hash", "blpa"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sealed") / "run"
    eraser = ge.GraphEraser(num_shards=3, epochs=2, partition=request.param).fit(graph())
    eraser.unlearn(ge.Nodes(["node 3"]))
    eraser.save(path)
    return path


def keys_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a plain value that is not an object."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from keys_of(part, (*path, key))
    else:
        yield path


def others(value: Any) -> Iterator[tuple[Any, str]]:
    """Values of the same type, and what to call them."""
    if isinstance(value, bool):
        yield not value, ""
    elif isinstance(value, int | float):
        yield value + 1, ""
    elif isinstance(value, str):
        yield value[:-1] + ("0" if value[-1:] != "0" else "1"), ""
    elif isinstance(value, list):
        yield [*value, "another"], ""
        if value != value[::-1]:
            yield value[::-1], " in another order"
    else:
        yield "something", ""


def notices(path: Path, *, signed: bool) -> bool:
    try:
        result = load_eraser(path).verify()
    except GraphEraserError:
        return True
    return bool(result.differences or (signed and result.signatures.wrong))


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
def test_every_key_of_the_manifest_is_sealed(run: Path, tmp_path: Path, signed: bool) -> None:
    path = shutil.copytree(run, tmp_path / "run")
    assert unnoticed_in(path, signed=signed) == []


def tasks() -> Iterator[Any]:
    """A small run of each task, and of graphs that carry more than classes."""
    rng = np.random.default_rng(1)
    x, edges = (rng.random((40, 6)) < 0.4).astype(np.float32), rng.integers(0, 40, (2, 90))
    edges = edges[:, edges[0] != edges[1]]
    several = (rng.random((40, 2)) < 0.4).astype(int)
    words = [("s", "m", "l")[number % 3] for number in range(40)]
    age = [None if number % 9 == 0 else number for number in range(40)]
    nodes: Any = {"id": range(40), "age": age, "size": words, "label": np.arange(40) % 2}
    ties: Any = {"source": edges[0], "target": edges[1]}
    names: Any = {"labels": "several", "target_names": ["a", "b"]}
    yield ge.GraphEraser("closed-form").fit(ge.Graph.from_arrays(x, edges, several, **names))
    yield ge.GraphEraser("closed-form").fit(ge.Graph.from_tables(nodes, ties, missing="mean"))
    yield ge.LinkEraser().fit(ge.Graph.from_arrays(x, edges, np.zeros(40, dtype=int)))
    yield ge.Embedder(width=8).fit(ge.Graph.from_arrays(x, edges, np.arange(40) % 2))
    yield ge.Recommender().fit(sp.csr_array((rng.random((20, 15)) < 0.3).astype(float)))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_key_of_the_manifest_of_every_task_is_sealed(tmp_path: Path) -> None:
    for number, eraser in enumerate(tasks()):
        users = isinstance(eraser, ge.Recommender)
        eraser.unlearn(ge.Users([3]) if users else ge.Nodes(eraser.graph_.ids[3:4]))
        eraser.save(tmp_path / str(number))
        assert unnoticed_in(tmp_path / str(number), signed=False) == []


def unnoticed_in(path: Path, *, signed: bool) -> list[str]:
    """The keys of a manifest that can be changed without anybody noticing."""
    manifest = json.loads((path / "run.json").read_text())
    if not signed:
        manifest.pop("signature")
    unnoticed = []
    for place in keys_of(manifest):
        *way, last = place
        part = manifest
        for key in way:
            part = part[key]
        kept = part[last]
        for other, how in others(kept):
            part[last] = other
            (path / "run.json").write_text(json.dumps(manifest))
            if not notices(path, signed=signed):
                unnoticed.append(".".join(place) + how)
        part[last] = kept
    return sorted(set(unnoticed) - HARMLESS.keys())


def test_the_names_of_classes_can_not_be_swapped(run: Path, tmp_path: Path) -> None:
    path = shutil.copytree(run, tmp_path / "run")
    text = (path / "run.json").read_text()
    said = json.loads(text)
    del said["signature"]
    said["graph"]["class_names"].reverse()
    (path / "run.json").write_text(json.dumps(said))
    eraser = ge.GraphEraser.load(path)
    assert "description: not what the last change left" in eraser.verify().differences
    with pytest.raises(CorruptRunError, match="not in the state that its last receipt describes"):
        eraser.unlearn(ge.Nodes(["node 4"]))


def negated(folder: Folder) -> None:
    for name, array in folder.shards[max(folder.shards)].items():
        if name != "columns":
            np.negative(array, out=array)


def heavier(folder: Folder) -> None:
    def change(page: bytearray) -> None:
        page[-4:] = np.float32(3).tobytes()  # the value of the last entry

    folder.change_page("features", 0, change)


@pytest.mark.parametrize("harm", [negated, heavier])
@pytest.mark.parametrize("signature", ["kept", "dropped"])
def test_nothing_is_forgotten_in_a_run_that_was_tampered_with(
    run: Path, tmp_path: Path, harm: Any, signature: str
) -> None:
    def edit(folder: Folder) -> None:
        harm(folder)
        if signature == "dropped":
            del folder.manifest["signature"]

    path = crafted(run, tmp_path / "run", edit)
    eraser = ge.GraphEraser.load(path)
    for change in (
        lambda: eraser.unlearn(ge.Nodes(["node 4"])),
        lambda: eraser.update(ge.SetLabels(["node 5"], [0])),
        lambda: eraser.reshard(2),
        eraser.begin_log,
    ):
        with pytest.raises(CorruptRunError, match="nothing was changed"):
            change()
    eraser.save(tmp_path / "copy")
    assert "signature" not in read_manifest(tmp_path / "copy")  # nobody vouches for it


def resealed(path: Path, out: Path, *, change: bool, **versions: str) -> None:
    """Somebody without a key turns weights round, with digests and receipts that all fit."""
    eraser = ge.GraphEraser.load(path)
    now = eraser._snapshot
    shard, weights = max(now.state.shards.items())
    turned = {name: np.negative(tensor) for name, tensor in weights.tensors.items()}
    shards = {**now.state.shards, shard: replace(weights, tensors=turned)}
    state = replace(now.state, ensemble=replace(now.state.ensemble, shards=shards))
    seals = replace(now.seals, versions={**now.seals.versions, **versions})
    made = document(state, now.configuration, seals)
    ends = replace(now.ends, fitted=digest_of(made), state=digest_of(made))
    eraser._fitted = replace(
        now, state=state, seals=seals, document=made, ends=ends, receipts=Receipts(), loaded=None
    )
    if change:
        nodes = eraser.graph_.train_nodes
        eraser.unlearn(ge.Nodes(nodes[eraser.partition_.shard_of(nodes) != shard][:1]))
    eraser.save(out)


@pytest.mark.parametrize("change", [False, True], ids=["no receipt", "a receipt of their own"])
def test_nothing_is_signed_that_follows_from_what_nobody_here_has_signed(
    tmp_path: Path, change: bool
) -> None:
    ge.GraphEraser(num_shards=3, epochs=2).fit(small_graph()).save(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHERASER_KEYS", "")
        resealed(tmp_path / "run", tmp_path / "forged", change=change)
    eraser = ge.GraphEraser.load(tmp_path / "forged")
    with pytest.raises(CorruptRunError, match=r"replayed, .* values differ.*; nothing was changed"):
        eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    sound = ge.GraphEraser.load(tmp_path / "run")
    sound.unlearn(ge.Nodes(sound.graph_.train_nodes[:1]))


def test_what_is_said_to_be_of_another_machine_is_trained_anew(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra 'gnn'")
    ge.GraphEraser(num_shards=3, epochs=1, engine="pyg").fit(small_graph()).save(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHERASER_KEYS", "")
        resealed(tmp_path / "run", tmp_path / "forged", change=False, processor="another")
    eraser = ge.GraphEraser.load(tmp_path / "forged")
    before = eraser._snapshot
    with pytest.raises(GraphEraserError):
        eraser.unlearn(ge.Nodes([10**9]))
    assert eraser._snapshot is before  # nothing of it is kept unless a change follows
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1]))
    assert eraser.verify().passed


def test_a_run_goes_on_whether_its_manifest_is_signed_or_not(run: Path, tmp_path: Path) -> None:
    path = shutil.copytree(run, tmp_path / "run")
    assert is_signed(read_manifest(path), known_keys()) is True
    said = json.loads((path / "run.json").read_text())
    for drop in (False, True):
        if drop:
            del said["signature"]
            (path / "run.json").write_text(json.dumps(said))
        eraser = ge.GraphEraser.load(path)
        eraser.unlearn(ge.Nodes(["node 6"]))
        assert eraser.verify().passed


def test_a_state_of_an_earlier_version_says_what_it_does_not_seal(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its document knew less of the graph; the next change seals the rest."""
    kept = ("name", "notes")
    known = {"schema_of": lambda g: {name: getattr(g, name) for name in kept} | {"notes": []}}
    with monkeypatch.context() as patch:
        for name, function in known.items():
            patch.setattr(f"grapheraser.eraser.snapshot.{name}", function)
        eraser = ge.GraphEraser("closed-form").fit(graph())
        eraser.unlearn(ge.Nodes(["node 3"]))
        eraser.save(tmp_path / "old")
    old = ge.GraphEraser.load(tmp_path / "old")
    result = old.verify()
    assert result.passed
    assert any("class_names" in note and "next change" in note for note in result.notes)
    old.unlearn(ge.Nodes(["node 4"]))
    assert not any("class_names" in note for note in old.verify().notes)
