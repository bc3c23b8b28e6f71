"""Whether the weights in a run's folder are those that a receipt speaks of.

A receipt names the digest of a document, which the manifest of the run holds for as long as the
state is current. The document names the files of the weights. Standard library alone.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

from grapheraser.canonical import digest_by_page, digest_of
from grapheraser.errors import VerificationError
from grapheraser.receipts.receipt import Receipt

MANIFEST = "run.json"
_FILE = re.compile(r"(aggregator-|shards/)[0-9a-f]{20}\.safetensors")
_INDEX = re.compile(r"shards-[0-9a-f]{20}\.npy|pages/[0-9a-f]{64}\.page")


def check_published(receipt: Receipt, read: Callable[[str], bytes]) -> int:
    """Raise `VerificationError` unless a run is in the state that the receipt led to.

    Args:
        receipt: one that can be believed.
        read: gives the content of a file of the run, by its name.

    Returns:
        How many files of weights were checked.
    """
    try:
        manifest = json.loads(read(MANIFEST))
        state, aggregator = dict(manifest["state"]), manifest["aggregator"]
        index = manifest["shards"]
        shards = dict(_shards(index["file"], index["sha256"], read, set()))
        named = {f"shards/{sha256[:20]}.safetensors": sha256 for sha256 in shards.values()}
        named[aggregator["file"]] = aggregator["sha256"]
        fits = {
            "aggregator": state.get("aggregator") == aggregator["sha256"],
            "weights": state.get("shards") == digest_by_page(shards),
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error) as error:
        raise VerificationError(f"not the manifest of a run ({error!r}).") from error
    if digest_of(state) != receipt.after:
        raise VerificationError("the run is not in the state that the receipt led to.")
    for name, fit in fits.items():
        if not fit:
            raise VerificationError(f"the {name} were swapped: the receipt is about others.")
    for name, sha256 in named.items():
        _check_file(name, sha256, read)
    return len(named)


def _shards(
    name: str, sha256: str, read: Callable[[str], bytes], seen: set[str]
) -> Iterator[tuple[int, str]]:
    """The shards that an index names, and the digests of their files; see `store.indexes`."""
    if not _INDEX.fullmatch(name) or name in seen:
        raise VerificationError(f"not an index of shards ({name[:80]!r}).")
    seen.add(name)
    content = read(name)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise VerificationError(f"the weights were swapped: {name} is not what it was.")
    (length,) = struct.unpack("<H", content[8:10])  # of the head of an npy file
    linked = b"'part'" in content[10 : 10 + length]
    for start, _, digest in struct.iter_unpack("<qq32s", content[10 + length :]):
        if linked:
            yield from _shards(f"pages/{digest.hex()}.page", digest.hex(), read, seen)
        else:
            yield start, digest.hex()


def _check_file(name: Any, sha256: Any, read: Callable[[str], bytes]) -> None:
    if not isinstance(name, str) or not _FILE.fullmatch(name):
        raise VerificationError(f"not a file of weights ({str(name)[:80]!r}).")
    if hashlib.sha256(read(name)).hexdigest() != sha256:
        raise VerificationError(f"the weights were swapped: {name} is not what it was.")
