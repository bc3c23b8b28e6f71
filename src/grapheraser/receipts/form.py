"""What the fields of a receipt must be before anything is read from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from grapheraser.errors import VerificationError

_HEX = re.compile("[0-9a-f]{64}")


def check_types(fields: Mapping[str, Any]) -> None:
    """Raise `VerificationError` where a field of a receipt is of another type than in any other."""
    for name, check in _FIELDS.items():
        if name in fields and not check(fields[name]):
            raise VerificationError(f"not a readable receipt ('{name}' is of another type).")


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _digest(value: Any) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _by_name(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Objects whose values all pass a check."""

    def inner(value: Any) -> bool:
        return isinstance(value, dict) and all(map(check, value.values()))

    return inner


def _exactness(value: Any) -> bool:
    return isinstance(value, dict) and _text(value.get("statement")) and _text(value.get("reason"))


_FIELDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("action", "run", "seed", "engine", "device", "completed_at"), _text),
    **dict.fromkeys(
        ("request", "before", "after", "register_before", "register_after", "configuration"),
        _digest,
    ),
    "sequence": _whole,
    "requests": _whole,
    "previous": lambda value: value is None or _digest(value),
    "counts": _by_name(_whole),
    "aggregation": lambda value: isinstance(value, dict),
    "versions": _by_name(_text),
    "exactness": _exactness,
}
