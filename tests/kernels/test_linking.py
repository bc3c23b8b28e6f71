"""Kernels that call kernels: linked into one program, with the results of the plain functions."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from numba.core.event import install_recorder

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.linking import LinkedLibrary


def _share(total: float, count: int) -> float:
    if count == 0:
        raise ValueError("nothing to share")
    return total / count


def _shares(totals: Any, counts: Any) -> Any:
    out = np.zeros(len(totals))
    for i in range(len(totals)):
        out[i] = share(totals[i], counts[i])
    return out


share = compiled(_share)
TOTALS, COUNTS = np.array([1.0, 2.0, 5.0]), np.array([3, 7, 9])


@pytest.mark.parametrize("helper_first", [True, False])
def test_a_helper_is_called_from_python_and_from_a_kernel(helper_first: bool) -> None:
    shares = compiled(_shares)
    if helper_first:
        assert share(1.0, 3) == _share(1.0, 3)
    expected = [_share(total, int(count)) for total, count in zip(TOTALS, COUNTS, strict=True)]
    assert shares(TOTALS, COUNTS).tolist() == expected
    assert share(2.0, 7) == _share(2.0, 7)


def test_an_error_of_a_helper_reaches_python() -> None:
    with pytest.raises(ValueError, match="nothing to share"):
        compiled(_shares)(TOTALS, np.array([3, 0, 9]))
    with pytest.raises(ValueError, match="nothing to share"):
        share(1.0, 0)


def test_only_what_python_calls_becomes_a_program() -> None:
    shares = compiled(_shares)
    shares(TOTALS, COUNTS)
    (whole,) = shares.overloads.values()
    assert not isinstance(whole.library, LinkedLibrary)
    linked = {part.name: part for part in whole.library._linking_libraries}
    assert isinstance(linked["_share"], LinkedLibrary)
    assert linked["_share"].get_pointer_to_function("_share") == 0


def test_a_failed_compilation_leaves_numba_and_the_collector_as_they_were() -> None:
    def wrong(values: Any) -> Any:
        return values.no_such_attribute

    assert gc.isenabled()
    with pytest.raises(Exception, match="no_such_attribute"):
        compiled(wrong)(TOTALS)
    assert gc.isenabled()
    shares = compiled(_shares)
    assert shares(TOTALS, COUNTS)[0] == 1 / 3
    (whole,) = shares.overloads.values()
    assert not isinstance(whole.library, LinkedLibrary)


def test_numbas_own_functions_are_compiled_once_for_all_kernels() -> None:
    def zeros_for(count: int) -> Any:
        return np.zeros((count, 3), dtype=np.float32)

    helper = compiled(zeros_for)

    def by_call(count: int) -> Any:
        return helper(count)

    with install_recorder("numba:compile") as recorder:
        first = compiled(zeros_for)(2)
        of_numba = len(recorder.buffer)
        second = compiled(by_call)(2)
    assert first.tolist() == second.tolist() == [[0.0] * 3] * 2
    assert len(recorder.buffer) - of_numba == 4, "the beginning and end of both functions of ours"


def test_division_by_zero_is_numpys() -> None:
    def divided(a: float, b: float) -> float:
        return a / b

    assert compiled(divided)(1.0, 0.0) == np.inf
    assert np.isnan(compiled(divided)(0.0, 0.0))
