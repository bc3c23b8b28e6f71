"""Facts: filtered ranks on published splits, what each kind of rule adds, what forgetting costs.

Settings were chosen on the validation facts alone; `run` looks at the test facts once. Ranks are
among all entities but for those that make a fact of the training, validation or test part. Costs
are processor time, in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.datasets.load import data_root
from grapheraser.environment import versions
from grapheraser.errors import DatasetNotFoundError
from grapheraser.links.facts.answers import HITS, fitted_facts, ranks_of
from grapheraser.links.facts.model import FactModel
from grapheraser.seeding import generator
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.timing import processor_seconds

Facts = NDArray[np.int64]
Report = Mapping[str, Any]

# How many steps rules take; chosen on validation facts.
STEPS = {"fb15k237": 2, "wn18rr": 3, "umls": 2}
# Published MRR and hits at 10, for orientation; not measured here.
PUBLISHED = {"fb15k237": {"RotatE": (0.338, 0.533)}, "wn18rr": {"RotatE": (0.476, 0.571)}}
KINDS = ("one step", "two steps", "three steps", "constants", "likeness")
_ENTITY = "entity"


@dataclass(frozen=True)
class _Some(FactModel):
    """The model with some kinds of rules alone."""

    kinds: tuple[str, ...] = KINDS

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(name for name in super().members if name.startswith(self.kinds))


def run(
    datasets: Iterable[str] = ("fb15k237", "wn18rr"),
    *,
    facts: int | None = None,
    validation: int = 1000,
    requests: int = 100,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure quality and cost.

    Args:
        datasets: in the folder ``tasks/knowledge`` of the data sets.
        facts: of the test part, those with the lowest positions; None: all.
        validation: facts that the curve of the kinds of rules is measured on.
        requests: how many facts, and as many entities, are forgotten.
        progress: told how far it is.
    """
    found = [_measured(name, facts, validation, requests, progress) for name in datasets]
    return {"benchmark": "facts", "versions": versions(), "cells": found}


def parts_of(name: str) -> tuple[dict[str, Facts], int, list[str]]:
    """Return the facts of each part of a data set, the number of entities and the relations."""
    path = data_root() / "tasks" / "knowledge" / f"{name}.npz"
    if not path.exists():
        raise DatasetNotFoundError(f"{path}: no such file.")
    with np.load(path, allow_pickle=False) as held:
        parts = {part: held[part].astype(np.int64) for part in ("train", "valid", "test")}
        return parts, len(held["entities"]), [str(item) for item in held["relations"]]


def _measured(
    name: str, facts: int | None, validation: int, requests: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    parts, entities, relations = parts_of(name)
    graph = ge.Graph.from_facts(parts["train"], entities=entities, relations=relations)
    eraser = ge.LinkEraser(steps=STEPS[name])
    seconds = processor_seconds(eraser.fit, graph)
    progress(f"{name}: fitted")
    known = np.concatenate([parts["valid"], parts["test"]])
    rng = generator(0, "bench", name)
    some = parts["valid"][np.sort(rng.permutation(len(parts["valid"]))[:validation])]
    curve = _curve(eraser, some, known)
    progress(f"{name}: validation done")
    asked = parts["test"][:facts]
    started = time.process_time()
    ranks = ranks_of(eraser._snapshot, asked, known)
    took = time.process_time() - started
    progress(f"{name}: test done")
    return {
        "dataset": name,
        "steps": STEPS[name],
        "facts": {part: len(rows) for part, rows in parts.items()},
        "rules": len(fitted_facts(eraser._snapshot).rules.keys),
        "fit_seconds": seconds,
        "weights": eraser.weights_,
        "validation": curve,
        "test": _scores(ranks) | {"facts": len(asked)},
        "rank_milliseconds": 1e3 * took / len(ranks),
        "forgetting": _forgetting(eraser, parts["train"], relations, requests, rng),
        "identical": eraser.verify().identical,
    }


def _scores(ranks: NDArray[np.float64]) -> dict[str, float]:
    halves = (1.0 / ranks).reshape(2, -1).mean(axis=0)
    error = float(halves.std(ddof=1) / np.sqrt(len(halves)))
    hits = {f"hits@{k}": float((ranks <= k).mean()) for k in HITS}
    return {"mrr": float((1.0 / ranks).mean()), "mrr_error": error, **hits}


def _curve(eraser: ge.LinkEraser, facts: Facts, known: Facts) -> list[dict[str, Any]]:
    """Return the scores on validation facts with ever more kinds of rules."""
    now = eraser._snapshot
    fitted = fitted_facts(now)
    rows, cases, out = fitted.rows_of(now.state.graph), fitted.cases, []
    assert cases is not None
    for count in range(1, len(KINDS) + 1):
        model = _Some(fitted.model.steps, fitted.model.sample, kinds=KINDS[:count])
        if KINDS[count - 1] not in FactModel(fitted.model.steps).members:
            continue
        less = model._fitted(rows, fitted.rules, cases, now.settings.seed)
        state = replace(now.state, aggregator=less)
        ranks = ranks_of(replace(now, state=state), facts, known)
        out.append({"kinds": list(model.kinds), **_scores(ranks)})
    return out


def _forgetting(
    eraser: ge.LinkEraser,
    facts: Facts,
    relations: list[str],
    requests: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Forget facts and entities, one after the other; the first of each kind warms up."""
    facts = facts[facts[:, 0] != facts[:, 2]]
    some = facts[rng.permutation(len(facts))[: requests + 1]]
    entities = rng.permutation(np.unique(facts[:, [0, 2]]))[: requests + 1]
    asked: dict[str, list[Any]] = {
        "fact": [
            ge.Edges([(h, t)], type=(_ENTITY, relations[r], _ENTITY)) for h, r, t in some.tolist()
        ],
        "entity": [ge.Nodes([int(entity)]) for entity in entities],
    }
    out = {}
    for kind, wanted in asked.items():
        times = [processor_seconds(eraser.unlearn, request) for request in wanted][1:]
        out[kind] = {
            "median_ms": 1e3 * float(np.median(times)),
            "p90_ms": 1e3 * float(np.quantile(times, 0.9)),
            "requests": len(times),
        }
    return out


def markdown(report: Report) -> str:
    """Return the tables of a report."""
    quality, curve, cost = [], [], []
    for cell in report["cells"]:
        name, test = cell["dataset"], cell["test"]
        quality.append([name, str(cell["steps"]), f"{cell['rules']:,}", *_row(test)])
        for other, (mrr, hits) in PUBLISHED.get(name, {}).items():
            quality.append(
                [f"{name}, {other} (published)", "", "", f"{mrr:.3f}", "", "", f"{hits:.3f}"]
            )
        for row in cell["validation"]:
            curve.append([name, "+ " + row["kinds"][-1], *_row(row)])
        for kind, found in cell["forgetting"].items():
            cost.append([name, kind, f"{found['median_ms']:.0f}", f"{found['p90_ms']:.0f}"])
    scores = ["MRR", *(f"hits@{k}" for k in HITS)]
    return "\n\n".join(
        [
            markdown_table(["test facts", "steps", "rules", *scores], quality),
            markdown_table(["validation facts", "rules", *scores], curve),
            markdown_table(["forgetting", "a", "median ms", "p90 ms"], cost),
        ]
    )


def _row(scores: Mapping[str, float]) -> list[str]:
    return [f"{scores['mrr']:.3f}", *(f"{scores[f'hits@{k}']:.3f}" for k in HITS)]
