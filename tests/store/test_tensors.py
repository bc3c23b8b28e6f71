"""Files of tensors, byte for byte those of the package safetensors."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors import SafetensorError

from grapheraser.store.digests import file_content, file_digest

KINDS = ["u8", "i8", "f8", "f4", "u4", "i4", "f2", "u2", "i2", "i1", "u1", "?"]
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
names = st.text(min_size=1, max_size=6).filter(lambda name: name != "__metadata__")


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[np.generic]:
    shape, seed = draw(shapes), draw(st.integers(0, 2**32 - 1))
    values = np.random.default_rng(seed).integers(0, 250, size=shape)
    return np.asarray(values, dtype=draw(st.sampled_from(KINDS)))


@settings(max_examples=80)
@given(st.dictionaries(names, arrays(), max_size=6))
def test_a_file_is_that_of_the_package(tensors: dict[str, NDArray[np.generic]]) -> None:
    expected = safetensors.numpy.save(tensors)
    assert file_content(tensors) == expected
    assert file_digest(tensors) == hashlib.sha256(expected).hexdigest()


def test_an_array_that_is_read_backwards_or_apart_is_written_in_order() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    read = safetensors.numpy.load(file_content({"a": array.T, "b": array[:, ::2]}))
    assert np.array_equal(read["a"], array.T)
    assert np.array_equal(read["b"], array[:, ::2])


def test_a_type_that_files_do_not_have_is_refused() -> None:
    with pytest.raises(SafetensorError, match="dtype"):
        file_content({"a": np.zeros(2, dtype="U3")})
