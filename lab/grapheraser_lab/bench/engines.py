"""How long training a shard takes: the CPU engine beside sparse PyTorch and the loop of a PyG user.

All sides run in one process on one thread, on the same shards and for the same architectures and
epochs. Times are processor time, so a shared machine does little harm. Sparse PyTorch is the loop
of `bench.sparse`; PyG's side is `GCNConv` and its like on dense features of all columns. Fitting
all shards is measured whole for the engine, for the others on some of the shards and scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grapheraser.datasets import default_shards, load_dataset
from grapheraser.engines import reference
from grapheraser.engines.cpu import train_shard, warm_up
from grapheraser.engines.cpu.train import PreparedShard
from grapheraser.engines.task import ShardTask, TrainingConfig
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph
from grapheraser.models import GNNS, PRESETS, ModelSpec
from grapheraser.nodes import GraphEraser
from grapheraser.reports.wording import duration, plural
from grapheraser_lab.bench.comparison import EPOCHS, geometric_mean, pyg_loop, shard_tasks
from grapheraser_lab.bench.sparse import sparse_scratch_seconds
from grapheraser_lab.figures.tables import filled, markdown_table
from grapheraser_lab.framework.cell import KINDS, Cell, Kind
from grapheraser_lab.framework.runner import measured_f1
from grapheraser_lab.timing import processor_seconds, swept

# What the engine is compared with, the fairest first.
_RIVALS = {"sparse_seconds": "sparse PyTorch", "pyg_seconds": "PyG, dense features"}
_ALL_SHARDS_OF = "physics"
_RIVALS_SHARDS = 3


def run(
    datasets: Iterable[str] = ("cora", "pubmed", "physics"),
    models: Iterable[str] = GNNS,
    *,
    partition: str = "metis",
    repeats: int = 5,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure the median shard of every data set, and all shards of Physics, for every model.

    Returns: a JSON-able report; ``rows`` has one entry per data set and model, ``all_shards`` one
    per model.
    """
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    all_shards: list[dict[str, Any]] = []
    for model in models:
        warm_up(PRESETS[model])
    for name in datasets:
        tasks = shard_tasks(load_dataset(name), partition, default_shards(name), seed)
        tasks.sort(key=lambda task: (task.graph.num_nodes, task.shard))
        for model in models:
            progress(f"{name} {model}")
            rows.append({"dataset": name, **_one_shard(tasks, PRESETS[model], model, repeats)})
            if name == _ALL_SHARDS_OF:
                all_shards.append(_every_shard(tasks, PRESETS[model], model))
    return {
        "benchmark": "engines",
        "partition": partition,
        "epochs": EPOCHS,
        "threads": 1,
        "rows": rows,
        "all_shards": all_shards,
    }


def pyg_seconds(task: ShardTask, spec: ModelSpec) -> float:
    """Seconds of the PyG loop on one shard, after one epoch that pays for allocations."""
    train = pyg_loop(task.graph, spec)
    train(1)
    return processor_seconds(train, EPOCHS)


def _sparse_seconds(task: ShardTask, spec: ModelSpec) -> float:
    """Likewise of the sparse PyTorch loop."""
    counts = {"epochs": EPOCHS, "measured": EPOCHS, "repeats": 1}
    return sparse_scratch_seconds(task.graph, spec, **counts)[0]


