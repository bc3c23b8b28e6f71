"""DSSE envelopes (a payload, its type and signatures over both), and the statement in them.

Every part of a receipt must have its form before anything else is believed of it: exact keys,
types, lengths and printable text. A receipt that says more, or says it otherwise, is refused, so
that whoever reads one sees what was checked. Standard library alone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from grapheraser.canonical import canonical_json
from grapheraser.errors import VerificationError
from grapheraser.kinds import CHANGES, FORGET, KINDS, LABELS
from grapheraser.receipts.keys import PublicKey
from grapheraser.untrusted import parse_json

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


# The statement that is signed: in-toto, its subject the state that a change led to.
#
#     _type          https://in-toto.io/Statement/v1
#     subject        the document of the state after the change; see `eraser.document`
#     predicateType  `PREDICATE`
#     predicate      the fields of the receipt, and what the claim covers and does not cover
#
# Integers that may exceed 2**53 are text, since many readers of JSON round them.
PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:grapheraser:receipt:2"
SUBJECT = "state"
# What a receipt claims something about, and what it says nothing about.
SCOPE = (
    "the graph, the partition, the weights of every shard, the aggregator and all cached "
    "posteriors of the run, in memory and in its folder"
)
OUT_OF_SCOPE = (
    "backups, snapshots and copies of the run or of the data",
    "the sources that the data came from",
    "free disk blocks, swap and the records of the file system",
    "answers, exports and models that were given out before the change",
    "receipts that were handed out, and logs of other systems",
)
_EXTRA = {"scope": SCOPE, "out_of_scope": list(OUT_OF_SCOPE)}


def statement_of(fields: Mapping[str, Any]) -> bytes:
    """The statement of a receipt's fields, as canonical JSON."""
    statement = {
        "_type": STATEMENT,
        "subject": [{"name": SUBJECT, "digest": {"sha256": fields["after"]}}],
        "predicateType": PREDICATE,
        "predicate": {**fields, **_EXTRA},
    }
    return canonical_json(statement).encode()


def fields_of(payload: bytes) -> dict[str, Any]:
    """The fields of the receipt in a statement; anything else is a `VerificationError`."""
    try:
        statement = parse_json(payload)
        fields = dict(statement["predicate"])
        for name in _EXTRA:
            fields.pop(name, None)
        is_canonical = statement_of(fields) == payload
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise VerificationError("not a readable receipt: no statement.") from error
    if statement.get("predicateType") != PREDICATE:
        found = str(statement.get("predicateType"))[:80]
        raise VerificationError(f"not a receipt of this version (found {found!r}).")
    if not is_canonical:
        raise VerificationError("the receipt is not spelled canonically.")
    return fields


_MAX_CHARACTERS = 10_000_000


class Signature(NamedTuple):
    """A signature as it stands in an envelope."""

    key: str  # the id of the key
    text: str  # the signature in base64


def encoded(kind: str, payload: bytes) -> bytes:
    """Return what is signed: the pre-authentication encoding of a payload and its type."""
    of_kind = kind.encode()
    return b"DSSEv1 %d %s %d %s" % (len(of_kind), of_kind, len(payload), payload)


def spelled(kind: str, payload: bytes, signatures: Sequence[Signature]) -> str:
    """Write an envelope as canonical JSON; without signatures it says that it is unsigned."""
    body = base64.b64encode(payload).decode()
    signed = [{"keyid": key, "sig": text} for key, text in signatures]
    return canonical_json({"payload": body, "payloadType": kind, "signatures": signed})


def check_signed(
    kind: str, payload: bytes, signatures: Sequence[Signature], verifier: PublicKey
) -> None:
    """Raise `VerificationError` unless this key signed the payload."""
    if not signatures:
        raise VerificationError("the receipt is unsigned.")
    message = encoded(kind, payload)
    if not any(verifier.accepts(message, base64.b64decode(text)) for _, text in signatures):
        raise VerificationError("the receipt is not signed by this key, or was edited.")


def opened(envelope: str, kind: str) -> tuple[bytes, tuple[Signature, ...]]:
    """Read the payload of an envelope and the signatures, whoever made them."""
    if len(envelope) > _MAX_CHARACTERS:
        raise VerificationError("not a DSSE envelope: it is too long.")
    try:
        fields = parse_json(envelope)
        found, signatures = fields["payloadType"], fields["signatures"]
        if set(fields) != {"payload", "payloadType", "signatures"}:
            raise VerificationError("not a DSSE envelope: it has unknown fields.")
        if canonical_json(fields) != envelope:
            raise VerificationError("the envelope is not spelled canonically.")
        payload = base64.b64decode(fields["payload"], validate=True)
        signed = tuple(_signature(**each) for each in signatures)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise VerificationError("not a DSSE envelope, or a truncated one.") from error
    if found != kind:
        raise VerificationError(f"the envelope holds {str(found)[:80]!r}, not {kind!r}.")
    if spelled(kind, payload, signed) != envelope:
        raise VerificationError("the envelope is not spelled canonically.")
    return payload, signed


def _signature(keyid: str, sig: str) -> Signature:
    base64.b64decode(sig, validate=True)
    if not isinstance(keyid, str):
        raise TypeError("the id of a key is text")
    return Signature(keyid, sig)
