"""Recommendation: how good the recommender is beside others, and what fitting and forgetting cost.

Every rival is measured on the same split with the same metrics. Its options are chosen by NDCG@20
on a tenth of the training interactions, held out; then it is fitted on all of them, and the test is
looked at once. `implicit`, MovieLens (which lies in the package `recbole`) and ratings of lecturers
by students (InstEval of lme4, in the package `pydataset`) are used where they are installed; what
isn't is left out, and the report says so.
"""

from __future__ import annotations

import csv
import io
import json
import resource
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.canonical import canonical_json
from grapheraser.datasets.load import data_root
from grapheraser.environment import versions
from grapheraser.errors import DatasetNotFoundError
from grapheraser.recommendation.metrics import RecommendationScore, recommendation_score
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.rivals.factors import Factors, Options, has_gpu
from grapheraser_lab.rivals.recommenders import RIVALS, Fitted
from grapheraser_lab.timing import processor_seconds

Report = Mapping[str, Any]
Say = Callable[[str], None]
OURS = "recommender"
DATASETS = ("gowalla", "ml-100k", "insteval")
# Published, on LightGCN's split of Gowalla: recall@20 and NDCG@20; not measured here.
PUBLISHED = {
    "LightGCN (published)": (0.1830, 0.1554),
    "UltraGCN (published)": (0.1862, 0.1580),
    "EASE (published)": (0.1765, 0.1467),
}
_K = 20
# Users who are forgotten with a save after each.
_SAVED = 20
_HELD_OUT, _TEST = 0.1, 0.2
# After so many epochs each, the test is looked at by some users, to see whether training is over.
_SHOWN = 100
# Users that options are chosen by.
_CHOOSING = 3000


