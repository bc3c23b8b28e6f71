"""Every operation against the size of a graph that lies on the disk, and on large real graphs.

Generated graphs of 20 neighbours a node on average, 64 features and ten classes are imported into a
graph store; shards hold about 800 training nodes, GCN trains for 20 epochs. On each, 100 nodes are
forgotten and saved one by one, 10,000 nodes predicted, and 20 shards drawn at random retrained and
compared bit for bit; `closed-form` has no shards and is fitted again as a whole up to 10^6
edges. On real graphs 1,000 nodes are forgotten, the largest hub first, and all is verified.

Times are pairs: as a clock on the wall has them, and of the processor, which doesn't count waiting
for the disk or for others. Memory is the peak of anonymous memory, sampled: what is mapped from
files can be read again and is not counted. Every row runs in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from grapheraser.bench.comparison import EPOCHS
from grapheraser.datasets import GeneratedGraph, default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.eraser import GraphEraser
from grapheraser.eraser.state import train
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph, Nodes
from grapheraser.reports.figures.curves import Curves
from grapheraser.reports.tables import markdown_table
from grapheraser.reports.wording import duration
from grapheraser.seeding import generator
from grapheraser.store.graphs import write_graph
from grapheraser.store.importing import import_graph
from grapheraser.training import ShardWeights

CLOSED_FORM = "closed-form"
SIZES = ("1e5", "1e6", "1e7", "1e8")
REAL = ("wordnet", "debian")
FEATURES, DEGREE, _NODES_PER_SHARD, _EPOCHS = 64, 20, 1000, 20
_REQUESTS, _PREDICTED, _VERIFIED, _WHOLE = 100, 10_000, 20, 10**6
_REAL_REQUESTS, _BATCH = 1_000, 100

# On the wall, and of the processor.
Seconds = list[float]


def run(
    datasets: Iterable[str] = (*SIZES, *REAL),
    models: Iterable[str] = ("gcn", CLOSED_FORM),
    *,
    requests: int = _REQUESTS,
    root: str | Path | None = None,
    folder: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure numbers of edges (``1e6``) and named data sets; one row of each with each model.

    Args:
        datasets: see above.
        models: names.
        requests: how many nodes to forget one by one.
        root: the data folder.
        folder: where to make graph stores and runs; default: among the temporary files.
        progress: is told what comes next.
    """
    rows = []
    for name in datasets:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            progress(f"{name} import")
            imported = _apart(_import, name, place, root)
            for model in models:
                progress(f"{name} {model}")
                rows.append(imported | _apart(_measure, name, model, place, requests))
    return {"benchmark": "scale", "threads": 1, "versions": versions(), "rows": rows}


