"""Folders of others: pipes, devices, sparse giants, counts and names end in a clear error."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import CorruptRunError, GraphEraserError, GraphError, StoreError
from grapheraser.graphs.collection import Collection
from grapheraser.receipts.keys import PublicKey
from grapheraser.recommendation.interactions import read_interactions
from grapheraser.store import stray_files
from grapheraser.store.keys import KeyFolder
from grapheraser.store.residues.search import search_run
from grapheraser.store.run import load_run
from tests.cli.commands import run
from tests.store.runs import fitted

HUGE = 2**33


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "run"
    fitted().save(path)
    return path


@pytest.fixture
def saved(base: Path, tmp_path: Path) -> Path:
    return shutil.copytree(base, tmp_path / "run")


def sparse(file: Path) -> None:
    file.touch()
    os.truncate(file, HUGE)


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def endless(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def files_of(run: Path) -> list[Path]:
    """One file of each kind."""
    manifest = json.loads((run / "run.json").read_text())
    direct = [manifest[name]["file"] for name in ("graph", "shards", "aggregator", "register")]
    folders = [next((run / name).iterdir()) for name in ("pages", "shards", "receipts")]
    return [run / "run.json", *(run / name for name in direct), *folders]


@pytest.mark.parametrize("harm", [sparse, pipe, endless])
@pytest.mark.parametrize("number", range(8))
def test_no_file_of_a_run_is_waited_for_or_fills_the_memory(
    saved: Path, harm: Callable[[Path], None], number: int
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    harm(files_of(saved)[number])
    with pytest.raises(StoreError):
        load_run(saved)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20  # kilobytes


@pytest.mark.parametrize("harm", [sparse, pipe, endless])
@pytest.mark.parametrize("number", range(8))
def test_no_hostile_folder_is_served(
    saved: Path, harm: Callable[[Path], None], number: int
) -> None:
    pytest.importorskip("fastapi", reason="needs the extra 'service'")
    harm(file := files_of(saved)[number])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = run("serve", saved, "--port", 0)
    assert done.returncode == 1
    assert file.name in done.stderr
    assert "Traceback" not in done.stderr
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20


@pytest.mark.parametrize("harm", [sparse, pipe, endless])
@pytest.mark.parametrize("name", ["run.json", "shards", "weights", "receipt", "key", "checkpoint"])
def test_no_published_file_holds_up_the_check_of_a_receipt(
    saved: Path, tmp_path: Path, harm: Callable[[Path], None], name: str
) -> None:
    eraser = ge.GraphEraser.load(saved)
    (part,) = eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[:1])).parts
    eraser.save(saved)
    files = {name: tmp_path / name for name in ("receipt", "key", "checkpoint")}
    files["receipt"].write_text(part.to_json())
    files["key"].write_text(PublicKey(KeyFolder().signing_key().public).to_pem())
    files["checkpoint"].write_text(part.checkpoint or "")
    command = ["receipt", "verify", files["receipt"], "--key", files["key"]]
    command += ["--checkpoint", files["checkpoint"], "--run", saved]
    assert run(*command).returncode == 0
    index = saved / json.loads((saved / "run.json").read_text())["shards"]["file"]
    files |= {"run.json": saved / "run.json", "shards": index}
    files |= {"weights": next((saved / "shards").glob("*.safetensors"))}
    if harm is pipe and name in ("receipt", "key", "checkpoint"):
        pytest.skip("a pipe that the caller names is read, as of <(...)")
    harm(files[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = run(*command)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20


@pytest.mark.parametrize("harm", [sparse, pipe, endless])
@pytest.mark.parametrize("name", ["current", "*.key", "*.pub", "*.secret"])
def test_no_file_of_the_keys_is_waited_for_or_fills_the_memory(
    tmp_path: Path, harm: Callable[[Path], None], name: str
) -> None:
    keys = KeyFolder(tmp_path)
    keys.rotate()
    keys.secret("some")
    (file,) = tmp_path.glob(name)
    harm(file)
    readers = {"*.pub": keys.public_keys, "*.secret": lambda: keys.secret("some")}
    with pytest.raises(StoreError, match=r"plain file|more than|names no key"):
        readers.get(name, keys.signing_key)()


def test_a_count_of_receipts_costs_nothing(saved: Path) -> None:
    manifest = json.loads((saved / "run.json").read_text())
    for count in (10**9, 10**15, 10**30):
        manifest["receipts"]["count"] = count
        (saved / "run.json").write_text(json.dumps(manifest))
        for use in (load_run, stray_files):
            with pytest.raises(StoreError):
                use(saved)


@pytest.fixture
def deep(saved: Path) -> Iterator[Path]:
    """A run with 1,500 folders within one another; pytest itself could not remove them."""
    places = [os.open(saved, os.O_RDONLY)]
    for _ in range(1500):
        os.mkdir("d", dir_fd=places[-1])
        inner = os.open("d", os.O_RDONLY, dir_fd=places[-1])
        if len(places) > 1:
            os.close(places.pop())
        places.append(inner)
    for place in places:
        os.close(place)
    yield saved
    subprocess.run(["rm", "-rf", str(saved)], check=True)


def test_folders_within_folders_and_names_that_are_no_text_are_strays(deep: Path) -> None:
    (deep / os.fsdecode(b"\xff\nverified: bit-identical")).touch()
    found = stray_files(deep)
    assert len(found) == 2
    assert r"\udcff\nverified: bit-identical" in found
    assert all(name.isprintable() for name in found)
    assert {residue.kind for residue in search_run(deep).residues} == {"stray file"}
    assert ge.GraphEraser.load(deep).verify().identical


def test_a_stray_that_unpacks_to_more_than_the_memory_is_searched_to_a_bound(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grapheraser.store.residues.traces._MAX_UNPACKED", 1000)
    (saved / "bomb.gz").write_bytes(gzip.compress(bytes(10**7)))
    with zipfile.ZipFile(saved / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10**7))
    sparse(saved / "giant")
    search = search_run(saved)
    assert {residue.file for residue in search.residues} == {"bomb.gz", "bomb.zip", "giant"}
    assert "too large to be searched" in {residue.what for residue in search.residues}


def test_the_search_says_what_ids_and_the_file_system_tell(tmp_path: Path) -> None:
    for named in (False, True):
        ids = [f"node {number}" for number in range(20)] if named else list(range(20))
        edges = np.stack([np.arange(19), np.arange(1, 20)])
        ends = np.array(ids, dtype=object)[edges] if named else edges
        graph = ge.Graph.from_arrays(np.eye(20), ends, np.arange(20) % 2, ids=ids)
        eraser = ge.GraphEraser("closed-form").fit(graph)
        eraser.unlearn(ge.Nodes(ids[7:8]))
        eraser.save(tmp_path / str(named))
        notes = " ".join(search_run(tmp_path / str(named)).notes)
        assert ("with 1 gaps" in notes) is not named
        assert "ctime" in notes


def member(shape: tuple[int, ...], content: bytes) -> bytes:
    head = io.BytesIO()
    described = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, described)
    return head.getvalue() + content


def test_an_npz_file_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = ge.load_dataset("demo")
    graph.to_npz(tmp_path / "graph.npz")
    assert ge.Graph.from_npz(tmp_path / "graph.npz").fingerprint == graph.fingerprint
    with zipfile.ZipFile(tmp_path / "liar.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for key in ("x", "edge_index", "y"):
            archive.writestr(f"{key}.npy", member((10**8, 10**6), bytes(100)))
    with pytest.raises(GraphError, match="larger than it says"):
        ge.Graph.from_npz(tmp_path / "liar.npz")
    with pytest.raises(GraphError, match="larger than it says"):
        read_interactions(str(tmp_path / "liar.npz"))
    with pytest.raises(GraphError, match="larger than it says"):
        Collection.from_npz(tmp_path / "liar.npz")
    monkeypatch.setattr("grapheraser.graph.formats.npz._memory", lambda: 1000)
    with pytest.raises(GraphError, match="more than this machine's memory"):
        ge.Graph.from_npz(tmp_path / "graph.npz")


def test_a_manifest_that_says_something_twice_is_refused(saved: Path) -> None:
    text = (saved / "run.json").read_text()
    (saved / "run.json").write_text(text.replace("{\n", '{\n"graph": {},\n', 1))
    with pytest.raises(CorruptRunError, match="'graph' is there twice"):
        load_run(saved)
    with pytest.raises(GraphEraserError):
        ge.GraphEraser.load(saved)
