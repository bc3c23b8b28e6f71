"""What the fields of a receipt must be before anything is read from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grapheraser.errors import VerificationError


def check_types(fields: Mapping[str, Any]) -> None:
    """Raise `VerificationError` where a field of a receipt is of another type than in any other."""
    for name, check in _FIELDS.items():
        if name in fields and not check(fields[name]):
            raise VerificationError(f"not a readable receipt ('{name}' is of another type).")
    for record in fields["shards"]:
        for name, check in _OF_SHARDS.items():
            if name in record and not check(record[name]):
                raise VerificationError(
                    f"not a readable receipt ('{name}' of a shard is of another type)."
                )


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return _whole(value) or isinstance(value, float)


def _by_name(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Objects whose values all pass a check."""

    def inner(value: Any) -> bool:
        return isinstance(value, dict) and all(map(check, value.values()))

    return inner


def _exactness(value: Any) -> bool:
    return isinstance(value, dict) and _text(value.get("statement"))


_FIELDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        (
            *("action", "request", "graph_before", "graph_after", "configuration"),
            *("engine", "device", "completed_at"),
        ),
        _text,
    ),
    "sequence": _whole,
    "previous": _text_or_none,
    "counts": _by_name(_whole),
    "aggregation": lambda value: isinstance(value, dict),
    "versions": _by_name(_text),
    "exactness": _exactness,
    "timings": _by_name(_number),
}
_OF_SHARDS: dict[str, Callable[[Any], bool]] = {
    "shard": _whole,
    "seed": _whole,
    "nodes": _whole,
    "before": _text_or_none,
    "after": _text_or_none,
}