def _apart(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a function in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def is_generated(name: str) -> bool:
    """Whether a name is a number of edges."""
    return name.replace("e", "").isdigit()


def plan_of(name: str) -> GeneratedGraph:
    """The generated graph of so many edges."""
    nodes = int(2 * float(name) / DEGREE)
    return GeneratedGraph(nodes, degree=float(DEGREE), num_features=FEATURES)


def _import(name: str, place: str, root: str | None) -> dict[str, Any]:
    with AnonymousPeak() as peak:
        graph = None if is_generated(name) else load_dataset(name, root)
        if graph is None:
            seconds = _seconds(lambda: import_graph(plan_of(name), Path(place) / "G"))
        else:
            seconds = _seconds(partial(write_graph, graph, Path(place) / "G"))
    stored = sum(file.stat().st_size for file in (Path(place) / "G").rglob("*") if file.is_file())
    return {
        "dataset": name,
        "import": seconds,
        "import_peak_gb": peak.gb,
        "store_gb": stored / 1e9,
    }


def _measure(name: str, model: str, place: str, requests: int) -> dict[str, Any]:
    folder = Path(place) / f"run-{model}"
    with AnonymousPeak() as peak:
        opened: list[Graph] = []
        seconds = _seconds(lambda: opened.append(Graph.open(Path(place) / "G")))
        graph = opened.pop()
        found: dict[str, Any] = {"nodes": graph.num_nodes, "edges": graph.num_edges}
        found["open"] = seconds
        shards = default_shards(name)
        if is_generated(name):
            shards = max(1, graph.num_nodes // _NODES_PER_SHARD)
        epochs = _EPOCHS if is_generated(name) else EPOCHS
        one = LocalExecutor(workers=1)
        eraser = GraphEraser(model, num_shards=shards, epochs=epochs, executor=one)
        found["fit"] = _seconds(partial(eraser.fit, graph))
        order = generator(0, "bench", "scale").permutation(graph.train_nodes)
        test = graph.test_nodes[:_PREDICTED]
        hub = None if is_generated(name) else _hub(graph)
        del graph
        found["first_save"] = _seconds(lambda: eraser.save(folder))
        found |= _forgotten(eraser, folder, order, requests, hub)
        found["predict"] = _seconds(lambda: eraser.predict(test))
        found["predicted"], found["f1"] = len(test), eraser.score(test)
        found |= _verified(eraser, whole=hub is not None)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {**found, "model": model, "shards": len(eraser.shards_), "peak_gb": peak.gb} | {
        "run_gb": size / 1e9
    }


def _hub(graph: Graph) -> int:
    """The training node with most neighbours."""
    return int(graph.ids[np.where(graph.role == 1, graph.degree, -1).argmax()])


def _forgotten(
    eraser: GraphEraser, folder: Path, order: Any, requests: int, hub: int | None
) -> dict[str, Any]:
    """Forget and save nodes one by one; on a real graph its hub first, and more in batches."""
    found: dict[str, Any] = {}
    # With the hub, all are so many.
    others = order if hub is None else order[order != hub]
    chosen = others[: _REAL_REQUESTS - 1].tolist()
    left, rest = chosen[: requests + 1], chosen[requests + 1 :]
    if hub is not None:
        found["hub_degree"] = len(eraser.graph_.neighbours(hub))
        found["hub"] = np.sum(_forget(eraser, [hub], folder), axis=0).tolist()
        for start in range(0, len(rest), _BATCH):
            _forget(eraser, rest[start : start + _BATCH], folder)
        found["forgotten"] = 1 + len(rest) + len(left)
    # The first of them loads what is compiled, and is not counted.
    both = [_forget(eraser, [node], folder) for node in left][1:]
    found["request"] = np.median([seconds for seconds, _ in both], axis=0).tolist()
    found["request_and_save"] = np.median(np.sum(both, axis=1), axis=0).tolist()
    return found


def _forget(eraser: GraphEraser, nodes: list[int], folder: Path) -> tuple[Seconds, Seconds]:
    """The seconds of a request, and those of the save after it."""
    forgotten = _seconds(lambda: eraser.unlearn(Nodes(nodes)))
    return forgotten, _seconds(lambda: eraser.save(folder))


def _verified(eraser: GraphEraser, *, whole: bool) -> dict[str, Any]:
    """Retrain some shards and compare, or verify all of a run where it is small enough."""
    state, settings = eraser._state, eraser._settings
    if not state.shards or whole:
        if state.graph.num_edges > _WHOLE:
            return {"verified": None, "verify": None}
        found: dict[str, Any] = {}
        seconds = _seconds(lambda: found.update(same=eraser.verify().identical))
        return {"verified": found["same"], "verify": seconds}
    rng = generator(1, "bench", "scale")
    known = np.array(sorted(state.shards))
    chosen = sorted(rng.permutation(known)[:_VERIFIED].tolist())
    again: dict[int, ShardWeights] = {}
    parts = (settings, state.graph, state.partition, chosen, state.seeds)
    seconds = _seconds(lambda: again.update(train(*parts)))
    same = all(again[shard].digest == state.shards[shard].digest for shard in chosen)
    return {"verified": same, "verify": seconds}


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


# -- what a person looks at ---------------------------------------------------------------------


def markdown(report: dict[str, Any]) -> str:
    """Both tables."""
    return "\n\n".join(table for table in (by_size(report), real(report)) if table)


def by_size(report: dict[str, Any]) -> str:
    """One row per generated graph and model; seconds of the processor."""
    names = {
        "import": "import",
        "open": "open",
        "fit": "fit",
        "first_save": "first save",
        "request": "a node forgotten",
        "request_and_save": "and saved",
        "predict": "predict 10,000",
        "verify": "verify 20 shards",
    }
    header = ("edges", "nodes", "model", "shards", *names.values(), "same bits", "F1", "memory")
    rows = [
        (
            *(f"{row['edges']:,}", f"{row['nodes']:,}", row["model"], f"{row['shards']:,}"),
            *("" if row[name] is None else duration(row[name][1]) for name in names),
            {True: "yes", False: "no", None: ""}[row["verified"]],
            f"{row['f1']:.3f}",
            f"{row['peak_gb']:.1f} GB",
        )
        for row in report["rows"]
        if is_generated(row["dataset"])
    ]
    return markdown_table(header, rows) if rows else ""


def real(report: dict[str, Any]) -> str:
    """One row per real graph and model; seconds of the processor."""
    names = {
        "fit": "fit",
        "hub": "the hub forgotten and saved",
        "request": "a node",
        "request_and_save": "and saved",
        "verify": "verify",
    }
    header = ("data set", "nodes", "edges", "model", "hub", *names.values())
    rows = [
        (
            *(row["dataset"], f"{row['nodes']:,}", f"{row['edges']:,}", row["model"]),
            f"{row['hub_degree']:,} neighbours",
            *(duration(row[name][1]) for name in names),
            f"{row['forgotten']:,}",
            {True: "yes", False: "no"}[row["verified"]],
        )
        for row in report["rows"]
        if not is_generated(row["dataset"])
    ]
    return markdown_table((*header, "forgotten", "same bits"), rows) if rows else ""


def curves(report: dict[str, Any]) -> list[Curves]:
    """Seconds and memory against the number of edges, one panel each."""
    panels = []
    generated = [row for row in report["rows"] if is_generated(row["dataset"])]
    for name, title in (
        ("request", "forget a node"),
        ("request_and_save", "forget and save"),
        ("fit", "fit"),
        ("peak_gb", "anonymous memory, GB"),
    ):
        series = {}
        for model in dict.fromkeys(row["model"] for row in generated):
            rows = [row for row in generated if row["model"] == model]
            heights = [row[name] if name == "peak_gb" else row[name][1] for row in rows]
            series[model] = ([row["edges"] for row in rows], heights, [0.0] * len(rows))
        panels.append(Curves(title, series, log_y=True))
    return panels
