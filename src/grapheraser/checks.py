"""Checks of single arguments, with the one form of message for those that fail.

Each function takes the argument's name and owner for the message, and returns the value as a plain
Python object. NumPy scalars pass for the Python value that they hold. A bool is never a number, and
a number is never a bool.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, TypeVar

from grapheraser.errors import ParameterError

C = TypeVar("C", bound=bool | int | float | str | None)


def whole(
    name: str, owner: str, value: object, least: int | None = None, most: int | None = None
) -> int:
    """Return ``value`` as an int in ``[least, most]``; raise `ParameterError` otherwise."""
    plain = _plain(value)
    if not isinstance(plain, bool) and isinstance(plain, Integral):
        number = operator.index(plain)
        if (least is None or number >= least) and (most is None or number <= most):
            return number
    raise ParameterError.of(name, owner, _whole_constraint(least, most), value)


def real(
    name: str,
    owner: str,
    value: object,
    least: float | None = None,
    most: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """Return ``value`` as a finite float within the bounds; raise `ParameterError` otherwise.

    ``least`` and ``most`` belong to the range, ``above`` and ``below`` do not.
    """
    plain = _plain(value)
    if not isinstance(plain, bool) and isinstance(plain, Real) and math.isfinite(plain):
        number = float(plain)
        if (
            (least is None or number >= least)
            and (most is None or number <= most)
            and (above is None or number > above)
            and (below is None or number < below)
        ):
            return number
    raise ParameterError.of(name, owner, _real_constraint(least, most, above, below), value)


def flag(name: str, owner: str, value: object) -> bool:
    """Return ``value`` as a bool; raise `ParameterError` for anything else, 0 and 1 included."""
    plain = _plain(value)
    if isinstance(plain, bool):
        return plain
    raise ParameterError.of(name, owner, "True or False", value)


def one_of(name: str, owner: str, value: object, choices: Iterable[C]) -> C:
    """Return the choice that equals ``value`` in value and type; raise `ParameterError` if none."""
    plain, allowed = _plain(value), list(choices)
    for choice in allowed:
        if type(plain) is type(choice) and plain == choice:
            return choice
    *others, last = (repr(choice) for choice in allowed)
    constraint = f"{', '.join(others)} or {last}" if others else last
    raise ParameterError.of(name, owner, constraint, value)


def _plain(value: Any) -> Any:
    """The Python value that a NumPy scalar holds; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def _whole_constraint(least: int | None, most: int | None) -> str:
    if least is not None and most is not None:
        return f"an int in [{least}, {most}]"
    if least is not None:
        return {0: "a non-negative int", 1: "a positive int"}.get(
            least, f"an int of at least {least}"
        )
    return "an int" if most is None else f"an int of at most {most}"


def _real_constraint(
    least: float | None, most: float | None, above: float | None, below: float | None
) -> str:
    low = f"({above:g}" if above is not None else f"[{least:g}" if least is not None else None
    high = f"{below:g})" if below is not None else f"{most:g}]" if most is not None else None
    if low and high:
        return f"a number in {low}, {high}"
    if low:
        return (
            f"a number above {above:g}" if above is not None else f"a number of at least {least:g}"
        )
    if high:
        return f"a number below {below:g}" if below is not None else f"a number of at most {most:g}"
    return "a number"