def _one_shard(
    tasks: Sequence[ShardTask], spec: ModelSpec, model: str, repeats: int
) -> dict[str, Any]:
    task, config = tasks[len(tasks) // 2], TrainingConfig(spec, EPOCHS)
    rivals = {
        "pyg_seconds": [pyg_seconds(task, spec) for _ in range(2)],
        "sparse_seconds": [_sparse_seconds(task, spec) for _ in range(repeats)],
    }
    ours = [processor_seconds(train_shard, task, config) for _ in range(repeats)]
    loops = [processor_seconds(PreparedShard(task, spec, EPOCHS).run) for _ in range(repeats)]
    return {
        "model": model,
        "nodes": task.graph.num_nodes,
        "edges": task.graph.num_edges,
        "columns": len(task.columns(spec)),
        "engine_seconds": float(np.median(ours)),
        "epochs_seconds": min(loops),
        **{rival: min(seconds) for rival, seconds in rivals.items()},
        "runs": {"engine_seconds": ours, **rivals},
    }


def _every_shard(tasks: Sequence[ShardTask], spec: ModelSpec, model: str) -> dict[str, Any]:
    config = TrainingConfig(spec, EPOCHS)
    ours = processor_seconds(lambda: [train_shard(task, config) for task in tasks])
    places = np.linspace(0, len(tasks) - 1, _RIVALS_SHARDS + 2).round().astype(int)[1:-1]
    some = [tasks[place] for place in places]
    return {
        "model": model,
        "shards": len(tasks),
        "shards_measured": len(some),
        "engine_seconds": ours,
        "pyg_seconds": float(np.mean([pyg_seconds(t, spec) for t in some])) * len(tasks),
        "sparse_seconds": float(np.mean([_sparse_seconds(t, spec) for t in some])) * len(tasks),
    }


def faster(rows: Iterable[Mapping[str, Any]], rival: str) -> float:
    """How much faster than a rival the engine is: the geometric mean over rows."""
    return geometric_mean(row[rival] / row["engine_seconds"] for row in rows)


def markdown(report: dict[str, Any]) -> str:
    """The report as tables."""
    others = {"modules": _modules_table, "fidelity": _fidelity_table}
    if report["benchmark"] in others:
        return others[report["benchmark"]](report)
    every = report["rows"]
    rows = [
        (
            row["dataset"],
            row["model"],
            f"{row['nodes']:,}",
            f"{row['columns']:,}",
            duration(row["engine_seconds"]),
            duration(row["epochs_seconds"]),
            *_beside(row),
        )
        for row in every
    ]
    means = [f"**{faster(every, rival):.1f}x**" for rival in _RIVALS]
    least = min(row["sparse_seconds"] / row["engine_seconds"] for row in every)
    name = f"geometric mean (least {least:.1f}x of sparse PyTorch)"
    rows.append(("", name, "", "", "", "", "", means[0], "", means[1]))
    rivals = [word for rival in _RIVALS.values() for word in (rival, "speed-up")]
    header = ("data set", "model", "nodes", "columns", "CPU engine", "of it, epochs", *rivals)
    tables = [markdown_table(header, rows)]
    if report["all_shards"]:
        lines = [
            (
                f"{row['model']}, {plural(row['shards'], 'shard')}",
                duration(row["engine_seconds"]),
                *_beside(row),
            )
            for row in report["all_shards"]
        ]
        means = [f"**{faster(report['all_shards'], rival):.1f}x**" for rival in _RIVALS]
        lines.append(("geometric mean", "", "", means[0], "", means[1]))
        title = f"all shards of {_ALL_SHARDS_OF}"
        tables.append(markdown_table((title, "CPU engine", *rivals), lines))
        tables.append(f"Of the rivals, {_RIVALS_SHARDS} shards are measured and scaled to all.")
    return "\n\n".join(tables)


def _beside(row: Mapping[str, Any]) -> list[str]:
    """What each rival takes, and how much faster the engine is."""
    return [
        word
        for rival in _RIVALS
        for word in (duration(row[rival]), f"{row[rival] / row['engine_seconds']:.1f}x")
    ]


# -- how long a user's own module takes to predict: every shard's, beside one pass through PyG --


def modules(
    datasets: Iterable[str] = ("cora", "pubmed"),
    *,
    num_shards: int = 20,
    aggregations: Iterable[str] = ("routed", "mean"),
    repeats: int = 50,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Predict test nodes one by one, and a hundred at once."""

    def row(name: str, aggregation: str) -> dict[str, Any]:
        graph = load_dataset(name)
        eraser = GraphEraser(
            model=_sage, num_shards=num_shards, aggregation=aggregation, epochs=1, seed=seed
        ).fit(graph)
        nodes = graph.test_nodes[: repeats + 1]
        first, *others = [processor_seconds(eraser.predict, [node]) for node in nodes]
        return {
            "shards": len(eraser.shards_),
            "first": first,
            "median": float(np.median(others)),
            "p95": float(np.quantile(others, 0.95)),
            "hundred": processor_seconds(eraser.predict, graph.test_nodes[:100]),
            "pyg": _whole_graph(graph),
        }

    rows = swept(row, progress, dataset=datasets, aggregation=aggregations)
    return {"benchmark": "modules", "rows": rows}


def _modules_table(report: dict[str, Any]) -> str:
    """One row per data set and aggregation."""
    header = "data | shards | aggregation | first node | median | 95 % | 100 nodes | PyG"
    row = (
        "{dataset} | {shards} | {aggregation} | {first:time} | {median:time} | {p95:time} | "
        "{hundred:time} | {pyg:time}"
    )
    return filled(header, row, report["rows"])


def _whole_graph(graph: Any, repeats: int = 5) -> float:
    """One module's pass over the whole graph, its tensors made beforehand."""
    import torch

    module, data = _sage(graph.num_features, graph.num_classes).eval(), graph.to_pyg()
    with reference.reproducible(0), torch.no_grad():
        times = [processor_seconds(module, data.x, data.edge_index) for _ in range(repeats + 1)]
    return float(np.median(times[1:]))


def _sage(in_channels: int, out_channels: int) -> Any:
    from torch_geometric.nn import GraphSAGE

    return GraphSAGE(in_channels, 64, 2, out_channels, dropout=0.5, norm="batch_norm")


# -- f1 of the CPU engine beside the PyG loop's, over many seeds: is it as good, not only as fast


ENGINES = ("cpu", "pyg")


def fidelity(
    datasets: Iterable[str] = ("cora", "citeseer", "pubmed"),
    models: Iterable[str] = ("gcn", "sage", "gat", "gin", "mlp"),
    *,
    seeds: int = 10,
    epochs: int = 100,
    folder: str | Path = "runs/fidelity",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Train every data set and model with both engines; minutes to an hour, nearly all of it PyG.

    Returns: a JSON-able report with every single F1.
    """
    told = {"epochs": epochs}
    cells = {
        (name, model, engine): [
            Cell.of("fidelity", dataset=name, model=model, engine=engine, seed=seed, **told)
            for seed in range(seeds)
        ]
        for name, model, engine in product(datasets, models, ENGINES)
    }
    f1 = measured_f1(cells, folder, progress)
    rows = [
        {"dataset": name, "model": model, "f1": {e: f1[name, model, e] for e in ENGINES}}
        for name, model in dict.fromkeys(key[:2] for key in cells)
    ]
    return {"benchmark": "fidelity", **told, "rows": rows}


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Micro F1 of one shard that holds the whole training graph."""
    graph = _graph(config["dataset"])
    eraser = GraphEraser(
        model=config["model"],
        num_shards=1,
        aggregation="mean",
        engine=config["engine"],
        epochs=config["epochs"],
        seed=config["seed"],
        executor=LocalExecutor(workers=1),
    )
    return {"f1": eraser.fit(graph).score(graph.test_nodes)}


@lru_cache(maxsize=1)
def _graph(name: str) -> Graph:
    return load_dataset(name)


KINDS.add("fidelity", Kind(measure))


def _fidelity_table(report: Mapping[str, Any]) -> str:
    """Means over the seeds with their standard deviations, and how far they lie apart."""
    rows, apart = [], [0.0]
    for row in report["rows"]:
        cpu, pyg = (np.array(row["f1"][engine]) for engine in ENGINES)
        apart.append(float(cpu.mean() - pyg.mean()))
        points = f"{100 * apart[-1]:+.2f} points"
        rows.append(
            (row["dataset"], row["model"], str(len(cpu)), _spread(cpu), _spread(pyg), points)
        )
    widest = f"**{100 * max(map(abs, apart)):.2f} points**"
    rows.append(("", "widest", "", "", "", widest))
    return markdown_table(
        ("data set", "model", "seeds", "CPU engine", "PyG loop", "difference"), rows
    )


def _spread(values: Any) -> str:
    return f"{values.mean():.4f} ± {values.std(ddof=1) if len(values) > 1 else 0.0:.4f}"
