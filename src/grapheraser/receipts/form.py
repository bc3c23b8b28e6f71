"""The form that every part of a receipt must have before anything else is believed of it.

Exact keys, types, lengths and printable text: a receipt that says more, or says it otherwise, is
refused, so that whoever reads one sees what was checked. Standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from grapheraser.errors import VerificationError
from grapheraser.kinds import CHANGES, FORGET, KINDS, LABELS

Check = Callable[[Any], bool]
RESHARD = "reshard"
_HEX = re.compile("[0-9a-f]{64}")
_STATEMENT = re.compile(
    r"exact( as replayed)?( given (partition|schema|partition and schema))?|retrained, not exact"
)
_MAX_TEXT, _MAX_ITEMS = 4000, 100_000


def check_fields(fields: Mapping[str, Any]) -> None:
    """Raise `VerificationError` where a field of a receipt is of another form than in any other."""
    for name, check in _FIELDS.items():
        if name in fields and not check(fields[name]):
            raise VerificationError(f"not a readable receipt ('{name}' is of another form).")


def check_about(about: Mapping[str, Any]) -> None:
    """Raise `VerificationError` unless this is what a part of a receipt may be about."""
    if about.keys() == {RESHARD} and _number(about[RESHARD], 1):
        return
    for kind in (*KINDS.values(), *CHANGES.values()):
        if about.get(kind.verb) == kind.noun:
            # One of a node's several labels is named by the node and the number of the target.
            most = kind.ends + (kind.noun == LABELS.noun)
            known: dict[str, Check] = {kind.verb: _text, "ids": _list(_id, kind.ends, most)}
            known["names"] = _list(_name, kind.ends, kind.ends)
            # Of typed graphs: the numbers of the ends' types, and bits of an id below them.
            known |= {"types": _list(_number, kind.ends, kind.ends), "shift": _number}
            known |= {"relation": _number, "called": _text} if kind.ends > 1 else {}
            if kind.verb != FORGET:
                known |= _VALUES
            odd = [name for name in about if name not in known or not known[name](about[name])]
            if "ids" in about and not odd:
                return
    raise VerificationError("the part is not about anything that a receipt can be about.")


def is_forgotten(about: Mapping[str, Any]) -> bool:
    """Tell whether a part says that something is gone."""
    return FORGET in about


def _text(value: Any, most: int = _MAX_TEXT) -> bool:
    return isinstance(value, str) and len(value) <= most and value.isprintable()


def _matches(pattern: str) -> Check:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _name(value: Any) -> bool:
    # The person's own, of which the id is a hash; any character but one.
    return isinstance(value, str) and 0 < len(value) <= _MAX_TEXT and "\0" not in value


def _id(value: Any) -> bool:
    is_one = isinstance(value, str) and re.fullmatch("0|-?[1-9][0-9]{0,18}", value) is not None
    return is_one and -(2**63) <= int(value) < 2**63


def _digest(value: Any) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def _number(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _label(value: Any) -> bool:
    return value is None or _real(value)


def _list(check: Check, least: int = 0, most: int = _MAX_ITEMS) -> Check:
    return lambda value: (
        isinstance(value, list) and least <= len(value) <= most and all(map(check, value))
    )


def _by_name(check: Check) -> Check:
    """Objects whose values all pass a check."""
    return lambda value: (
        isinstance(value, dict) and all(map(_text, value)) and all(map(check, value.values()))
    )


def _object(needed: Mapping[str, Check], optional: Mapping[str, Check]) -> Check:
    known = {**needed, **optional}

    def check(value: Any) -> bool:
        if not isinstance(value, dict) or not needed.keys() <= value.keys() <= known.keys():
            return False
        return all(known[name](part) for name, part in value.items())

    return check


_TEXTS = _list(_text, most=1000)
# What was added or set: columns and values of a row, a label or several, what an edge carries.
_VALUES: dict[str, Check] = {
    "columns": _list(_number, most=2**26),
    "values": _list(_real, most=2**26),
    # Of several labels or numbers: one for each target, null where it is not set or not known.
    "label": lambda value: _label(value) or _list(_label)(value),
}
_FIELDS: dict[str, Check] = {
    "action": _matches("unlearn|update|insert|reshard"),
    "run": _matches("[!-*,-~]{1,200}"),
    "seed": _matches("-?[0-9]{1,40}"),
    "completed_at": _matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00"),
    **dict.fromkeys(("engine", "device"), _text),
    **dict.fromkeys(
        ("request", "before", "after", "register_before", "register_after", "configuration"),
        _digest,
    ),
    "sequence": lambda value: _number(value, 1),
    "requests": lambda value: _number(value, 1),
    "previous": lambda value: value is None or _digest(value),
    "counts": _by_name(_number),
    "aggregation": _object({"name": _text}, {"members": _TEXTS, "notes": _TEXTS}),
    "versions": _by_name(_text),
    "exactness": _object(
        {"statement": _matches(_STATEMENT.pattern), "reason": _text},
        {
            "partition": _text,
            "partition_inputs": _TEXTS,
            "schema": _TEXTS,
            "replay": lambda value: value is None or _text(value),
        },
    ),
}
