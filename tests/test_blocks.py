"""Digests by blocks of rows, against digests of the bytes."""

from __future__ import annotations

import gc
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser import blocks
from grapheraser.errors import VerificationError
from grapheraser.receipts.checking import check_published
from grapheraser.store import aggregator_digest


def expected(array: np.ndarray) -> str:
    parts = [array[at : at + 64].tobytes() for at in range(0, len(array), 64)]
    joined = b"".join(hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(joined).hexdigest()


@given(st.data())
def test_a_changed_array_has_the_digest_of_one_made_afresh(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 300))
    before = np.arange(rows * 3, dtype=np.int32).reshape(rows, 3)
    if data.draw(st.booleans()):
        assert blocks.digest_by_block(before) == expected(before)
    after = before.copy()
    some = data.draw(st.sets(st.integers(0, rows - 1))) if rows else set()
    differ = np.array(sorted(some), dtype=np.int64)
    after[differ] += 1
    blocks.touched(after, before, differ)
    assert blocks.digest_by_block(after) == expected(after)
    assert blocks.same_blocks(after, before) == (not some)


def test_digests_live_as_long_as_their_array() -> None:
    array = np.ones((100, 2))
    blocks.digest_by_block(array)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0
    count = len(blocks._known)
    del array
    gc.collect()
    assert len(blocks._known) == count - 1


def test_the_digest_holds_types_shapes_and_what_is_beside_nobody() -> None:
    array = np.zeros((32, 2), dtype=np.int32)
    variants: list[dict[str, np.ndarray]] = [
        {"a by block": array.copy()},
        {"a by block": array.astype(np.float32)},
        {"a by block": np.zeros((64, 1), dtype=np.int32)},
        {"a by block": array + 1},
        {"a by block": array.copy(), "b": np.zeros(1)},
        {"a": array.copy()},
    ]
    assert len({aggregator_digest(tensors) for tensors in variants}) == len(variants)
    beside = {**variants[4], "beside/c": np.ones(3)}
    assert aggregator_digest(beside) == aggregator_digest(variants[4])


@pytest.mark.parametrize("task", ["nodes", "embeddings"])
def test_a_published_run_is_checked_by_its_files_alone(task: str, tmp_path: Path) -> None:
    graph = ge.load_dataset("demo")
    members = ["words", "surprises"]
    eraser = (
        ge.GraphEraser("closed-form", members=members) if task == "nodes" else ge.Embedder(width=8)
    ).fit(graph)
    receipt = eraser.unlearn(ge.Nodes(graph.train_nodes[:1]))
    eraser.save(tmp_path / "run")

    def read(name: str) -> bytes:
        return (tmp_path / "run" / name).read_bytes()

    assert check_published(receipt, read) == 1
    file = tmp_path / "run" / json.loads(read("run.json"))["aggregator"]["file"]
    swapped = bytearray(file.read_bytes())
    swapped[-1] ^= 1
    other = hashlib.sha256(swapped).hexdigest()
    text = read("run.json").decode()
    old = hashlib.sha256(file.read_bytes()).hexdigest()
    named = file.with_name(file.name.replace(old[:20], other[:20]))
    named.write_bytes(swapped)
    (tmp_path / "run" / "run.json").write_text(
        text.replace(old, other).replace(old[:20], other[:20])
    )
    with pytest.raises(VerificationError, match="swapped"):
        check_published(receipt, read)
