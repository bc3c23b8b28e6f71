"""The form that the manifest of a run must have before anything is read by it.

Numbers that sizes follow from have bounds: a small file must not ask for all of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
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
    """The names of what is not of its form: a type, a check, or the forms of its parts."""
    if not isinstance(form, dict):
        if not (isinstance(value, form) if isinstance(form, type | UnionType) else form(value)):
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


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _number(least: int, most: int) -> Check:
    def check(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return check


def _by_name(value: Any) -> bool:
    return isinstance(value, dict) and _texts(list(value.values()))


_PART = {"file": str, "sha256": str}
_MANIFEST: dict[str, Any] = {
    "configuration": dict,
    "graph": {
        **_PART,
        "num_features": _number(0, MAX_COLUMNS),
        "dense": bool,
        "num_classes": _number(0, MAX_CLASSES),
        "name": str,
        "notes": _texts,
        "context": str,
        "inferred": _Optional(_texts),
        "labels": _Optional({"kind": str, "exponents": list}),
        "class_names": _Optional(list),
        "encoding": _Optional(list),
        "types": _Optional({"names": _texts, "relations": list, "widths": list, "weighted": list}),
        "edges": _Optional(
            {"directed": bool, "weighted": bool, "columns": _number(0, MAX_COLUMNS)}
        ),
    },
    "partition": {
        **_PART,
        "num_shards": _number(1, MAX_SHARDS),
        "method": str,
        "capacity": _number(1, 2**63 - 1),
        "inputs": _texts,
        "seed": _number(-(2**63), 2**64),
    },
    "register": {**_PART, "key": str},
    "aggregator": _PART,
    "state": {"nonce": str, "versions": _by_name},
    "receipts": {"count": _number(0, MAX_RECEIPTS), "head": str | None},
    "shards": _PART,
    "signature": _Optional({"key": str, "sig": str}),
}
