"""Digests of tensors: whatever differs, differs in them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines import digest_tensors, joined_digest, tensor_digests

TENSORS: dict[str, NDArray[Any]] = {"a": np.arange(6, dtype=np.int32), "b": np.eye(2)}


def test_names_types_shapes_and_bytes_all_count() -> None:
    variants = [
        TENSORS,
        {"a": TENSORS["a"]},
        {"a": TENSORS["a"], "c": TENSORS["b"]},
        {"a": TENSORS["b"], "b": TENSORS["a"]},
        {**TENSORS, "a": TENSORS["a"].reshape(2, 3)},
        {**TENSORS, "a": TENSORS["a"].astype(np.int64)},
        {**TENSORS, "a": TENSORS["a"].view(np.uint32)},
        {**TENSORS, "b": -TENSORS["b"]},
    ]
    assert len({digest_tensors(tensors) for tensors in variants}) == len(variants)


def test_neither_the_order_of_names_nor_the_layout_in_memory_counts() -> None:
    other = {"b": np.asfortranarray(TENSORS["b"]), "a": np.repeat(TENSORS["a"], 2)[::2]}
    assert digest_tensors(other) == digest_tensors(TENSORS)


def test_the_digest_of_all_is_made_of_that_of_each() -> None:
    each = tensor_digests(TENSORS)
    content = b"<i4|(6,)|" + TENSORS["a"].tobytes()
    assert each["a"] == hashlib.sha256(content).hexdigest()
    lines = f"a|{each['a']}\nb|{each['b']}\n"
    assert joined_digest(each) == hashlib.sha256(lines.encode()).hexdigest()
    assert digest_tensors(TENSORS) == joined_digest(each)
