"""Drawings of the served graph: laid out once for each version, in memory alone.

A drawing is derived from the graph, so it forgets with it. When a version is published, the rows
and edges that it lacks are gone from the drawing at once, and a thread lays out what is left
afresh, from nothing but that. Nothing is written to a disk, nothing is laid out before somebody
looks, and what nobody has looked at for a while is dropped.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.nodes.answers import are_predicted
from grapheraser.reports.figures.layout import layout
from grapheraser.seeding import derive, keyed_hash
from grapheraser.service.served.measured import shard_importance
from grapheraser.service.served.serving import Published, Served, task_word

# A screen can't show more: a sample of a larger graph is drawn.
MAX_NODES = 50_000
MAX_EDGES = 150_000
# Seconds after the last look for which a drawing is kept up to date.
KEPT = 600.0
_POLL_SECONDS = 0.1  # between two looks at the published version
NO_CLASS = -1
_log = logging.getLogger("grapheraser.service")

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Drawing:
    """The nodes of one version in the plane."""

    of: tuple[str, int]  # name of the run's log and version
    # Whether places were worked out from this version; else they are those of the version before,
    # without what was forgotten.
    settled: bool
    ids: Ids  # sorted ids of the nodes that are drawn
    names: list[str] | None
    places: NDArray[np.float32]  # float32 ``[n, 2]`` within the unit disc
    shards: NDArray[np.int16]  # int16 ``[n]``; -1 in no shard
    classes: NDArray[np.int16]  # int16 ``[n]``, as predicted; -1 not known
    edges: NDArray[np.uint32]  # uint32 ``[m, 2]``, rows of nodes
    about: Mapping[str, Any]  # what else there is to say, as plain values

    @property
    def tag(self) -> str:
        """The ETag of this drawing."""
        return f'"{self.of[0][:16]}-{self.of[1]}-{"settled" if self.settled else "kept"}"'

    @cached_property
    def content(self) -> bytes:
        """The drawing as a safetensors file; ``about`` is the metadata ``drawing``."""
        from safetensors.numpy import save

        arrays: dict[str, NDArray[Any]] = {
            name: np.ascontiguousarray(getattr(self, name))
            for name in ("places", "shards", "classes", "edges")
        }
        if self.names is None:
            arrays["ids"] = self.ids
        else:
            arrays["names"] = np.frombuffer(json.dumps(self.names).encode(), dtype=np.uint8)
        about = {**self.about, "version": self.of[1], "settled": self.settled}
        made: bytes = save(arrays, metadata={"drawing": json.dumps(about)})
        return made

    def moved_to(self, published: Published) -> Drawing:
        """Keep what is left of it in another version; the places of the rest stay as they are."""
        graph = published.model.graph_
        keep = graph.contains(self.ids)
        row = np.cumsum(keep) - 1
        ids = self.ids[keep]
        edges = row[self.edges[keep[self.edges].all(axis=1)]].reshape(-1, 2)
        left = graph.subgraph(ids)
        there = left.sources.astype(np.int64) * len(ids) + left.indices
        edges = edges[np.isin(edges[:, 0] * len(ids) + edges[:, 1], there)]
        names = None
        if self.names is not None:
            names = [name for name, stays in zip(self.names, keep, strict=True) if stays]
        return _drawing(published, ids, names, self.places[keep], edges, settled=False)


def draw(published: Published) -> Drawing:
    """Lay out a version; takes seconds for tens of thousands of nodes."""
    graph = _drawn_part(published.model.graph_)
    first = graph.sources < graph.indices
    edges = np.stack([graph.sources[first], graph.indices[first]], axis=1)
    if len(edges) > MAX_EDGES:
        hashes = keyed_hash(graph.ids, derive(0, "drawing"))[edges].sum(axis=1)
        edges = edges[np.sort(np.argpartition(hashes, MAX_EDGES)[:MAX_EDGES])]
    places = layout(graph).astype(np.float32)
    names = list(graph.names_of(graph.ids)) if graph.named else None
    return _drawing(published, graph.ids, names, places, edges, settled=True)


def _drawn_part(graph: Graph) -> Graph:
    """Return the graph, or a keyed sample of its nodes with the edges between them."""
    if graph.num_nodes <= MAX_NODES:
        return graph
    hashes = keyed_hash(graph.ids, derive(0, "drawing"))
    sample = np.argpartition(hashes, MAX_NODES)[:MAX_NODES]
    return graph.subgraph(np.sort(graph.ids[sample]))


def _drawing(
    published: Published,
    ids: Ids,
    names: list[str] | None,
    places: NDArray[np.float32],
    edges: NDArray[np.integer],
    *,
    settled: bool,
) -> Drawing:
    model, version, answers = published
    graph = model.graph_
    classes = np.full(len(ids), NO_CLASS, dtype=np.int16)
    task, classifier = task_word(model), model.classifier
    if answers is not None and classifier is not None:
        classes = answers[graph.positions(ids)].argmax(axis=1).astype(np.int16)
    elif classifier is not None and settled:
        own = are_predicted(graph, ids)
        classes[own] = classifier.predict_proba(ids[own]).argmax(axis=1)
    about = {
        "task": task,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "classes": class_names(graph) if task == "classes" else [],
        "sizes": model.partition_.sizes.tolist(),
        "importance": shard_importance(model),
    }
    shards = model.partition_.shard_or_none(ids).astype(np.int16)
    of = (model.log_name_, version)
    return Drawing(of, settled, ids, names, places, shards, classes, edges.astype(np.uint32), about)


def class_names(graph: Graph) -> list[str]:
    """Return the names of the classes, in the order of posteriors."""
    return [str(name) for name in graph.class_names or range(graph.num_classes)]


class Drawings:
    """The drawing of the served version, kept for ``kept`` seconds after the last look."""

    def __init__(
        self, served: Served, kept: float = KEPT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._served, self._kept, self._clock = served, kept, clock
        self._lock = threading.Lock()
        self._drawing: Drawing | None = None
        self._thread: threading.Thread | None = None
        self._looked = 0.0

    def now(self) -> Drawing | None:
        """Return the drawing of the served version; None while the first one is laid out."""
        with self._lock:
            self._looked = self._clock()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="drawing", daemon=True)
                self._thread.start()
            return self._current(self._served.now)

    def stop(self) -> None:
        """Drop the drawing, as if nobody had looked for long."""
        with self._lock:
            self._looked = -math.inf

    @property
    def is_kept(self) -> bool:
        """Tell whether there is anything in memory."""
        return self._thread is not None or self._drawing is not None

    def _current(self, published: Published) -> Drawing | None:
        """Return what is drawn of a version; the caller holds the lock."""
        if self._drawing is not None and self._drawing.of != _of(published):
            same_run = self._drawing.of[0] == published.model.log_name_
            self._drawing = self._drawing.moved_to(published) if same_run else None
        return self._drawing

    def _work(self) -> None:
        try:
            while self._clock() - self._looked < self._kept:
                published = self._served.now
                with self._lock:
                    found = self._current(published)
                if found is not None and found.settled:
                    del published
                    time.sleep(_POLL_SECONDS)
                    continue
                made = draw(published)
                with self._lock:
                    if _of(self._served.now) == made.of:
                        self._drawing = made
        except Exception as error:
            _log.error("the graph could not be laid out: %s", type(error).__name__)
            time.sleep(1.0)
        finally:
            with self._lock:
                self._drawing = self._thread = None


def _of(published: Published) -> tuple[str, int]:
    return published.model.log_name_, published.version
