"""The manifest of a run, and the files that belong to the run by it.

    run.json                         the manifest
    pages/<digest>.page              what a page of graph, partition or register holds, or a part
                                     of an index
    graph-<digest>.npy               the top of the index of the graph's pages; see `store.indexes`
    partition-<digest>.npy           that of the partition's pages
    register-<digest>.npy            that of the register's pages
    shards-<digest>.npy              that of the shard models
    aggregator-<digest>.safetensors  what the aggregator holds
    shards/<digest>.safetensors      one file per shard model
    receipts/000001-<digest>.json    one file per change: its receipt in an envelope

The manifest names files with their digests. It names pages and shard models through their indexes,
and receipts by their number and the digest of the last, since each receipt names the digest of the
one before: however large a run is, its manifest is short.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.canonical import canonical_json
from grapheraser.errors import CorruptRunError, RunNotFoundError, RunVersionError, VerificationError
from grapheraser.graph.pages.files import GRAPH
from grapheraser.receipts import Receipt, Receipts, Stored
from grapheraser.receipts.envelope import encoded
from grapheraser.receipts.keys import PublicKey
from grapheraser.store.files import MAX_FILE, TEMPORARY, read_checked
from grapheraser.store.indexes import MAX_INDEX, Index, Remembered, read_levels
from grapheraser.store.keys import signer_at_hand
from grapheraser.store.pages import MODELS, SHARDS, SLOTS, files_of, page_file
from grapheraser.store.schema import check_manifest
from grapheraser.untrusted import MAX_JSON, parse_json, read_plain

MANIFEST, LOCK = "run.json", ".lock"
# There while a save changes the folder, and after one that did not finish.
MARKER = f"saving{TEMPORARY}"
FOLDERS = ("pages", "shards", "receipts")
# Raise the version when the content changes its meaning, not only its shape.
FORMAT, VERSION = "grapheraser-run", 9
# `upgrade` reads graph, partition and settings from this version on.
OLDEST = 8
SIGNATURE = "signature"
OVERWRITE = "overwrite it with `grapheraser fit --replace`, or save(..., replace=True)."

# What is named through an index, and the kind of its entries.
INDEXES = {"graph": GRAPH, "partition": SHARDS, "register": SLOTS, "shards": MODELS}
remembered = Remembered()

_HEX = "[0-9a-f]{20}"
# Earlier versions had graph and partition in one npz file each.
_PART = re.compile(
    rf"(graph|partition|register|shards)-{_HEX}\.np[yz]|(aggregator-|shards/){_HEX}\.safetensors"
    rf"|pages/[0-9a-f]{{64}}\.page|receipts/\d{{6,}}-{_HEX}\.json"
)
_LEFTOVER = re.compile(
    rf"(run\.json|{_PART.pattern})(\.[0-9a-f]{{8}})?{re.escape(TEMPORARY)}|{re.escape(MARKER)}"
)
_NUMBER = re.compile(rf"receipts/(\d{{6,}})-{_HEX}\.json")


def read_manifest(path: Path, *, oldest: int = VERSION) -> dict[str, Any]:
    """The manifest of a run in this version of the format, or in one from ``oldest`` on."""
    check_folders(path)
    try:
        manifest = parse_json(read_plain(path / MANIFEST, MAX_JSON) or b"")
    except (FileNotFoundError, NotADirectoryError):
        raise RunNotFoundError(
            f"{path}: there is no run here ({MANIFEST} is missing).",
            hint="grapheraser fit DATASET --out RUN makes one.",
        ) from None
    except (OSError, ValueError, CorruptRunError) as error:
        raise CorruptRunError(
            f"{path / MANIFEST}: not readable ({error}).", hint=f"restore it, or {OVERWRITE}"
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CorruptRunError(f"{path / MANIFEST}: not the manifest of a run.")
    version = manifest.get("version")
    if type(version) is int and oldest <= version < VERSION:
        return manifest
    if version != VERSION:
        carried = f"grapheraser upgrade {path} --out NEW, " if version == OLDEST else ""
        raise RunVersionError(
            f"{path}: written in version {version} of the format; this is version {VERSION}.",
            hint=f"{carried}use the release of grapheraser that wrote it, or {OVERWRITE}",
        )
    check_manifest(manifest, str(path / MANIFEST))
    return manifest


def check_folders(path: Path) -> None:
    """Raise an error where a folder of the run is a link, and files would lie elsewhere."""
    for name in FOLDERS:
        if (path / name).is_symlink():
            raise CorruptRunError(
                f"{path / name}: a link, not a folder of the run.", hint="remove the link."
            )


def manifest_content(manifest: dict[str, Any]) -> bytes:
    """The file of a manifest, a line for each part of it."""
    lines = (f"{json.dumps(key)}: {json.dumps(manifest[key], sort_keys=True)}" for key in manifest)
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def signed_manifest(manifest: dict[str, Any]) -> dict[str, Any]:
    """Add the signature of the operator's key, where there can be one."""
    signer = signer_at_hand()
    if signer is None:
        return manifest
    text = base64.b64encode(signer.sign(_message(manifest))).decode()
    return manifest | {SIGNATURE: {"key": signer.id, "sig": text}}


def is_signed(manifest: Mapping[str, Any], keys: Iterable[PublicKey]) -> bool | None:
    """Tell whether one of the keys has signed a manifest; None where it names none of them."""
    found = manifest.get(SIGNATURE, {"key": None})
    for key in (key for key in keys if key.id == found["key"]):
        try:
            return key.accepts(_message(manifest), base64.b64decode(found["sig"], validate=True))
        except ValueError:
            return False
    return None


