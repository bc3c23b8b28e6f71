"""Searching a run's folder for what deleted data would have left there.

A run names every file that belongs to it, with its digest, in the manifest, and describes its state
there. So without being told what was forgotten, the search can find files that nobody names,
leftovers of writing, weights that are none of the run's, and ids, edges and columns that the
current graph does not have. Told what was forgotten, it also looks for exactly that, in every byte
of every file, packed or not.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines import ShardTask, digest_tensors
from grapheraser.graph import TRAIN, Graph
from grapheraser.models import ModelSpec
from grapheraser.partition.halo import halo_key, task_graph
from grapheraser.store import (
    LOCK,
    MANIFEST,
    TEMPORARY,
    StoredRun,
    aggregator_digest,
    found_files,
    load_run,
    named_files,
    read_manifest,
    shards_digest,
)
from grapheraser.store.residues.forgotten import Forgotten
from grapheraser.store.residues.traces import (
    Piece,
    Trace,
    pieces,
    traces_of_edges,
    traces_of_ids,
    traces_of_names,
    traces_of_posteriors,
    traces_of_rows,
)

_TEMPORARY = (TEMPORARY, ".tmp", ".temp", ".swp", ".swo", ".bak", ".old", ".orig", "~")


@dataclass(frozen=True)
class Residue:
    """Something that should not be there."""

    kind: str  # what sort of thing
    file: str  # where, relative to the run's folder
    what: str  # in words. Names no forgotten id that the caller did not bring.


@dataclass(frozen=True)
class Search:
    """Result of searching a run's folder."""

    residues: tuple[Residue, ...]  # everything that should not be there
    # files, size: how many files were read, and their bytes.
    files: int
    size: int
    sought: dict[str, int]  # how many ids, edges and rows the caller brought to look for
    notes: tuple[str, ...]  # what the search can't say, and what is weaker than it looks
    seconds: float  # how long it took

    @property
    def clean(self) -> bool:
        return not self.residues

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "clean": self.clean,
            "residues": [residue.__dict__ for residue in self.residues],
            "notes": list(self.notes),
        }


def search_run(path: Path, forgotten: Forgotten | None = None) -> Search:
    """Search every file of a run, hidden ones too, also for what is known to be ``forgotten``."""
    started = time.perf_counter()
    run = load_run(path)
    named = named_files(path, read_manifest(path))
    sought = forgotten or Forgotten()
    known = _Known.of(run, sought)
    residues = [*_in_graph(run.graph, sought, run), *_in_state(run)]
    files = size = 0
    for file in found_files(path):
        if file.kind == "link":
            residues.append(Residue("link", file.name, "leads out of the run's folder"))
        elif file.kind != "file":
            what = "too large to be searched" if file.kind == "large" else "not a plain file"
            residues.append(Residue("stray file", file.name, what))
        else:
            files, size = files + 1, size + len(file.content)
            residues += _in_file(file.name, file.content, named, known)
    return Search(
        residues=tuple(dict.fromkeys(residues)),
        files=files,
        size=size,
        sought={"nodes": len(sought.nodes), "edges": len(sought.edges), "rows": len(sought.rows)},
        notes=tuple(_notes(run, sought, forgotten is not None)),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, eq=False)
class _Known:
    """Facts about the run that the search needs while it reads files."""

    graph: Graph  # the current one
    current: frozenset[str]  # digests of the weights and of what the aggregator holds
    # The names of the tensors of a shard, and of the aggregator, and whose they are.
    learned: dict[frozenset[str], str]
    sought: Forgotten  # what the caller brought

    @classmethod
    def of(cls, run: StoredRun, sought: Forgotten) -> _Known:
        current = {digest_tensors(weights.arrays) for weights in run.shards.values()}
        current.add(digest_tensors(run.aggregator))
        learned = {frozenset(run.aggregator): "the aggregator"}
        learned |= {frozenset(weights.arrays): "a shard" for weights in run.shards.values()}
        return cls(run.graph, frozenset(current), learned, sought)


def _in_file(name: str, raw: bytes, named: dict[str, str], known: _Known) -> Iterator[Residue]:
    own = name in named
    if name == LOCK and not raw:
        return
    if name != MANIFEST and not own:
        if name.endswith(_TEMPORARY) or Path(name).name.startswith((".#", "#")):
            yield Residue("temporary file", name, "left behind by something that did not finish")
        else:
            yield Residue("stray file", name, "the manifest does not name it")
    elif own and hashlib.sha256(raw).hexdigest() != named[name]:
        yield Residue("altered file", name, "its digest is not the manifest's")
    for piece in pieces(name, raw):
        for trace in _in_piece(piece, own or name == MANIFEST, name, known):
            yield Residue(trace.kind, piece.name, trace.what)


def _in_piece(piece: Piece, own: bool, name: str, known: _Known) -> Iterator[Trace]:
    """Traces in one piece of a file; ``own`` says that the file belongs to the run."""
    yield from traces_of_names(piece, known.sought, own=own)
    if not own:
        of = known.learned.get(frozenset(piece.tensors)) if piece.tensors else None
        if of is not None and digest_tensors(piece.tensors) not in known.current:
            yield Trace("old weights", f"what {of} may have been before a request")
        yield from traces_of_posteriors(piece, known.graph)
        yield from traces_of_ids(piece, known.graph, known.sought)
        yield from traces_of_edges(piece, known.sought)
    # The run's own graph and partition are compared by id, row and edge instead; and a shard's
    # list of columns is long enough to hold those of a short row by chance.
    if not (own and name.startswith(("graph-", "pages/", "partition-", "receipts/"))):
        yield from traces_of_rows(piece, known.graph, known.sought, integers=not own)


