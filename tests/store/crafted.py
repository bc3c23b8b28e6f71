"""Run folders that a stranger made: every digest fits, and one thing in them is not what it was.

`crafted` takes the files of a run apart, changes one thing and puts them together again, so that no
digest tells.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from grapheraser.graph.pages.files import as_bytes, index_content
from grapheraser.receipts.envelope import PAYLOAD, Signature, opened, spelled
from grapheraser.receipts.tree import Growing, leaf_hash
from grapheraser.store.indexes import divided
from grapheraser.store.manifest import INDEXES, read_levels_of
from grapheraser.store.pages import MODELS, model_file, page_file

# In the place of the name and the digest of a file, until it is written.
_FITTING = "whatever fits"
_ENTRY = {"file": _FITTING, "sha256": _FITTING}


@dataclass
class Folder:
    """The parts of a run in memory, to be changed at will.

    Attributes:
        manifest: the object of run.json.
        graph, partition, register: the indexes.
        pages: content of files of pages, by digest.
        shards, aggregator: tensors.
        seeds: of each shard, as the index has them.
        change_top: what becomes of the top of an index, by part.
        receipts: the statements of the receipts, oldest first.
        signatures: of each receipt.
        head, settings: digests of the last receipt and of the settings, as they were read.
    """

    manifest: dict[str, Any]
    graph: NDArray[Any]
    partition: NDArray[Any]
    register: NDArray[Any]
    pages: dict[bytes, bytes]
    shards: dict[int, dict[str, NDArray[Any]]]
    seeds: dict[int, int]
    aggregator: dict[str, NDArray[Any]]
    receipts: list[Any]
    signatures: list[tuple[Signature, ...]]
    head: str | None
    settings: str
    change_top: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Folder:
        manifest = json.loads((path / "run.json").read_text())

        def content(entry: dict[str, str]) -> bytes:
            return (path / entry["file"]).read_bytes()

        graph, partition, register, models = (
            read_levels_of(path, manifest[part], kind).entries.copy()
            for part, kind in INDEXES.items()
        )
        named = [*as_bytes(graph["topology"]), *as_bytes(graph["features"])]
        named += [*as_bytes(partition["shards"]), *as_bytes(register["entries"])]
        tensors = {
            shard: safetensors.numpy.load((path / model_file(digest)).read_bytes())
            for shard, digest in zip(
                models["start"].tolist(), as_bytes(models["weights"]), strict=True
            )
        }
        of_aggregator = safetensors.numpy.load(content(manifest["aggregator"]))
        for part in (*INDEXES, "aggregator"):
            manifest[part] |= _ENTRY
        return cls(
            manifest,
            graph,
            partition,
            register,
            {digest: (path / page_file(digest)).read_bytes() for digest in named},
            {shard: _copies(arrays) for shard, arrays in tensors.items()},
            dict(zip(models["start"].tolist(), models["seed"].tolist(), strict=True)),
            _copies(of_aggregator),
            *_receipts(path),
            manifest["receipts"]["head"],
            manifest["configuration"]["history"]["configuration"],
        )

    def write(self, path: Path) -> None:
        """Put everything together, with digests that fit."""
        for folder in ("pages", "shards", "receipts"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        for digest, content in self.pages.items():
            (path / page_file(digest)).write_bytes(content)
        manifest = self.manifest

        def put(part: Any, pattern: str, content: bytes) -> None:
            digest = hashlib.sha256(content).hexdigest()
            name = pattern.format(digest[:20])
            (path / name).write_bytes(content)
            for key, value in {"file": name, "sha256": digest}.items():
                if isinstance(part, dict) and part.get(key) == _FITTING:
                    part[key] = value

        models = np.zeros(len(self.shards), dtype=MODELS)
        for row, (shard, tensors) in zip(models, self.shards.items(), strict=True):
            content = safetensors.numpy.save(tensors)
            digest = hashlib.sha256(content).digest()
            (path / model_file(digest)).write_bytes(content)
            row["start"], row["seed"] = shard, self.seeds.get(shard, -1)
            row["weights"] = np.frombuffer(digest, dtype="V32")[0]
        for part, entries in zip(
            INDEXES, (self.graph, self.partition, self.register, models), strict=True
        ):
            index, files = divided(entries, None)
            for digest, content in files.items():
                (path / page_file(digest)).write_bytes(content)
            top = self.change_top.get(part, np.asarray)(index.top.copy())
            put(manifest.get(part), f"{part}-{{}}.npy", index_content(top))
        of_aggregator = safetensors.numpy.save(self.aggregator)
        put(manifest.get("aggregator"), "aggregator-{}.safetensors", of_aggregator)
        self._write_receipts(path)
        self._refresh_configuration()
        (path / "run.json").write_text(json.dumps(manifest))

    def _write_receipts(self, path: Path) -> None:
        """The receipts, each with the digest of the one before; the manifest names the last."""
        head, log = None, Growing()
        for number, receipt in enumerate(self.receipts, start=1):
            fields = receipt.get("predicate") if isinstance(receipt, dict) else None
            if number > 1 and isinstance(fields, dict) and "previous" in fields:
                fields["previous"] = fields["previous"] and head
            signatures = self.signatures[number - 1]
            content = spelled(PAYLOAD, _spelled(receipt), signatures).encode()
            head = hashlib.sha256(content).hexdigest()
            log.add(leaf_hash(content))
            (path / f"receipts/{number:06}-{head[:20]}.json").write_bytes(content)
        if head != self.head:
            self.manifest["receipts"]["head"] = head
            ends = {"head": head, "log": [root.hex() for root in log.roots], "checkpoint": None}
            self.manifest["configuration"]["history"] |= ends

    def _refresh_configuration(self) -> None:
        """Let the run say that it was fitted with the settings that it has now."""
        kept = self.manifest.get("configuration")
        if isinstance(kept, dict) and isinstance(kept.get("history"), dict):
            settings = {key: value for key, value in kept.items() if key != "history"}
            digest = hashlib.sha256(_spelled(settings)).hexdigest()
            if digest != self.settings and "configuration" in kept["history"]:
                kept["history"]["configuration"] = digest

    def index_of(self, kind: str) -> NDArray[Any]:
        """The index that names files of pages of this kind."""
        return {"shards": self.partition, "entries": self.register}.get(kind, self.graph)

    def change_page(
        self, kind: str, number: int, change: Callable[[bytearray], bytes | None]
    ) -> None:
        """Change the file of a page, its digest and its size in the index."""
        index = self.index_of(kind)
        content = bytearray(self.pages[as_bytes(index[kind])[number]])
        changed = bytes(change(content) or content)
        digest = hashlib.sha256(changed).digest()
        self.pages[digest] = changed
        index[kind][number] = np.frombuffer(digest, dtype="V32")[0]
        if f"{kind}_bytes" in (index.dtype.names or ()):
            index[f"{kind}_bytes"][number] = len(changed)


def _copies(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: array.copy() for name, array in arrays.items()}


def _receipts(path: Path) -> tuple[list[Any], list[tuple[Signature, ...]]]:
    """The statements of a run's receipts, and the signatures of each."""
    files = sorted((path / "receipts").iterdir())
    read = [opened(file.read_text(), PAYLOAD) for file in files]
    return [json.loads(payload) for payload, _ in read], [signatures for _, signatures in read]


def _spelled(value: Any) -> bytes:
    """Canonical JSON, of what has none as well."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def crafted(base: Path, target: Path, edit: Callable[[Folder], object]) -> Path:
    """A copy of a run with one edit."""
    folder = Folder.read(base)
    edit(folder)
    shutil.rmtree(target, ignore_errors=True)
    folder.write(target)
    return target
