"""Canonical JSON: one spelling per value, so that equal values have equal digests."""

from __future__ import annotations

import hashlib
import json

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: object) -> str:
    """Spell a value as JSON with sorted keys, no spaces, ASCII only and no NaN."""
    return _ENCODER.encode(value)


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