def _in_graph(graph: Graph, sought: Forgotten, run: StoredRun) -> Iterator[Residue]:
    """Forgotten things that are still part of the run itself."""
    nodes = np.array(sorted(sought.nodes), dtype=np.int64)
    for node in nodes[graph.contains(nodes)].tolist():
        yield Residue("id", "graph", f"node {node} is still in the graph")
    for node in nodes[np.isin(nodes, run.partition.nodes)].tolist():
        yield Residue("id", "partition", f"node {node} still has a shard")
    for u, v in sorted(sought.edges):
        if graph.contains([u, v]).all() and graph.has_edges(np.array([[u, v]]))[0]:
            yield Residue("edge", "graph", f"{u}-{v} is still in the graph")
    yield from _labels_in_graph(graph, sought)
    for node, row in sorted(sought.rows.items()):
        if graph.contains([node])[0]:
            (at,) = graph.positions([node])
            part = slice(graph.x.indptr[at], graph.x.indptr[at + 1])
            if tuple(graph.x.indices[part].tolist()) == row.columns:
                yield Residue("feature row", "graph", f"node {node} still has its features")


def _labels_in_graph(graph: Graph, sought: Forgotten) -> Iterator[Residue]:
    for label in sorted(sought.labels, key=str):
        node, *target = label if isinstance(label, tuple) else (label,)
        if graph.contains([node])[0]:
            known = ~graph.label_kind.is_unknown(graph.labels([node])).reshape(-1)
            if known[[graph.label_kind.number_of(one) for one in target] or slice(None)].any():
                yield Residue("label", "graph", f"node {node} still has its label")


def _in_state(run: StoredRun) -> Iterator[Residue]:
    """Weights, columns and caches that do not belong to the current graph."""
    if shards_digest(run.shards) != run.state.get("shards"):
        yield Residue(
            "old weights", "shards", "the weights are not those that the last change left"
        )
    if aggregator_digest(run.aggregator) != run.state.get("aggregator"):
        what = "what the aggregator holds is not what the last change left"
        yield Residue("stale posterior", "aggregator", what)
    if not run.register.is_of(run.graph.ids):
        yield Residue("id", "register", "the register names other nodes than the graph")
    strangers = np.setdiff1d(run.partition.nodes, run.graph.sharded_nodes)
    if len(strangers):
        what = f"{len(strangers)} nodes have a shard that the graph puts into none"
        yield Residue("id", "partition", what)
    for name, array in run.aggregator.items():
        if _holds_ids(name, array) and not run.graph.contains(array).all():
            yield Residue("id", "aggregator", f"'{name}' names nodes that are not in the graph")
        elif _holds_ids(name, array) and (run.graph.roles(array) != TRAIN).any():
            yield Residue("label", "aggregator", f"'{name}' names nodes that are not trained on")
    yield from _columns(run)


def _columns(run: StoredRun) -> Iterator[Residue]:
    """Columns that a shard has weights for, though none of its nodes has them."""
    model = run.configuration["resolved"]["model"]
    if model.get("part") != ModelSpec.__name__:
        return
    spec = ModelSpec(**model["options"])
    arguments = run.configuration["arguments"]
    key = halo_key(arguments["seed"]) if arguments.get("halo") else None
    for shard, weights in run.shards.items():
        seen = task_graph(run.graph, run.partition, shard, key)
        extra = np.setdiff1d(weights.columns, ShardTask(shard, seen, 0).columns(spec))
        if len(extra):
            what = f"shard {shard} has weights for {len(extra)} columns that none of its nodes has"
            yield Residue("feature column", "shards", what)


def _holds_ids(name: str, array: NDArray[Any]) -> bool:
    last = name.rpartition("/")[2]
    return array.ndim == 1 and array.dtype.kind in "iu" and last in ("ids", "nodes")


def _notes(run: StoredRun, sought: Forgotten, told: bool) -> Iterator[str]:
    if not told:
        yield (
            "no forgotten data was brought to look for: strays, leftovers, old weights and what "
            "the current graph lacks were searched for, but no feature row or id by itself"
        )
    shared = sum(row_is_shared(run.graph, row.columns) for row in sought.rows.values())
    if shared:
        yield f"{shared} forgotten feature rows are also those of nodes that are left"
    ids = run.graph.ids
    span = int(ids[-1]) - int(ids[0]) + 1 if len(ids) else 0
    if not run.graph.named and len(ids) < span < 2 * len(ids):
        yield (
            f"ids are numbers with {span - len(ids):,} gaps: whoever knows that there were none "
            "can tell who went; names, and ids that are keyed hashes, have no gaps"
        )
    yield (
        "the file system notes when a file was written (its ctime) and where: whoever reads that "
        "on this disk can tell which pages and shards the last changes touched; not so in a copy"
    )
    yield (
        "only files of this folder were read: no free disk blocks, backups, snapshots, swap, "
        "logs kept elsewhere or copies that others made"
    )


def row_is_shared(graph: Graph, columns: tuple[int, ...]) -> bool:
    """Tell whether a node that is left has the same columns."""
    lengths = np.diff(graph.x.indptr)
    for at in np.flatnonzero(lengths == len(columns)).tolist():
        if tuple(graph.x.indices[graph.x.indptr[at] : graph.x.indptr[at + 1]].tolist()) == columns:
            return True
    return False
