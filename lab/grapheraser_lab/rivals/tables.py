"""The report as tables and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grapheraser.reports.wording import duration, listed, plural
from grapheraser_lab.bench.comparison import geometric_mean
from grapheraser_lab.figures.curves import Curves
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.rivals.measure import FALSE, SHARES
from grapheraser_lab.rivals.methods import DEFAULT, GIF, GNNDELETE, METHODS, RETRAINING, UNCHANGED

Report = Mapping[str, Any]
Row = Mapping[str, Any]
_AMONG = ("1 %", "5 %", "10 %")
# An attack and a stream take hundreds of requests.
SMALL = ("cora", "citeseer")
_MIDDLE, _MOST = f"{SHARES[1]:g}", f"{SHARES[-1]:g}"
_SAME, _ANEW = "0, the same bits", "0, by retraining"
# Names of curves; the first word of each has a colour of its own in all figures.
_SCRATCH = "scratch (retrained)"
_DRAWN = {
    UNCHANGED: "weights kept",
    GIF: "GIF",
    GNNDELETE: "GNNDelete",
    DEFAULT: "pooled (GraphEraser's default)",
}


def leaderboard(report: Report) -> str:
    """One row for each method that was measured on all data sets."""
    return _board(report, [name for name in _methods(report) if _covers(report, name)])


def small_board(report: Report) -> str:
    """One row for each method that was measured on both small graphs."""
    few = {
        part: [row for row in rows if row["dataset"] in SMALL] if isinstance(rows, list) else rows
        for part, rows in report.items()
    }
    return _board(few, [name for name in _methods(few) if _covers(few, name)])


def _covers(report: Report, name: str) -> bool:
    return len({row["dataset"] for row in _of(report, "shares", name)}) == len(_datasets(report))


def _board(report: Report, names: Sequence[str]) -> str:
    """The exact ones first, then by F1 after 5 %."""
    rows = sorted(names, key=lambda name: _rank(report, name))
    header = (
        *("method", *(f"F1 after {share} of the nodes" for share in _AMONG), "5 % of the edges"),
        *("from retraining, after 5 %", "after the stream", "faster than sparse retraining"),
        *("who was forgotten", "still known", "guarantee"),
    )
    body = [
        (
            METHODS[name].label,
            *(_f1(_of(report, "shares", name), "nodes", f"{share:g}") for share in SHARES),
            _f1(_of(report, "shares", name), "edges", _MIDDLE),
            _apart(
                [row["nodes"][_MIDDLE] for row in _of(report, "shares", name)],
                exact=METHODS[name].exact,
            ),
            _apart([row["points"][-1] for row in _of(report, "stream", name)]) or "-",
            _faster(report, name),
            _by_seed(_of(report, "membership", name), lambda row: row["informed"]["value"]) or "-",
            _by_seed(_of(report, "shares", name), lambda row: row["nodes"][_MOST]["remembered"]),
            METHODS[name].guarantee,
        )
        for name in rows
    ]
    return f"{markdown_table(header, body)}\n\n{_legend(report)}"


def adversarial(report: Report) -> str:
    """GIF's own test: F1 with false edges, once they are forgotten, and retrained without them."""
    header = (
        *("data", "method", "never seen"),
        *(f"{100 * s:.0f} % false edges" for s in FALSE),
        *(f"forgotten, {100 * s:.0f} %" for s in FALSE),
        *(f"from retraining, {100 * s:.0f} %" for s in FALSE),
    )
    shares = [f"{share:g}" for share in FALSE]
    rows = [
        (
            *(dataset, METHODS[name].label, _with_error(row["clean"] for row in found)),
            *(_with_error(row[s]["with"] for row in found) for s in shares),
            *(_with_error(row[s]["f1"] for row in found) for s in shares),
            *(_apart([row[s] for row in found], exact=METHODS[name].exact) for s in shares),
        )
        for dataset, name, found in _each_method(report, "adversarial")
    ]
    note = (
        "Micro F1, mean ± standard error over the seeds. False edges join training nodes of "
        "different classes, as many as so many per cent of the edges between training nodes. Last: "
        "total variation from retraining without them, from the same seed; for methods with a "
        "partition, with the partition that was made in sight of the false edges."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"


def by_dataset(report: Report) -> str:
    """F1 of every method on every data set."""
    header = (
        *("data", "method", "before", *(f"{share} of the nodes" for share in _AMONG)),
        *(f"{share} of the edges" for share in _AMONG),
    )
    rows = []
    for dataset, name, found in _each_method(report, "shares"):
        after = [_f1(found, kind, f"{share:g}") for kind in ("nodes", "edges") for share in SHARES]
        before = _with_error(row["f1"] for row in found)
        rows.append((dataset, METHODS[name].label, before, *after))
    pyg = [row["pyg"]["f1"] - row["f1"] for row in _of(report, "shares", RETRAINING)]
    note = (
        "Micro F1 on the test nodes of what is left, mean ± standard error over the seeds. "
        "Retraining is a GCN on sparse features in PyTorch; with PyG's own layers and dense "
        f"features its F1 differs by {100 * np.mean(pyg):+.2f} points on average."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"


def distances(report: Report) -> str:
    """How far each approximate method stays from retraining, beside retraining's own noise."""
    header = (
        *("data", "method", *(f"{share} of the nodes" for share in _AMONG)),
        *(f"{share} of the edges" for share in _AMONG),
        "weights, 5 % of the nodes",
    )
    rows = []
    for dataset in _datasets(report):
        for name in _methods(report):
            found = _of(report, "shares", name, dataset)
            if METHODS[name].exact or not found:
                continue
            weights = _distance([row["nodes"][_MIDDLE]["parameters"] for row in found])
            rows.append((dataset, METHODS[name].label, *_each(found, "apart"), weights))
        noise = _each(_of(report, "shares", RETRAINING, dataset), "another_seed")
        rows.append((dataset, "retraining, another seed", *noise, ""))
    exact = [name for name in _methods(report) if METHODS[name].exact and name != RETRAINING]
    compared = [
        row[kind][f"{share:g}"]["same"]
        for name in exact
        for row in _of(report, "shares", name)
        for kind in ("nodes", "edges")
        for share in SHARES
    ]
    compared += [
        point["same"]
        for name in exact
        for row in _of(report, "stream", name)
        for point in row["points"]
    ]
    note = (
        "Total variation between posteriors and those of the model retrained from the same seed, "
        "mean over test nodes, ± standard error over the seeds; last, the distance of the weights "
        f"as a share of their length. Of {plural(len(exact), 'exact method')}, {sum(compared)} of "
        f"{len(compared)} states have the bits of a fresh fit, weights and posteriors."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"


def times(report: Report) -> str:
    """Tabulate the cost of a request for one node, by method and data set."""
    datasets = _datasets(report)
    pyg = [
        _duration(row["pyg"]["seconds"] for row in _of(report, "shares", RETRAINING, dataset))
        for dataset in datasets
    ]
    rows = [("retraining, PyG on dense features", *pyg)]
    for name in _methods(report):
        label = METHODS[name].label
        spent = (
            _duration(row["seconds"] for row in _of(report, "shares", name, dataset))
            for dataset in datasets
        )
        rows.append((label, *spent))
    note = (
        "Processor time on one thread: of each seed the median of its requests, and of these the "
        "mean ± standard error over the seeds."
    )
    return f"{markdown_table(('a request for one node', *datasets), rows)}\n\n{note}"


def attacks(report: Report) -> str:
    """Who was forgotten, both versions in sight, and what is still known with one."""
    rows = []
    for dataset, name, found in _each_method(report, "membership"):
        known = _of(report, "shares", name, dataset)
        told = [[row[kind]["value"] for row in found] for kind in ("plain", "informed")]
        told.append([row["nodes"][_MOST]["remembered"] for row in known])
        rows.append((dataset, METHODS[name].label, *(_with_error(some, 2) for some in told)))
    header = (
        *("data", "method", "both versions, Chen et al.'s features", "both versions, informed"),
        "one version",
    )
    note = (
        "AUC, mean ± standard error over the seeds; 0.5 is chance. Both versions: "
        f"{report['attacked']} requests for single nodes, the attack of the audit. One version: "
        "10 % forgotten at once, and told from test nodes by how sure the model is of them."
    )
    return f"{markdown_table(header, rows)}\n\n{note}"


def settings(report: Report) -> str:
    """Tabulate what was chosen on validation nodes."""
    rows = []
    for entry in report["tuning"]:
        best = ", ".join(f"{name} {value:g}" for name, value in entry["best"].items())
        tried = next(one for one in entry["tried"] if one["settings"] == entry["best"])
        figures = f"{tried['f1']:.3f} ({tried['retrained_f1']:.3f})", f"{tried['apart']:.3f}"
        rows.append((entry["dataset"], METHODS[entry["method"]].label, best, *figures))
    header = ("data", "method", "chosen", "F1 (retrained)", "from retraining")
    return markdown_table(header, rows)


def drift(report: Report) -> list[Curves]:
    """Along the stream: F1, and how far from retraining."""
    panels = []
    for dataset in _datasets(report, "stream"):
        every = {name: _of(report, "stream", name, dataset) for name in _DRAWN}
        streams = {_DRAWN[name]: rows for name, rows in every.items() if rows}
        lines = {label: _line(rows, "f1") for label, rows in streams.items()}
        retrained = {_SCRATCH: _line(every[GIF], "retrained_f1")} if every[GIF] else {}
        panels.append(Curves(f"{dataset}: F1", retrained | lines))
        apart = {label: _line(rows, "apart") for label, rows in streams.items()}
        panels.append(Curves(f"{dataset}: from retraining", apart))
    return panels


def markdown(report: Report) -> str:
    """Everything, one table after the other."""
    tables = (
        leaderboard,
        small_board,
        by_dataset,
        distances,
        times,
        attacks,
        adversarial,
        settings,
    )
    return "\n\n".join(table(report) for table in tables)


# -- reading the report -----------------------------------------------------------------------


def _of(report: Report, part: str, method: str, dataset: str | None = None) -> list[Row]:
    return [
        row for row in report[part] if row["method"] == method and dataset in (None, row["dataset"])
    ]


def _each_method(report: Report, part: str) -> Iterator[tuple[str, str, list[Row]]]:
    """Every data set and method that was measured, with its rows."""
    for dataset in _datasets(report, part):
        for name in METHODS:
            if found := _of(report, part, name, dataset):
                yield dataset, name, found


def _methods(report: Report) -> list[str]:
    present = {row["method"] for row in report["shares"]}
    return [name for name in METHODS if name in present]


def _datasets(report: Report, part: str = "shares") -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in report[part]))


def _rank(report: Report, name: str) -> tuple[bool, float]:
    found = [row["nodes"][_MIDDLE]["f1"] for row in _of(report, "shares", name)]
    return not METHODS[name].exact, -float(np.mean(found))


def _legend(report: Report) -> str:
    streamed = max((row["requests"] for row in report["stream"]), default=0)
    seeds = len({row["seed"] for row in report["shares"]})
    return (
        f"Means over {listed(_datasets(report))} and {plural(seeds, 'seed')}; GCN, or linear. "
        "From retraining: total variation between posteriors on test nodes and those of a model "
        "retrained from the same seed, after 5 % of the nodes and after a stream of "
        f"{streamed:,} single nodes "
        f"({listed(_datasets(report, 'stream'))}). F1: mean ± standard error over the seeds, each "
        "the mean over the data sets. Faster: than retraining the same GCN in PyTorch on sparse "
        "features, the row whose F1 stands here; geometric mean over data sets and seeds ± its "
        "standard error, processor time of a request for one node. Who was forgotten: AUC of the "
        "audit's informed attack, both versions in sight "
        f"({listed(_datasets(report, 'membership'))}). Still known: AUC with one version in sight, "
        "after 10 %; 0.5 is chance in both."
    )


def _f1(rows: Iterable[Row], kind: str, share: str) -> str:
    return _by_seed(rows, lambda row: row[kind][share]["f1"], 3)


def _by_seed(rows: Iterable[Row], figure: Callable[[Row], float], decimals: int = 2) -> str:
    """The mean over data sets, with its standard error over the seeds."""
    by_seed: dict[int, list[float]] = {}
    for row in rows:
        by_seed.setdefault(int(row["seed"]), []).append(figure(row))
    return _with_error((float(np.mean(some)) for some in by_seed.values()), decimals)


def _with_error(values: Iterable[float | None], decimals: int = 3) -> str:
    known = np.array([value for value in values if value is not None])
    if len(known) < 2:
        return f"{known[0]:.{decimals}f}" if len(known) else ""
    error = known.std(ddof=1) / len(known) ** 0.5
    return f"{known.mean():.{decimals}f} ± {error:.{decimals}f}"


def _each(rows: Sequence[Row], key: str) -> list[str]:
    return [
        _distance([row[kind][f"{share:g}"][key] for row in rows])
        for kind in ("nodes", "edges")
        for share in SHARES
    ]


def _apart(found: Sequence[Row], *, exact: bool = True) -> str:
    if found and all(row["same"] for row in found):
        return _SAME if exact else _ANEW
    return _distance([row["apart"] for row in found])


def _distance(values: Sequence[float | None]) -> str:
    if None in values:
        return "diverged"
    most = max((value for value in values if value is not None), default=0.0)
    return f"{most:.0e}" if 0 < most < 0.0005 else _with_error(values)


def _duration(seconds: Iterable[float]) -> str:
    known = np.fromiter(seconds, dtype=np.float64)
    if len(known) < 2:
        return duration(float(known[0]) if len(known) else None)
    error = known.std(ddof=1) / len(known) ** 0.5
    return f"{duration(float(known.mean()))} ± {100 * error / known.mean():.0f} %"


def _faster(report: Report, name: str) -> str:
    """Against retraining the same GCN on sparse features, on the same data set and seed.

    Where it was measured beside the method, that time counts: the machine was as busy.
    """
    spent = {
        (row["dataset"], row["seed"]): row["seconds"] for row in _of(report, "shares", RETRAINING)
    }
    found = [
        row.get("beside", spent[row["dataset"], row["seed"]]) / row["seconds"]
        for row in _of(report, "shares", name)
        if (row["dataset"], row["seed"]) in spent
    ]
    if not found:
        return ""
    told = f"{geometric_mean(found):,.1f}x"
    if len(set(found)) == 1:
        return told
    return f"{told} ± {100 * np.std(np.log(found), ddof=1) / len(found) ** 0.5:.0f} %"


def _line(
    rows: Sequence[Row], key: str
) -> tuple[Sequence[float], Sequence[float | None], Sequence[float | None]]:
    """Requests, mean and deviation over the seeds."""
    every = np.array([[point[key] for point in row["points"]] for row in rows], dtype=np.float64)
    where = [float(point["requests"]) for point in rows[0]["points"]]
    return where, every.mean(axis=0).tolist(), every.std(axis=0).tolist()
