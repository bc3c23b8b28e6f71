"""Nothing in the folder of a run tells a forgotten id from one that was never there."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.receipts import Receipt
from tests.strategies import small_graph

# Large ids, whose bytes are no count or pointer by chance.
CANDIDATES = range(2**40, 2**40 + 2**20)
FORGOTTEN = 2**40 + 777_777
HEX = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def spread() -> ge.Graph:
    """The small graph, with ids spread over all candidates."""
    graph = small_graph()
    ids = np.sort(np.append(CANDIDATES.start + np.arange(1, 40) * 25_013, FORGOTTEN))
    edges = ids[np.searchsorted(graph.ids, graph.edges.T)]
    train, test = (
        ids[np.searchsorted(graph.ids, n)] for n in (graph.train_nodes, graph.test_nodes)
    )
    return ge.Graph.from_arrays(
        graph.x, edges, graph.y, ids=ids, train=train, test=test, each_edge_once=True
    )


def stored(path: Path) -> set[bytes]:
    """Every digest in the folder, written down in any way, and every number of 8 bytes."""
    found: set[bytes] = set()
    for file in path.rglob("*"):
        if not file.is_file():
            continue
        raw = file.read_bytes()
        if file.parent.name == "receipts":
            raw += base64.b64decode(json.loads(raw)["payload"])
        found.update(bytes.fromhex(digest.decode()) for digest in HEX.findall(raw))
        found.update(raw[at : at + 32] for at in range(0, len(raw) - 31, 8))
        found.update(raw[at : at + 8] for at in range(0, len(raw) - 7, 8))
        if raw.startswith(b"\x93NUMPY"):
            index = np.load(file)
            for name in index.dtype.names or ():
                if index.dtype[name].itemsize == 32:
                    found.update(bytes(entry) for entry in index[name])
    return found


def guesses(node: int, secrets: list[bytes]) -> list[bytes]:
    """What an id would have left behind in some form, given every secret that is in the folder."""
    sha, eight = hashlib.sha256, node.to_bytes(8, "little")
    asked = b'{"forget":"node","ids":["%d"]}' % node
    made = [
        eight,
        node.to_bytes(8, "big"),
        sha(b'{"edges":[],"features":[],"nodes":[%d]}' % node).digest(),
        sha(b"\x00" + asked).digest(),
        sha(eight).digest(),
    ]
    for secret in secrets:
        digest = sha(secret + eight).digest()
        made += [digest, digest[:8], digest[7::-1], sha(b"\x02" + secret + eight).digest()]
        made.append(sha(b"\x00" + secret + asked).digest())
    return made


def found_by(path: Path, candidates: range) -> set[int]:
    """The candidates that something in the folder gives away."""
    manifest = json.loads((path / "run.json").read_text())
    secrets = [
        bytes.fromhex(manifest["register"]["key"]),
        bytes.fromhex(manifest["state"]["nonce"]),
    ]
    known = stored(path)
    return {node for node in candidates if not known.isdisjoint(guesses(node, secrets))}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secrecy") / "run"
    eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(spread())
    eraser.save(path)
    assert FORGOTTEN in found_by(path, range(FORGOTTEN - 5, FORGOTTEN + 5)), "it was there"
    eraser.unlearn(ge.Nodes([FORGOTTEN]))
    eraser.save(path)
    return path


@pytest.mark.slow
def test_no_candidate_among_a_million_is_given_away_but_those_who_are_there(run: Path) -> None:
    there = set(ge.GraphEraser.load(run).graph_.ids.tolist())
    assert len(there) == 39
    assert found_by(run, CANDIDATES) == there


@pytest.mark.parametrize("leak", ["id", "digest", "slot", "commitment"])
def test_the_search_would_find_what_leaks(run: Path, tmp_path: Path, leak: str) -> None:
    import shutil

    path = shutil.copytree(run, tmp_path / "run")
    key = bytes.fromhex(json.loads((path / "run.json").read_text())["register"]["key"])
    eight = FORGOTTEN.to_bytes(8, "little")
    content = {
        "id": eight,
        "digest": hashlib.sha256(eight).hexdigest().encode(),
        "slot": hashlib.sha256(key + eight).digest()[:8],
        "commitment": hashlib.sha256(b"\x02" + key + eight).digest(),
    }
    (path / "leak").write_bytes(content[leak])
    assert FORGOTTEN in found_by(path, range(FORGOTTEN - 5, FORGOTTEN + 5))


def shape(receipt: Receipt) -> Any:
    """What a kept receipt says, without what is random."""
    fields = receipt.to_dict()
    for name in ("before", "after", "register_before", "register_after", "request", "run"):
        assert re.fullmatch("[0-9a-f]{64}|grapheraser/[0-9a-f]{32}", fields.pop(name))
    del fields["completed_at"]
    return fields


def test_a_kept_receipt_is_the_same_whoever_it_is_about(small: ge.Graph) -> None:
    """Not even the shard: under `hash` it follows from the id."""
    shapes, details = [], set()
    for node in [*small.train_nodes[:6].tolist(), int(small.test_nodes[0])]:
        eraser = ge.GraphEraser(num_shards=3, epochs=1).fit(small)
        receipt = eraser.unlearn(ge.Nodes([node]))
        details.add((receipt.retrained, receipt.details.relearned, receipt.details.untrained))
        shapes.append(shape(eraser.receipts_[0]))
    assert len(details) > 3, "while the caller is told what was done"
    assert all(found == shapes[0] for found in shapes)


def test_no_file_of_the_data_tells_when_it_was_written(run: Path) -> None:
    dates = {
        file.stat().st_mtime
        for file in run.rglob("*")
        if file.is_file() and file.name not in ("run.json", ".lock")
    }
    assert len(dates) == 1