def split_of(name: str) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the training and the test interactions of a data set."""
    path = data_root() / "tasks" / "recommendation" / f"{name}.npz"
    if not path.exists():
        if name == "ml-100k":
            return _divided(_movielens()[:, :2])
        if name == "insteval":
            return _divided(_lecturers())
        raise DatasetNotFoundError(f"{path}: no such file.")
    with np.load(path) as found:
        shape = tuple(found["shape"].tolist())
        return _matrix(found["train"], shape), _matrix(found["test"], shape)


def _lies_in(package: str, *path: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise DatasetNotFoundError(f"{path[-1]}: the package {package} is not installed.")
    return Path(found.origin).parent.joinpath(*path)


def _movielens() -> NDArray[np.int64]:
    """Read MovieLens 100k from the package that ships it: users, items, ratings, seconds."""
    file = _lies_in("recbole", "dataset_example", "ml-100k", "ml-100k.inter")
    return np.loadtxt(file, skiprows=1).astype(np.int64)


def _lecturers() -> NDArray[np.int64]:
    """Read which student rated which lecturer at ETH Zurich."""
    with tarfile.open(_lies_in("pydataset", "resources.tar.gz")) as archive:
        file = archive.extractfile("resources/rdata/csv/lme4/InstEval.csv")
        assert file is not None
        rows = csv.DictReader(io.TextIOWrapper(file))
        return np.unique([(int(row["s"]), int(row["d"])) for row in rows], axis=0)


def _divided(pairs: NDArray[np.int64]) -> tuple[sp.csr_array, sp.csr_array]:
    """Take a fifth of all pairs for the test, by a seed."""
    ends = [np.unique(column, return_inverse=True)[1] for column in pairs.T]
    pairs = np.stack(ends, axis=1)
    test = np.random.default_rng(0).random(len(pairs)) < _TEST
    shape = (int(pairs[:, 0].max()) + 1, int(pairs[:, 1].max()) + 1)
    return _matrix(pairs[~test], shape), _matrix(pairs[test], shape)


def late(*, days: float = 30.0, progress: Say = lambda text: None) -> dict[str, Any]:
    """See whether popularity of late helps on MovieLens 100k, where the last fifth is the test.

    The half-life is chosen by NDCG@20 on the last eighth of the rest, among a week, a month and
    half a year; scores are of users who have something in both parts.

    Args:
        days: the half-life to begin with, beside 7 and 180.
        progress: told how far it is.
    """
    rows = _movielens()
    rows = rows[np.argsort(rows[:, 3], kind="stable")]
    fifth = len(rows) - len(rows) // 5
    parts = [(rows[: fifth * 7 // 8], rows[fifth * 7 // 8 : fifth]), (rows[:fifth], rows[fifth:])]
    held: dict[str, float] = {}
    for half_life in (7.0, days, 180.0):
        held[f"{half_life:g} days"] = _late_score(*parts[0], half_life).ndcg
        progress(f"half-life {half_life:g} days: {held[f'{half_life:g} days']:.4f}")
    best = float(max(held, key=lambda name: held[name]).split()[0])
    cells = [
        {"half_life_days": found, **_scores(_late_score(*parts[1], found))} for found in (0.0, best)
    ]
    return {"benchmark": "recommend-late", "versions": versions(), "held": held, "cells": cells}


def _late_score(
    train: NDArray[np.int64], test: NDArray[np.int64], days: float
) -> RecommendationScore:
    test = test[np.isin(test[:, 0], train[:, 0]) & np.isin(test[:, 1], train[:, 1])]
    table = dict(zip(("user", "item", "time"), train[:, [0, 1, 3]].T, strict=True))
    timed: dict[str, Any] = {"now": float(train[-1, 3]), "half_life": days * 86400.0}
    if not days:
        timed = {}
        del table["time"]
    return ge.Recommender(**timed).fit(table).score(test[:, :2], _K)


def _matrix(pairs: NDArray[np.integer], shape: Any) -> sp.csr_array:
    return sp.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape)


def held_out(train: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array]:
    """Divide training interactions into those to fit and those to choose options by."""
    pairs = np.stack(train.nonzero(), axis=1)
    held = np.random.default_rng(1).random(len(pairs)) < _HELD_OUT
    return _matrix(pairs[~held], train.shape), _matrix(pairs[held], train.shape)


def run(
    datasets: Iterable[str] = DATASETS,
    models: Iterable[str] = (OURS, *RIVALS),
    *,
    requests: int = 100,
    seeds: int = 1,
    seconds: float = float("inf"),
    keep: Path | None = None,
    progress: Say = lambda text: None,
) -> dict[str, Any]:
    """Score our recommender and others, and time fits and requests.

    Args:
        datasets: of `DATASETS`; one that is not there is left out.
        models: which of ours and `RIVALS`.
        requests: how many users are forgotten, one by one.
        seeds: with how many seeds ours is fitted, and factors are trained in the end; options are
            chosen with one.
        seconds: after which no further epoch of a training begins.
        keep: folder for what is measured; what lies there is not measured again.
        progress: told how far it is.
    """
    found: list[dict[str, Any]] = []
    missing = []
    for name in datasets:
        try:
            train, test = split_of(name)
        except DatasetNotFoundError as error:
            missing.append(error.message)
            continue
        for model in models:
            file = None if keep is None else keep / f"{name}-{model}.json"
            if file is not None and file.exists():
                value = json.loads(file.read_text())
            else:
                progress(f"{name}: {model}")
                if model == OURS:
                    value = ours(train, test, requests, seeds)
                else:
                    value = rival(model, train, test, progress, seeds=seeds, seconds=seconds)
                if file is not None and "missing" not in value:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(canonical_json(value) + "\n")
            if "missing" in value:
                missing.append(f"{name}: {model}: {value['missing']}")
            else:
                found.append({"dataset": name, **value})
    return {"benchmark": "recommend", "versions": versions(), "cells": found, "missing": missing}


def ours(train: sp.csr_array, test: sp.csr_array, requests: int, seeds: int = 1) -> dict[str, Any]:
    """Measure our recommender with its defaults; scores are means over seeds, costs of seed 0."""
    ge.Recommender().fit(train)  # compiles
    started = time.process_time()
    eraser = ge.Recommender().fit(train)
    fit = time.process_time() - started
    others = [ge.Recommender(seed=seed).fit(train) for seed in range(1, seeds)]
    found = [_scores(run.score(test, _K)) for run in (eraser, *others)]
    heaviest = int(np.diff(train.indptr).argmax())
    users = np.random.default_rng(2).permutation(train.shape[0])
    users = users[users != heaviest]
    one = [processor_seconds(eraser.recommend, [user]) for user in users[:requests]]
    many = processor_seconds(eraser.recommend, users[:1000])
    eraser.unlearn(ge.Users(users[-1:]))  # compiles
    forgets = [
        processor_seconds(eraser.unlearn, ge.Users([user])) for user in users[:requests].tolist()
    ]
    most = processor_seconds(eraser.unlearn, ge.Users([heaviest]))
    saved = users[requests : requests + _SAVED].tolist()
    kept = _saved_seconds(eraser, saved)
    gone = np.concatenate([users[:requests], saved, [users[-1], heaviest]])
    left = np.setdiff1d(np.arange(train.shape[0]), gone)
    fresh = ge.Recommender().fit(sp.csr_array(train[left]), users=left)
    some = left[:200]
    same = fresh.graph_ == eraser.graph_ and fresh.weights_ == eraser.weights_
    same &= bool(np.array_equal(fresh.recommend(some), eraser.recommend(some)))
    return {
        "model": OURS,
        "options": {},
        **_over_seeds(found),
        "fit": fit,
        "forget": float(np.median(forgets)),
        "forget_heaviest": most,
        "forget_and_save": kept,
        "forgotten": len(gone),
        "recommend_one": float(np.median(one)),
        "recommend_1000": many,
        "exact": "bit for bit" if same else "NOT equal to a fresh fit",
    }


def _saved_seconds(eraser: ge.Recommender, users: list[int]) -> float:
    """Forget some users, saving the run after each; return the median of both together."""
    with tempfile.TemporaryDirectory() as folder:
        eraser.save(Path(folder) / "run")

        def once(user: int) -> None:
            eraser.unlearn(ge.Users([user]))
            eraser.save(Path(folder) / "run")

        return float(np.median([processor_seconds(once, user) for user in users]))


def rival(
    name: str,
    train: sp.csr_array,
    test: sp.csr_array,
    progress: Say,
    *,
    seeds: int = 1,
    seconds: float = float("inf"),
) -> dict[str, Any]:
    """Choose the options of a rival on validation, and measure it on the test."""
    made = RIVALS[name]
    if (lacks := made.lacks(train)) is not None:
        return {"missing": lacks}
    best = _chosen(name, *held_out(train), progress, seconds)
    progress(f"  {name}: {best}")
    clock = time.monotonic if made.trained else time.process_time
    course: list[dict[str, float]] = []

    def look(fitted: Factors) -> None:
        if seed == 0 and fitted.epochs % _SHOWN == 0:
            some = _scores(_score(fitted, train, test, _CHOOSING))
            course.append({"epochs": fitted.epochs, **some})
            progress(f"  {name}: {course[-1]}")

    found, epochs, spent, forgets = [], [], [], []
    for seed in range(seeds if made.trained else 1):
        more: tuple[Any, ...] = (look,) if made.stages else ()
        started = clock()
        fitted = made.fit(train, {**best, "seed": seed, "seconds": seconds}, *more)
        spent.append(clock() - started)
        forgets.append(getattr(fitted, "forget_seconds", None) or spent[-1])
        epochs.append(getattr(fitted, "epochs", 0))
        found.append(_scores(_score(fitted, train, test)))
        progress(f"  {name}, seed {seed}, {epochs[-1]} epochs, {spent[-1]:.1f} s: {found[-1]}")
    cell = {
        "model": name,
        "options": best,
        **_over_seeds(found),
        "fit": float(np.median(spent)),
        "forget": float(np.median(forgets)),
        "exact": made.exact,
    }
    if made.trained:
        cell["options"] = {**best, "epochs": min(epochs)}
        cell |= {"device": f"{_device_name()}, elapsed seconds"}
    if made.stages:
        cell["course"] = course
    return cell


def _chosen(
    name: str, part: sp.csr_array, held: sp.csr_array, progress: Say, seconds: float
) -> dict[str, float]:
    """Return the options with the best NDCG@20 of what is held out."""
    made = RIVALS[name]
    tried: list[tuple[float, dict[str, float]]] = []
    for options in made.grid:

        def held_score(fitted: Fitted, options: Options = options) -> None:
            given = {"epochs": fitted.epochs} if isinstance(fitted, Factors) else {}
            tried.append((_score(fitted, part, held, _CHOOSING).ndcg, {**options, **given}))
            progress(f"  {name}, held out: {tried[-1]}")

        def look(fitted: Factors, held_score: Callable[[Fitted], None] = held_score) -> None:
            if fitted.epochs in made.stages:
                held_score(fitted)

        if made.stages:
            most = {"epochs": max(made.stages), "seconds": seconds}
            fitted = made.fit(part, {**options, **most}, look)
            if isinstance(fitted, Factors) and fitted.epochs not in made.stages:  # time was over
                held_score(fitted)
        else:
            held_score(made.fit(part, options))
    return max(tried, key=lambda one: one[0])[1]


def _device_name() -> str:
    if not has_gpu():
        return "processor"
    import torch

    return str(torch.cuda.get_device_name())


def _score(
    fitted: Fitted, train: sp.csr_array, test: sp.csr_array, most: int | None = None
) -> RecommendationScore:
    """Score by all users who have something to be found, or by so many of them."""
    users = np.random.default_rng(3).permutation(np.flatnonzero(np.diff(test.indptr) > 0))[:most]
    found = np.concatenate(
        [_top(fitted, train, users[at : at + 512]) for at in range(0, len(users), 512)]
    )
    rows = [test.indices[test.indptr[user] : test.indptr[user + 1]] for user in users]
    wanted = [row.astype(np.int64) for row in rows]
    return recommendation_score(found, wanted, train.shape[1])


def _top(fitted: Fitted, train: sp.csr_array, users: NDArray[np.int64]) -> NDArray[np.int64]:
    if isinstance(fitted, Factors):
        return fitted.best(train, users, _K)
    scores = np.array(fitted(users), dtype=np.float64)
    scores[train[users].nonzero()] = -np.inf
    best = np.argpartition(-scores, _K, axis=1)[:, :_K]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def _over_seeds(found: list[dict[str, float]]) -> dict[str, Any]:
    """Return means over seeds, and what each seed has where there are several."""
    means = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    return {**means, "seeds": found} if len(found) > 1 else means


def _scores(score: RecommendationScore) -> dict[str, float]:
    return {name: getattr(score, name) for name in ("recall", "ndcg", "hit_rate", "coverage")}


def scale(
    *,
    users: int = 100_000,
    items: int = 20_000,
    interactions: int = 5_000_000,
    requests: int = 50,
    answered: int = 1000,
    progress: Say = lambda text: None,
) -> dict[str, Any]:
    """Fit generated interactions, forget users, and see how much memory it takes.

    Args:
        users: how many.
        items: how many; their popularity follows a power law.
        interactions: about how many; a few fall together.
        requests: how many users are forgotten, one by one.
        answered: how many users are recommended items in one call.
        progress: told how far it is.
    """
    progress("generating")
    train = generated(users, items, interactions)
    before = _memory()
    progress("fitting")
    ge.Recommender().fit(_band(64)).unlearn(ge.Users([0]))  # compiles
    started = time.process_time()
    eraser = ge.Recommender().fit(train)
    fit = time.process_time() - started
    peak = _memory()
    chosen = np.random.default_rng(2).permutation(users)[:requests].tolist()
    progress("forgetting")
    forgets = [processor_seconds(eraser.unlearn, ge.Users([user])) for user in chosen]
    others = np.random.default_rng(3).permutation(users)[: requests + 1].tolist()
    asked = [user for user in others if user not in chosen]
    eraser.recommend(asked[:1])
    one = [processor_seconds(eraser.recommend, [user]) for user in asked]
    left = np.setdiff1d(np.random.default_rng(4).permutation(users)[: answered + requests], chosen)
    many = processor_seconds(eraser.recommend, left[:answered])
    return {
        "benchmark": "recommend-scale",
        "versions": versions(),
        "users": users,
        "items": items,
        "interactions": int(train.nnz),
        "fit": fit,
        "forget": float(np.median(forgets)),
        "forget_most": max(forgets),
        "recommend_one": float(np.median(one)),
        "recommend_many": many,
        "answered": answered,
        "memory_gb": peak,
        "memory_before_gb": before,
    }


def _band(size: int) -> sp.csr_array:
    """Return a few interactions, for a rehearsal."""
    rows = np.arange(size)
    return sp.csr_array((np.abs(rows[:, None] - rows) < 3).astype(np.float64))


def generated(users: int, items: int, interactions: int, seed: int = 0) -> sp.csr_array:
    """Draw interactions: popularity of items by a power law, activity of users log-normal."""
    draw = np.random.default_rng(seed)
    activity = draw.lognormal(0.0, 1.0, users)
    counts = np.maximum(1, np.round(activity / activity.sum() * interactions)).astype(np.int64)
    counts = np.minimum(counts, items // 2)
    popularity = np.cumsum(1.0 / (np.arange(items) + 10.0) ** 0.8)
    shuffled = draw.permutation(items).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    picked = draw.random(indptr[-1]) * popularity[-1]
    columns = shuffled[np.searchsorted(popularity, picked)]
    matrix = sp.csr_array(
        (np.ones(len(columns), dtype=np.int8), columns, indptr), shape=(users, items)
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def markdown(report: Report) -> str:
    """Return the tables of a report."""
    if report["benchmark"] == "recommend-scale":
        return _scale_table(report)
    if report["benchmark"] == "recommend-late":
        return _late_table(report)
    parts = []
    for name in dict.fromkeys(cell["dataset"] for cell in report["cells"]):
        rows = [_row(cell) for cell in report["cells"] if cell["dataset"] == name]
        if name == "gowalla":
            rows += [
                (model, f"{recall:.4f}", f"{ndcg:.4f}", "", "", "", "")
                for model, (recall, ndcg) in PUBLISHED.items()
            ]
        header = (name, "recall@20", "NDCG@20", "coverage", "fit", "forget a user", "exact")
        parts.append(markdown_table(header, rows))
    parts += [f"Not measured: {'; '.join(report['missing'])}."] if report["missing"] else []
    return "\n\n".join([*parts, "Processor time of one thread."])


def _row(cell: Mapping[str, Any]) -> tuple[str, ...]:
    options = ", ".join(f"{name} {value:g}" for name, value in cell["options"].items())
    forget = cell["forget"]
    return (
        f"{cell['model']} ({options})" if options else cell["model"],
        *(_with_error(cell, metric) for metric in ("recall", "ndcg")),
        f"{cell['coverage']:.3f}",
        f"{cell['fit']:.1f} s",
        f"{1e3 * forget:.1f} ms" if forget < 1 else f"{forget:.1f} s",
        cell["exact"],
    )


def _with_error(cell: Mapping[str, Any], metric: str) -> str:
    """Write a score, with its standard error over seeds."""
    found = [seed[metric] for seed in cell.get("seeds", ())]
    error = f" ± {np.std(found, ddof=1) / len(found) ** 0.5:.4f}" if len(found) > 1 else ""
    return f"{cell[metric]:.4f}{error}"


def _late_table(report: Report) -> str:
    rows = [
        (
            f"half-life {cell['half_life_days']:g} days" if cell["half_life_days"] else "no times",
            f"{cell['recall']:.4f}",
            f"{cell['ndcg']:.4f}",
        )
        for cell in report["cells"]
    ]
    return markdown_table(("popularity of late", "recall@20", "NDCG@20"), rows)


def _scale_table(report: Report) -> str:
    header = ("users", "items", "interactions", "fit", "forget", "recommend", "memory")
    row = (
        f"{report['users']:,}",
        f"{report['items']:,}",
        f"{report['interactions']:,}",
        f"{report['fit']:.1f} s",
        f"{1e3 * report['forget']:.1f} ms",
        f"{1e3 * report['recommend_one']:.1f} ms",
        f"{report['memory_gb']:.1f} GB",
    )
    return f"{markdown_table(header, [row])}\n\nMedians; processor time of one thread."
