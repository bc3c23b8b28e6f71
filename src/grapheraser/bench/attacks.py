"""Who was forgotten, and what: the attacks of the audit on every kind of run.

``run`` tells members by one version and by both; ``recovery`` recovers edges, links and features;
``mitigations`` says how much saying less helps; ``partition`` attacks partitions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from grapheraser.audit.attacks.inversion import inversion_attack
from grapheraser.audit.attacks.lira import lira
from grapheraser.audit.attacks.membership import attack
from grapheraser.audit.attacks.partition_leak import partition_leak
from grapheraser.audit.attacks.reconstruction import (
    HIGHEST_DEGREE,
    RANDOM,
    reconstruction_attack,
)
from grapheraser.audit.attacks.shadow import KEPT, RECUT
from grapheraser.audit.mitigations import CANDIDATES, Mitigation
from grapheraser.bench.attacked import Attacked, auc_text, run_under_attack
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.reports.tables import markdown_table

Report = dict[str, Any]
Progress = Callable[[str], None]

POOLED: dict[str, dict[str, Any]] = {
    "default": {},
    "closed-form": {"model": "closed-form"},
    "shards alone": {"global_expert": False},
}
MEAN = {"aggregation": "mean", "global_expert": False}
CONFIGURATIONS = {
    **POOLED,
    "gcn, mean": {**MEAN},
    "sage, mean": {**MEAN, "model": "sage"},
    "gat, mean": {**MEAN, "model": "gat"},
    "gin, mean": {**MEAN, "model": "gin"},
    "gcn, mean, blpa": {**MEAN, "partition": "blpa"},
    "gcn, mean, metis": {**MEAN, "partition": "metis"},
}
PARTITIONS = ("hash", "random", "blpa", "bekm", "metis")
BATCH = 10
NAME = "attacks"


def _silent(text: str) -> None:
    """Tell nobody."""


def run(
    datasets: Iterable[str] = ("cora",),
    *,
    configurations: Iterable[str] = tuple(CONFIGURATIONS),
    requests: int = 80,
    runs: int = 128,
    epochs: int = 100,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Progress = _silent,
) -> Report:
    """Tell who was forgotten, by both versions and by one.

    Args:
        datasets: which data sets.
        configurations: which of `CONFIGURATIONS`.
        requests: for single nodes; for ten nodes at once there are a fifth as many.
        runs: of the attacker's own, for likelihood ratios.
        epochs: of each shard's training.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for label in configurations:
            progress(f"{name}, {label}")
            pair = Attacked.fit(
                graph, CONFIGURATIONS[label], dataset=name, epochs=epochs, name=NAME, seed=seed
            )
            single = pair.seen(KEPT, requests=requests)
            batches = pair.seen(
                KEPT, requests=max(2, 2 * requests // BATCH), nodes_per_request=BATCH
            )
            looked = lira(pair.target, graph, runs=runs, scenarios=(KEPT, RECUT), seed=seed)
            row = {
                "dataset": name,
                "configuration": label,
                "plain": attack(*single, seed=seed).rates.to_dict(),
                "informed": attack(*single, informed=True, seed=seed).rates.to_dict(),
                "batches": attack(*batches, informed=True, seed=seed).rates.to_dict(),
                "likelihood": looked.to_dict(),
            }
            rows.append(row)
    return _report(NAME, rows, requests=requests, runs=runs, epochs=epochs)


def recovery(
    datasets: Iterable[str] = ("cora",),
    *,
    candidates: int = 150,
    requests: int = 40,
    epochs: int = 100,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Progress = _silent,
) -> Report:
    """Recover forgotten edges by one version, and links and features of nodes by both.

    Args:
        datasets: which data sets.
        candidates: edges that are forgotten at once.
        requests: nodes that are forgotten one at a time, at random, and of the highest degree.
        epochs: of each shard's training.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for label, options in POOLED.items():
            progress(f"{name}, {label}")
            target = run_under_attack(graph, options, dataset=name, epochs=epochs, seed=seed)
            edges = inversion_attack(target, graph, candidates=candidates, seed=seed)
            nodes = reconstruction_attack(target, graph, requests=requests, seed=seed)
            rows.append(
                {
                    "dataset": name,
                    "configuration": label,
                    "edges": edges.to_dict(),
                    "nodes": nodes.to_dict(),
                }
            )
    return _report("attacks-recovery", rows, candidates=candidates, requests=requests)


def mitigations(
    datasets: Iterable[str] = ("cora",),
    *,
    requests: int = 80,
    epochs: int = 100,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Progress = _silent,
) -> Report:
    """Tell who was forgotten by both versions, of which less and less is said.

    Args:
        datasets: which data sets.
        requests: for single nodes.
        epochs: of each shard's training.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        tested = graph.labelled_test_nodes
        for label in ("default", "gcn, mean"):
            pair = Attacked.fit(
                graph, CONFIGURATIONS[label], dataset=name, epochs=epochs, name=NAME, seed=seed
            )
            seen = pair.seen(KEPT, requests=requests)
            answers = pair.target.predict_proba(tested)
            for guard in CANDIDATES:
                progress(f"{name}, {label}, {guard}")
                found = attack(*seen, mitigation=guard, informed=True, seed=seed)
                right = guard(answers).argmax(axis=1) == graph.labels(tested)
                rows.append(
                    {
                        "dataset": name,
                        "configuration": label,
                        "returned": str(guard) if guard != Mitigation() else "everything",
                        "auc": found.rates.auc.to_dict(),
                        "f1": float(right.mean()),
                    }
                )
    return _report("attacks-mitigations", rows, requests=requests, epochs=epochs)


def partition(
    datasets: Iterable[str] = ("cora", "citeseer"),
    *,
    candidates: int = 20,
    seed: int = 0,
    root: str | Path | None = None,
    progress: Progress = _silent,
) -> Report:
    """Tell deleted nodes and edges by the partition alone.

    Args:
        datasets: which data sets.
        candidates: deleted nodes, and as many others.
        seed: of everything.
        root: folder of the data sets.
        progress: told how far it is.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for method in PARTITIONS:
            progress(f"{name}, {method}")
            shards = default_shards(name)
            found = partition_leak(
                graph, method, num_shards=shards, candidates=candidates, seed=seed
            )
            rows.append({"dataset": name, **found.to_dict()})
    return _report("attacks-partition", rows)


def _report(name: str, rows: list[dict[str, Any]], **facts: Any) -> Report:
    return {"benchmark": name, "versions": versions(), **facts, "rows": rows}


def markdown(report: Report) -> str:
    """The tables of one of the benchmarks."""
    match report["benchmark"]:
        case "attacks-recovery":
            return recovered(report)
        case "attacks-mitigations":
            return returned(report)
        case "attacks-partition":
            return partitions(report)
    return f"{both_versions(report)}\n\n{one_version(report)}"


def both_versions(report: Report) -> str:
    """Members told by both versions, one row for each configuration."""
    header = (
        *("data", "configuration", "1 node, Chen et al.'s features", "found at 1 % false alarms"),
        *("1 node, informed", "found at 1 % false alarms", f"{BATCH} nodes, informed"),
    )
    rows = [
        (
            row["dataset"],
            row["configuration"],
            *(
                text
                for key in ("plain", "informed")
                for text in (auc_text(row[key]["auc"]), _share(row[key]["tpr"]["0.01"]))
            ),
            auc_text(row["batches"]["auc"]),
        )
        for row in report["rows"]
    ]
    note = (
        f"AUC with its 95 % interval, {report['requests']} requests for single nodes, "
        f"{report['epochs']} epochs; 0.5 is chance."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"


def one_version(report: Report) -> str:
    """Members told by likelihood ratios on one version, before and after they are forgotten."""
    found = "found at 1 % false alarms"
    header = (
        *("data", "configuration", "about to be forgotten", found, "forgotten", found),
        "fitted without them",
    )
    rows = []
    for row in report["rows"]:
        looked = row["likelihood"]
        before, after, never = looked["before"], looked["after"][KEPT], looked["after"][RECUT]
        rows.append(
            (
                row["dataset"],
                row["configuration"],
                *(
                    text
                    for rates in (before, after)
                    for text in (auc_text(rates["auc"]), _share(rates["tpr"]["0.01"]))
                ),
                "the same" if never == after else auc_text(never["auc"]),
            )
        )
    nodes = ", ".join(f"{n}" for n in {row["likelihood"]["forgotten"]: 0 for row in report["rows"]})
    note = (
        f"AUC with its 95 % interval; {report['runs']} runs of the attacker's own, {nodes} nodes; "
        "0.5 is chance."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"


def recovered(report: Report) -> str:
    """One row for each attack, one column for each configuration."""
    by_label: dict[tuple[str, str], dict[str, Any]] = {
        (row["dataset"], row["configuration"]): row for row in report["rows"]
    }
    labels = list(dict.fromkeys(label for _, label in by_label))
    rows = [
        (name, words, *(look(by_label[name, label]) for label in labels))
        for name in dict.fromkeys(name for name, _ in by_label)
        for words, look in RECOVERED
    ]
    note = (
        f"AUC with its 95 % interval; {report['candidates']} edges forgotten at once, "
        f"{report['requests']} nodes one at a time, of each kind; 0.5 is chance."
    )
    return f"{markdown_table(('data', 'attack', *labels), rows)}\n\n{note}"


def _auc_at(*path: str) -> Callable[[dict[str, Any]], str]:
    """The AUC at such a place of a row."""

    def look(row: dict[str, Any]) -> str:
        for key in path:
            row = row[key]
        return auc_text(row)

    return look


def _never(row: dict[str, Any]) -> str:
    edges = row["edges"]
    same = "the same answers" if edges["same"] else "other answers"
    return f"{edges['never']['auc']['value']:.2f}, {same}"


RECOVERED = (
    ("forgotten edges, one version", _auc_at("edges", "after", "auc")),
    ("the same edges, in a run that never had them", _never),
    (
        "the same, of a provider who does nothing",
        _auc_at("edges", "cheats", "does nothing", "auc"),
    ),
    ("the same, of one who hides them", _auc_at("edges", "cheats", "hides", "auc")),
    ("links of a forgotten node, both versions", _auc_at("nodes", "links", RANDOM)),
    ("the same, nodes of the highest degree", _auc_at("nodes", "links", HIGHEST_DEGREE)),
    ("features of a forgotten node, both versions", _auc_at("nodes", "features", RANDOM)),
    ("the same, nodes of the highest degree", _auc_at("nodes", "features", HIGHEST_DEGREE)),
)


def returned(report: Report) -> str:
    """One row for each mitigation, two columns for each configuration."""
    by_cell = {
        (row["dataset"], row["returned"], row["configuration"]): row for row in report["rows"]
    }
    labels = list(dict.fromkeys(label for *_, label in by_cell))
    rows = [
        (
            name,
            words,
            *(
                text
                for label in labels
                for text in (
                    auc_text(by_cell[name, words, label]["auc"]),
                    f"{by_cell[name, words, label]['f1']:.3f}",
                )
            ),
        )
        for name, words in dict.fromkeys((name, words) for name, words, _ in by_cell)
    ]
    header = ("data", "returned", *(text for label in labels for text in (label, "micro F1")))
    note = (
        f"The informed attack, {report['requests']} requests for single nodes: AUC with its 95 % "
        "interval; 0.5 is chance."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"


def partitions(report: Report) -> str:
    """One row for each data set and method."""
    header = (
        *("data", "method", "same partition without them", "same partition, another seed"),
        *("deleted edges, kept partition", "deleted edges, new partition", "deleted nodes"),
    )
    rows = [
        (
            row["dataset"],
            f"`{row['method']}`",
            *(f"{max(row[key], 0):.2f}" for key in ("agreement", "reseeded")),
            *(auc_text(row[key]["auc"]) for key in ("edge", "edge_recut", "node")),
        )
        for row in report["rows"]
    ]
    note = (
        "Agreement is the adjusted Rand index (0 is chance), the rest AUC with its 95 % interval."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"


def _share(figure: dict[str, float]) -> str:
    return f"{100 * figure['value']:.1f} %"
