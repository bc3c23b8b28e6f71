"""Canonical JSON: one spelling per value, so that equal values have equal digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

PAGE = 64  # numbers
BLOCK = 64  # rows
BY_BLOCK = " by block"  # ends the names of tensors that are digested by blocks of rows
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: object) -> str:
    """Spell a value as JSON with sorted keys, no spaces, ASCII only and no NaN."""
    return _ENCODER.encode(value)


def digest_of(value: object) -> str:
    """SHA-256 of the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def digest_of_pages(pages: Mapping[int, str]) -> str:
    """SHA-256 of the digests of pages, by their numbers."""
    return digest_of({str(number): digest for number, digest in pages.items()})


def digest_by_page(digests: Mapping[int, str]) -> str:
    """SHA-256 of numbered digests, page by page: page ``p`` is from ``64 p`` to ``64 p + 63``.

    Whoever remembers the digests of pages has less to do when one of the numbered ones changes.
    """
    pages: dict[int, dict[str, str]] = {}
    for number, digest in digests.items():
        pages.setdefault(number // PAGE, {})[str(number)] = digest
    return digest_of_pages({number: digest_of(page) for number, page in pages.items()})


def digest_of_rows(raw: bytes, size: int) -> str:
    """SHA-256 of the digests of all blocks of rows, of so many bytes each."""
    return hashlib.sha256(digests_of_blocks(raw, size)).hexdigest()


def digests_of_blocks(
    raw: bytes | memoryview, size: int, blocks: Iterable[int] | None = None
) -> bytearray:
    """Return the digests of some blocks of rows, one after the other; None: of all."""
    step = BLOCK * size
    if blocks is None:
        blocks = range(-(-len(raw) // step) if step else 0)
    sha = hashlib.sha256
    return bytearray().join([sha(raw[step * b : step * (b + 1)]).digest() for b in blocks])
