"""Tables of the attacks of `grapheraser_lab.bench.attacks`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from grapheraser.audit.attacks.recovery import HIGHEST_DEGREE, RANDOM
from grapheraser.audit.attacks.shadow import KEPT, RECUT
from grapheraser.audit.findings import auc_text
from grapheraser_lab.figures.tables import filled, markdown_table

Report = dict[str, Any]


def markdown(report: Report) -> str:
    """The tables of one of the benchmarks."""
    tables = {
        "attacks-recovery": recovered,
        "attacks-mitigations": returned,
        "attacks-partition": partitions,
        "leaks": leaked,
        "refresh": refreshed,
    }
    if report["benchmark"] in tables:
        return tables[report["benchmark"]](report)
    return f"{both_versions(report)}\n\n{one_version(report)}"


def both_versions(report: Report) -> str:
    """Members told by both versions, one row for each configuration."""
    header = (
        "data | configuration | 1 node, Chen et al.'s features | found at 1 % false alarms | "
        f"1 node, informed | found at 1 % false alarms | {report['batch']} nodes, informed"
    )
    row = (
        "{dataset} | {configuration} | {plain:auc} | {plain[tpr][0.01]:share} | {informed:auc} | "
        "{informed[tpr][0.01]:share} | {batches:auc}"
    )
    note = (
        f"AUC with its 95 % interval, {report['requests']} requests for single nodes, "
        f"{report['epochs']} epochs; 0.5 is chance."
    )
    return f"{_table(header, row, report['rows'])}\n\n{note}"


def _table(header: str, row: str, records: Iterable[Report]) -> str:
    words = {"auc": auc_text, "share": lambda f: f"{100 * f['value']:.1f} %"}
    return filled(header, row, records, words=words)


def one_version(report: Report) -> str:
    """Members told by likelihood ratios on one version, before and after they are forgotten."""
    header = (
        "data | configuration | about to be forgotten | found at 1 % false alarms | forgotten | "
        "found at 1 % false alarms | fitted without them"
    )
    row = (
        "{dataset} | {configuration} | {before:auc} | {before[tpr][0.01]:share} | {after:auc} | "
        "{after[tpr][0.01]:share} | {never}"
    )
    rows = []
    for known in report["rows"]:
        before, looked = known["likelihood"]["before"], known["likelihood"]["after"]
        after, other = looked[KEPT], looked[RECUT]
        never = "the same" if other == after else auc_text(other)
        rows.append({**known, "before": before, "after": after, "never": never})
    nodes = "/".join(dict.fromkeys(str(row["likelihood"]["forgotten"]) for row in report["rows"]))
    note = (
        f"AUC with its 95 % interval; {report['runs']} runs of the attacker's own, {nodes} nodes; "
        "0.5 is chance."
    )
    return f"{_table(header, row, rows)}\n\n{note}"


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
    ("forgotten edges, one version", _auc_at("edges", "after")),
    ("the same edges, in a run that never had them", _never),
    ("the same, of a provider who does nothing", _auc_at("edges", "cheats", "does nothing")),
    ("the same, of one who hides them", _auc_at("edges", "cheats", "hides")),
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
                    auc_text(by_cell[name, words, label]),
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
        "data | method | same partition without them | same partition, another seed | "
        "deleted edges, kept partition | deleted edges, new partition | deleted nodes"
    )
    row = (
        "{dataset} | `{method}` | {agreement:least} | {reseeded:least} | {edge:auc} | "
        "{edge_recut:auc} | {node:auc}"
    )
    least = {"auc": auc_text, "least": lambda value: f"{max(value, 0):.2f}"}
    note = (
        "Agreement is the adjusted Rand index (0 is chance), the rest AUC with its 95 % interval."
    )
    return f"{filled(header, row, report['rows'], words=least)}\n\n{note}"


def leaked(report: Report) -> str:
    """One row per data set and configuration."""
    header = (
        "data | configuration | F1 | forgotten node, both versions | its label, both versions | "
        "its label, one version | forgotten edge, both versions | edges, one version | "
        "forgotten edges, one version"
    )
    row = (
        "{dataset} | {configuration} | {f1:.3f} | {membership:auc} | {label[right]:.2f} | "
        "{label[before]:.2f} | {edges[drop][auc]:auc} | {edges[standing][auc]:auc} | "
        "{edges[after][auc]:auc}"
    )
    majority = max(row["label"]["majority"] for row in report["rows"])
    note = (
        "AUC with its 95 % interval for nodes and edges; 0.5 is chance. For labels, the share "
        f"guessed right; the most frequent class alone gives {majority:.2f}."
    )
    return f"{_table(header, row, report['rows'])}\n\n{note}"


def refreshed(report: Report) -> str:
    """One row per configuration and attack, one column per policy."""
    by_cell = {(row["dataset"], row["configuration"], row["policy"]): row for row in report["rows"]}
    names = list(dict.fromkeys((dataset, label) for dataset, label, _ in by_cell))
    policies = list(dict.fromkeys(policy for *_, policy in by_cell))
    attacks = {"plain": "Chen et al.'s features", "informed": "informed"}
    rows = [
        (
            dataset,
            label,
            words,
            *(auc_text(by_cell[dataset, label, policy][key]) for policy in policies),
        )
        for dataset, label in names
        for key, words in attacks.items()
    ]
    header = ("data", "configuration", "attack", *(f"refresh={policy}" for policy in policies))
    note = (
        f"AUC with its 95 % interval, {report['requests']} requests for single nodes, GCN, `hash`, "
        f"{report['epochs']} epochs; 0.5 is chance."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"
