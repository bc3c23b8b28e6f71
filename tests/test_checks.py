"""Checks of arguments: one form of message, plain values out, no bool for a number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from grapheraser.checks import flag, one_of, real, whole
from grapheraser.errors import ParameterError

NO_NUMBER = (True, False, np.True_, None, "3", [3], np.array([3]), 1j, Decimal(3))


@pytest.mark.parametrize("given", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_any_integer_comes_out_as_an_int(given: object) -> None:
    found = whole("epochs", "GraphEraser", given, least=1, most=3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("given", [*NO_NUMBER, 3.0, np.float32(3), math.nan])
def test_what_is_no_integer_is_refused(given: object) -> None:
    with pytest.raises(ParameterError) as caught:
        whole("epochs", "GraphEraser", given)
    assert str(caught.value) == f"'epochs' of GraphEraser must be an int. Got {given!r}."


@pytest.mark.parametrize(
    ("bounds", "constraint"),
    [
        ({"least": 0}, "a non-negative int"),
        ({"least": 1}, "a positive int"),
        ({"least": 2}, "an int of at least 2"),
        ({"most": -2}, "an int of at most -2"),
        ({"least": 2, "most": 9}, "an int in [2, 9]"),
    ],
)
def test_an_integer_out_of_its_range_is_told_the_range(
    bounds: dict[str, int], constraint: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(f"must be {constraint}. Got -1.")):
        whole("k", "f", -1, **bounds)


@pytest.mark.parametrize(
    "given", [1, 1.0, np.float32(1), np.float64(1), np.int64(1), np.array(1.0)]
)
def test_any_real_number_comes_out_as_a_float(given: object) -> None:
    found = real("gamma", "partition_graph", given, 0, 1, above=0.5, below=2)
    assert found == 1.0
    assert type(found) is float


@pytest.mark.parametrize("given", [*NO_NUMBER, math.nan, math.inf, -math.inf, np.float32("nan")])
def test_what_is_no_finite_number_is_refused(given: object) -> None:
    with pytest.raises(ParameterError) as caught:
        real("gamma", "partition_graph", given)
    assert str(caught.value) == f"'gamma' of partition_graph must be a number. Got {given!r}."


@pytest.mark.parametrize(
    ("value", "bounds", "constraint"),
    [
        (-1.0, {"least": 0, "most": 1}, "a number in [0, 1]"),
        (1.0, {"least": 0, "below": 1}, "a number in [0, 1)"),
        (0.0, {"above": 0, "most": 1}, "a number in (0, 1]"),
        (2.5, {"above": 0, "below": 2.5}, "a number in (0, 2.5)"),
        (-0.5, {"least": 0}, "a number of at least 0"),
        (0.0, {"above": 0}, "a number above 0"),
        (2.0, {"most": 1}, "a number of at most 1"),
        (1.0, {"below": 1}, "a number below 1"),
    ],
)
def test_a_number_out_of_its_range_is_told_the_range(
    value: float, bounds: dict[str, float], constraint: str
) -> None:
    with pytest.raises(ParameterError, match=re.escape(f"must be {constraint}. Got {value!r}.")):
        real("p", "f", value, **bounds)


@pytest.mark.parametrize("given", [True, False, np.True_, np.False_])
def test_a_bool_comes_out_as_a_bool(given: object) -> None:
    assert flag("apart", "Sketch", given) is bool(given)


@pytest.mark.parametrize("given", [0, 1, 1.0, None, "True", np.int8(1)])
def test_no_number_passes_for_a_bool(given: object) -> None:
    with pytest.raises(ParameterError, match="'apart' of Sketch must be True or False"):
        flag("apart", "Sketch", given)


@pytest.mark.parametrize("given", [True, "auto", None, np.str_("auto"), np.True_])
def test_a_choice_is_taken_in_its_own_type(given: object) -> None:
    found = one_of("choice", "GraphEraser", given, (True, False, "auto", None))
    assert found == given
    assert type(found) in (bool, str, type(None))


@pytest.mark.parametrize("given", [1, 0, 1.0, "narrow", [True], np.array([True, False])])
def test_what_is_no_choice_is_told_the_choices(given: object) -> None:
    allowed = "must be True, False, 'auto' or None. Got "
    with pytest.raises(ParameterError, match=re.escape(allowed)):
        one_of("choice", "GraphEraser", given, (True, False, "auto", None))


def test_a_single_choice_stands_alone() -> None:
    with pytest.raises(ParameterError, match=r"must be 'convex'\. Got 'paper'"):
        one_of("solver", "f", "paper", ("convex",))


@pytest.mark.parametrize("check", [whole, real, flag])
def test_the_message_names_argument_and_owner(check: Callable[..., Any]) -> None:
    with pytest.raises(ParameterError, match=r"^'name' of Owner must be .*\. Got 'x'\.$"):
        check("name", "Owner", "x")
