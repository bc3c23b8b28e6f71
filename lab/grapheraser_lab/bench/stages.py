"""The stages of `bench scale`; a stage that has finished leaves its result in a file.

So a benchmark of hours goes on where it was interrupted: a graph that was imported is opened, a run
that was fitted is loaded, and of the nodes that are to be forgotten those that are left.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from grapheraser.canonical import canonical_json
from grapheraser.datasets import GeneratedGraph, default_shards, generate_graph, load_dataset
from grapheraser.engines import ShardWeights
from grapheraser.eraser.state import train
from grapheraser.errors import ParameterError
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph, Nodes
from grapheraser.graph.pages.stored import is_stored
from grapheraser.nodes import GraphEraser
from grapheraser.partition import partition_graph
from grapheraser.seeding import generator
from grapheraser.store import read_text, write_text
from grapheraser.store.graphs import write_graph
from grapheraser.store.importing import import_graph
from grapheraser_lab.bench.comparison import EPOCHS

CLOSED_FORM = "closed-form"
SIZES = ("1e5", "1e6", "1e7", "1e8")
REAL = ("wordnet", "debian")
FEATURES, DEGREE, _NODES_PER_SHARD, _EPOCHS = 64, 20, 1000, 20
_PREDICTED, _VERIFIED, _WHOLE = 10_000, 20, 10**6
_REAL_REQUESTS, _BATCH = 1_000, 100

# On the wall, and of the processor.
Seconds = list[float]
Result = dict[str, Any]


@dataclass(frozen=True)
class Kept:
    """The folder of a graph, its runs and the results of its stages.

    Attributes:
        folder: where.
        asked: what the results depend on, beside names.
    """

    folder: Path
    asked: dict[str, Any]

    @property
    def store(self) -> Path:
        return self.folder / "G"

    def run(self, model: str) -> Path:
        return self.folder / f"run-{model}"

    def check(self) -> None:
        """Refuse a folder with results of something else."""
        before = self.result("asked")
        if before is not None and before != self.asked:
            raise ParameterError(
                f"{self.folder}: holds results of {before}, not of {self.asked}.",
                hint="name another folder, or remove this one.",
            )
        self.put("asked", self.asked)

    def result(self, stage: str) -> Result | None:
        """The result of a stage that has finished."""
        file = self.folder / f"{stage}.json"
        return dict(json.loads(read_text(file))) if file.exists() else None

    def put(self, stage: str, found: Result) -> Result:
        """Keep the result of a stage."""
        write_text(self.folder / f"{stage}.json", canonical_json(found) + "\n")
        return found


def is_generated(name: str) -> bool:
    """Tell whether a name is a number of edges."""
    return name.replace("e", "").isdigit()


def plan_of(name: str) -> GeneratedGraph:
    """The generated graph of so many edges."""
    nodes = int(2 * float(name) / DEGREE)
    return GeneratedGraph(nodes, degree=float(DEGREE), num_features=FEATURES)


def import_stage(kept: Kept, name: str) -> Result:
    """Make the graph store."""
    with AnonymousPeak() as peak:
        if is_generated(name):
            seconds = _seconds(lambda: import_graph(plan_of(name), kept.store))
        else:
            graph = load_dataset(name)
            write = partial(write_graph, graph, kept.store, replace=is_stored(kept.store))
            seconds = _seconds(write)
    found = {"dataset": name, "import": seconds, "import_peak_gb": peak.gb}
    return kept.put("import", found | {"store_gb": _size(kept.store)})


def row_stages(kept: Kept, name: str, model: str) -> Result:
    """Fit, forget, verify: one row of the table."""
    eraser: GraphEraser | None = None
    row: Result = {"model": model}
    peaks = []
    for stage, carry_out in (("fit", _fitted), ("forget", _forgotten), ("verify", _verified)):
        found = kept.result(f"{stage}-{model}")
        if found is None:
            with AnonymousPeak() as peak:
                eraser, found = carry_out(kept, name, model, eraser)
            kept.put(f"{stage}-{model}", found | {"peak_gb": peak.gb})
            found["peak_gb"] = peak.gb
        peaks.append(found["peak_gb"])
        row |= found
    return row | {"peak_gb": max(peaks)}


Stage = tuple[GraphEraser, Result]


def _fitted(kept: Kept, name: str, model: str, _: GraphEraser | None) -> Stage:
    _rehearse(model)
    opened: list[Graph] = []
    found: Result = {"open": _seconds(lambda: opened.append(Graph.open(kept.store)))}
    graph = opened.pop()
    epochs = _EPOCHS if is_generated(name) else EPOCHS
    eraser = GraphEraser(
        model, num_shards=_shards(name, graph), epochs=epochs, executor=LocalExecutor(workers=1)
    )
    found["fit"] = _seconds(partial(eraser.fit, graph))
    found["first_save"] = _seconds(lambda: eraser.save(kept.run(model), replace=True))
    found |= {"nodes": graph.num_nodes, "edges": graph.num_edges, "shards": len(eraser.shards_)}
    return eraser, found | {"run_gb": _size(kept.run(model))}


def _rehearse(model: str) -> None:
    """Compile, or load what is compiled already: that is no part of any figure."""
    small = generate_graph(600, num_features=FEATURES)
    eraser = GraphEraser(model, num_shards=2, epochs=1, executor=LocalExecutor(workers=1))
    eraser.fit(small).unlearn(Nodes(small.train_nodes[:1]))


def _shards(name: str, graph: Graph) -> int:
    if is_generated(name):
        return max(1, graph.num_nodes // _NODES_PER_SHARD)
    return default_shards(name)


def _loaded(kept: Kept, model: str) -> GraphEraser:
    return GraphEraser.load(kept.run(model), executor=LocalExecutor(workers=1))


def _forgotten(kept: Kept, name: str, model: str, known: GraphEraser | None) -> Stage:
    """Forget and save nodes one by one; on a real graph its hub first, and more in batches."""
    eraser, folder = known or _loaded(kept, model), kept.run(model)
    found: Result = {}
    order = generator(0, "bench", "scale").permutation(eraser.graph_.train_nodes)
    if not is_generated(name):
        hub = _hub(eraser.graph_)
        found["hub_degree"] = len(eraser.graph_.neighbours(hub))
        found["hub"] = np.sum(_forget(eraser, [hub], folder), axis=0).tolist()
        order = order[order != hub]
    requests = kept.asked["requests"]
    chosen = order[: _REAL_REQUESTS - 1].tolist()  # with the hub, all are so many
    left, rest = chosen[: requests + 1], chosen[requests + 1 :]
    if not is_generated(name):
        for start in range(0, len(rest), _BATCH):
            _forget(eraser, rest[start : start + _BATCH], folder)
        found["forgotten"] = 1 + len(rest) + len(left)
    # The first of them loads what is compiled, and is not counted.
    both = [_forget(eraser, [node], folder) for node in left][1:]
    found["runs"] = {"request": [seconds[1] for seconds, _ in both]}
    found["request"] = np.median([seconds for seconds, _ in both], axis=0).tolist()
    found["request_and_save"] = np.median(np.sum(both, axis=1), axis=0).tolist()
    test = eraser.graph_.test_nodes[:_PREDICTED]
    found["predict"] = _seconds(lambda: eraser.predict(test))
    return eraser, found | {"predicted": len(test), "f1": eraser.score(test)}


def _hub(graph: Graph) -> int:
    """The training node with most neighbours."""
    return int(graph.ids[np.where(graph.role == 1, graph.degree, -1).argmax()])


def _forget(eraser: GraphEraser, nodes: list[int], folder: Path) -> tuple[Seconds, Seconds]:
    """The seconds of a request, and those of the save after it."""
    forgotten = _seconds(lambda: eraser.unlearn(Nodes(nodes)))
    return forgotten, _seconds(lambda: eraser.save(folder))


def _verified(kept: Kept, name: str, model: str, known: GraphEraser | None) -> Stage:
    """Load the run; retrain some shards and compare, or verify all where that is small enough."""
    del known
    loaded: list[GraphEraser] = []
    found: Result = {"load": _seconds(lambda: loaded.append(_loaded(kept, model)))}
    eraser = loaded.pop()
    if not eraser.shards_ or not is_generated(name):
        if eraser.graph_.num_edges > _WHOLE:
            return eraser, found | {"verified": None, "verify": None}
        same: list[bool] = []
        found["verify"] = _seconds(lambda: same.append(eraser.verify().identical))
        return eraser, found | {"verified": same.pop()}
    state, settings = eraser._snapshot.state, eraser._snapshot.settings
    rng = generator(1, "bench", "scale")
    chosen = sorted(rng.permutation(np.array(sorted(state.shards)))[:_VERIFIED].tolist())
    again: dict[int, ShardWeights] = {}
    parts = (settings, state.graph, state.partition, chosen, state.seeds)
    found["verify"] = _seconds(lambda: again.update(train(*parts)))
    fit = all(again[shard].digest == state.shards[shard].digest for shard in chosen)
    return eraser, found | {"verified": fit}


def partition_stage(kept: Kept, name: str, method: str) -> Result:
    """Partition the graph where it lies."""
    graph = Graph.open(kept.store)
    partition_graph(generate_graph(600), method, num_shards=2)  # compiles
    made: list[Any] = []
    with AnonymousPeak() as peak:
        shards = _shards(name, graph)
        seconds = _seconds(
            lambda: made.append(partition_graph(graph, method, num_shards=shards, seed=0))
        )
    cut = 1 - made.pop().quality.edges_kept
    found = {"dataset": name, "edges": graph.num_edges, "method": method, "shards": shards}
    found |= {"partition": seconds, "cut": cut, "peak_gb": peak.gb}
    return kept.put(f"partition-{method}", found)


def _size(folder: Path) -> float:
    """Gigabytes of all files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e9


class AnonymousPeak:
    """The most anonymous memory that this process had inside a ``with`` block, sampled."""

    def __init__(self, every: float = 0.02) -> None:
        self._every, self._done, self.gb = every, threading.Event(), 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(self._every):
            self.gb = max(self.gb, anonymous_memory() / 1e9)


def anonymous_memory() -> float:
    """Bytes of anonymous memory of this process; 0 where the system doesn't tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(1024.0 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def _seconds(action: Callable[[], object]) -> Seconds:
    started = time.perf_counter(), time.process_time()
    action()
    return [time.perf_counter() - started[0], time.process_time() - started[1]]