def _message(manifest: Mapping[str, Any]) -> bytes:
    said = {name: part for name, part in manifest.items() if name != SIGNATURE}
    return encoded("application/vnd.grapheraser-run+json", canonical_json(said).encode())


def is_part(name: str) -> bool:
    """Tell whether a run can have a file of this name, relative to its folder."""
    return _PART.fullmatch(name) is not None


def is_ours(name: str) -> bool:
    """Tell whether a save could have written a file of this name."""
    return is_part(name) or _LEFTOVER.fullmatch(name) is not None


def read_part(
    path: Path, name: str, sha256: str, size: int | None = None, limit: int = MAX_FILE
) -> bytes:
    """A file of the run in a folder, of a size and no more bytes than a limit."""
    if not is_part(name):
        raise CorruptRunError(f"{path / MANIFEST}: {name!r} is no file of a run.")
    return read_checked(os.path.join(path, name), sha256, size, limit)  # runs have many files


# -- receipts -----------------------------------------------------------------------------------


def receipt_file(number: int, digest: str) -> str:
    """The name of a receipt's file."""
    return f"receipts/{number:06}-{digest[:20]}.json"


@dataclass(frozen=True)
class ReceiptReader:
    """Reads the receipts of the run in a folder."""

    path: Path

    def __call__(self, number: int, digest: str) -> Receipt:
        name = receipt_file(number, digest)
        try:
            return Receipt.from_json(read_part(self.path, name, digest, limit=MAX_JSON).decode())
        except (VerificationError, UnicodeDecodeError) as error:
            raise CorruptRunError(f"{self.path / name}: not a readable receipt.") from error


def stored_receipts(path: Path, manifest: dict[str, Any]) -> Receipts:
    """The receipts of a run, of which only the last is read now."""
    count, head = chain_ends(path, manifest)
    return Receipts(stored=Stored(count, head, ReceiptReader(path))) if head else Receipts()


def chain_ends(path: Path, manifest: dict[str, Any]) -> tuple[int, str | None]:
    """Return the number of receipts, and the digest of the last."""
    entry = manifest.get("receipts")
    match entry:
        case {"count": 0, "head": None}:
            return 0, None
        case {"count": int(count), "head": str(head)} if count > 0:
            return count, head
        case _:
            raise CorruptRunError(f"{path / MANIFEST}: does not say which receipts there are.")


def _receipt_names(path: Path, manifest: dict[str, Any], found: Collection[str]) -> set[str]:
    """The names of the receipts; reads them only where the files that are there leave a doubt."""
    count, _ = chain_ends(path, manifest)
    names = {name: int(match[1]) for name in found if (match := _NUMBER.fullmatch(name))}
    if len(names) == count and sorted(names.values()) == list(range(1, count + 1)):
        return set(names)
    return set(_receipt_digests(path, manifest))


def _receipt_digests(path: Path, manifest: dict[str, Any]) -> dict[str, str]:
    receipts = stored_receipts(path, manifest)
    numbers = range(1, len(receipts) + 1)
    try:
        return {receipt_file(at, receipts.digest(at)): receipts.digest(at) for at in numbers}
    except VerificationError as error:
        raise CorruptRunError(f"{path}: {error.message}") from error


# -- all files ----------------------------------------------------------------------------------


def named_files(path: Path, manifest: dict[str, Any]) -> dict[str, str]:
    """Every file of the run in a folder, but the manifest, with its digest."""
    return {
        **direct_files(manifest),
        **_indexed_files(path, manifest),
        **_receipt_digests(path, manifest),
    }


def known_names(path: Path, manifest: dict[str, Any], found: Collection[str]) -> set[str]:
    """Return the names of all files of the run, where the folder holds these files."""
    indexed = _indexed_files(path, manifest)
    return {*direct_files(manifest), *indexed, *_receipt_names(path, manifest, found)}


def _indexed_files(path: Path, manifest: dict[str, Any]) -> dict[str, str]:
    """The parts of the indexes, and the files that these name, with their digests."""
    found: dict[str, str] = {}
    for part, kind in INDEXES.items():
        index = read_levels_of(path, manifest[part], kind)
        found |= {page_file(digest): digest.hex() for digest in index.parts}
        found.update(files_of(index.entries))
    return found


def read_levels_of(path: Path, entry: Mapping[str, Any], kind: np.dtype[np.void]) -> Index:
    """An index that the manifest names, every byte of it checked."""
    content = read_part(path, entry["file"], entry["sha256"], limit=MAX_INDEX)
    return read_levels(
        content, kind, lambda part: read_part(path, page_file(part), part.hex(), limit=MAX_INDEX)
    )


def last_indexes(path: Path, manifest: dict[str, Any]) -> dict[str, Index]:
    """The indexes of a run, by part; the parts of those that are remembered are not read again."""
    found = {}
    for part, kind in INDEXES.items():
        digest = manifest[part]["sha256"]
        known = remembered.get(path, part, digest)
        if known is None:
            known = read_levels_of(path, manifest[part], kind)
        else:
            read_part(path, manifest[part]["file"], digest, limit=MAX_INDEX)
        found[part] = known
    return found


def direct_files(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The files that a manifest names itself, with their digests."""
    parts = [manifest[name] for name in (*INDEXES, "aggregator")]
    return {part["file"]: part["sha256"] for part in parts}
