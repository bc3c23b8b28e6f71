"""The form that the manifest of a run must have before anything is read by it.

Numbers that sizes follow from have bounds: a small file must not ask for all of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grapheraser.errors import CorruptRunError
from grapheraser.partition.base import MAX_SHARDS

Check = Callable[[Any], bool]

MAX_COLUMNS = 2**26
MAX_CLASSES = 2**20
MAX_RECEIPTS = 2**40


def check_manifest(manifest: Mapping[str, Any], where: str) -> None:
    """Raise an error unless each part that a manifest has to have is there, in its form."""
    for wrong in _wrong(manifest, _MANIFEST):
        raise CorruptRunError(f"{where}: {wrong} is missing, or of another form than in any run.")


@dataclass(frozen=True)
class _Optional:
    """The form of something that need not be there."""

    form: Any


def _wrong(value: Any, form: Any, name: str = "") -> Iterator[str]:
    """The names of what is not of its form."""
    if not isinstance(form, dict):
        if not form(value):
            yield name
        return
    if not isinstance(value, Mapping):
        yield name
        return
    for key, inner in form.items():
        path = f"{name}.{key}" if name else key
        if isinstance(inner, _Optional):
            if key in value:
                yield from _wrong(value[key], inner.form, path)
        elif key in value:
            yield from _wrong(value[key], inner, path)
        else:
            yield path


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(least: int, most: int) -> Check:
    def check(value: Any) -> bool:
        return isinstance(value, int) and not _flag(value) and least <= value <= most

    return check


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _head(value: Any) -> bool:
    return value is None or _text(value)


def _by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_text, value.values()))


_PART = {"file": _text, "sha256": _text}
_MANIFEST: dict[str, Any] = {
    "configuration": _object,
    "graph": {
        **_PART,
        "num_features": _number(0, MAX_COLUMNS),
        "dense": _flag,
        "num_classes": _number(0, MAX_CLASSES),
        "name": _text,
        "notes": _texts,
        "context": _text,
        "inferred": _Optional(_texts),
        "labels": _Optional({"kind": _text, "exponents": _list}),
        "class_names": _Optional(_list),
        "encoding": _Optional(_list),
        "types": _Optional(
            {"names": _texts, "relations": _list, "widths": _list, "weighted": _list}
        ),
        "edges": _Optional(
            {"directed": _flag, "weighted": _flag, "columns": _number(0, MAX_COLUMNS)}
        ),
    },
    "partition": {
        **_PART,
        "num_shards": _number(1, MAX_SHARDS),
        "method": _text,
        "capacity": _number(1, 2**63 - 1),
        "inputs": _texts,
        "seed": _number(-(2**63), 2**64),
    },
    "register": {**_PART, "key": _text},
    "aggregator": _PART,
    "state": {"nonce": _text, "versions": _by_name},
    "receipts": {"count": _number(0, MAX_RECEIPTS), "head": _head},
    "shards": _PART,
    "signature": _Optional({"key": _text, "sig": _text}),
}
