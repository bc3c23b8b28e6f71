"""What the user may choose: data sets, models, runs, and one of two protocols."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grapheraser import checks
from grapheraser.aggregation import AGGREGATORS
from grapheraser.datasets import PUBLIC
from grapheraser.eraser import GraphEraser
from grapheraser.errors import ParameterError
from grapheraser.experiments.framework.resolve import is_own, parse, sources_of
from grapheraser.experiments.paper import published as paper
from grapheraser.partition import PARTITIONERS
from grapheraser.store.results import file_digest

DEFAULT_SHARDS = 20
# BEKM on an embedding that never saw a label.
FREE_SUFFIX = "-free"
FREE = f"bekm{FREE_SUFFIX}"


@dataclass(frozen=True)
class Protocol:
    """How the method is set up.

    Attributes:
        name: ``paper`` or ``best``.
        about: in one sentence.
        suffix: what is put behind a model's name to get its preset.
        partitions: methods of the main tables, by label.
        others: further methods, by label.
        aggregations: by label; ``learned`` stands for LBAggr.
        ours: aggregations that the paper does not have, by label.
        chosen: label of the aggregation that everything but `utility` looks at.
        readings: by model, labels of the partitions that sweeps and attacks look at; ``*`` for all
            other models.
    """

    name: str
    about: str
    suffix: str
    partitions: Mapping[str, str]
    others: Mapping[str, str]
    aggregations: Mapping[str, str]
    ours: Mapping[str, str]
    chosen: str
    readings: Mapping[str, tuple[str, ...]]

    @property
    def free(self) -> str | None:
        """What is put behind a k-means method's name for its second reading, without labels."""
        return FREE_SUFFIX if FREE in self.partitions else None

    def partition(self, label: str) -> str:
        """The method that a label stands for; a label of the user's own is its own name."""
        return {**self.others, **self.partitions}.get(label, label)


def _default(parameter: str) -> str:
    return str(inspect.signature(GraphEraser).parameters[parameter].default)


def _paper() -> Protocol:
    own = {"convex": "learned", "released": "released", "log-mean": "log-mean", "routed": "routed"}
    return Protocol(
        name="paper",
        about=(
            "The method as the paper states it: its models (100 epochs, Adam, learning rate 0.01, "
            "weight decay 0.001), delta = ceil(n/k), T = 30, BEKM on the 32 hidden units of a GNN "
            "trained on the training graph, LBAggr by gradient steps with a softmax after each, "
            "from 10 % of the training nodes but 1000 at most. Second readings stand beside it: "
            "bekm-free is BEKM on an embedding that never saw a label, convex the minimum of "
            "LBAggr's objective, released the objective of the paper's code."
        ),
        suffix=":paper",
        partitions={
            "random": "random",
            "blpa": "blpa",
            "bekm": "bekm(embedding=sage)",
            FREE: "bekm",
        },
        others={
            "blpa-lp": "blpa-lp",
            "bekm-hungarian": "bekm-hungarian(embedding=sage)",
            f"bekm-hungarian{FREE_SUFFIX}": "bekm-hungarian",
            "metis": "metis",
            "ekm": "ekm(embedding=sage)",
        },
        aggregations={"mean": "mean", "majority": "majority", "learned": "learned(solver=paper)"},
        ours=own,
        chosen="learned",
        readings={"gcn": ("blpa",), "*": ("bekm", FREE)},
    )


def _best() -> Protocol:
    default = _default("partition")
    partitions = dict.fromkeys((default, "random", "blpa", "bekm", "metis"))
    aggregations = ("mean", "majority", "learned")
    return Protocol(
        name="best",
        about=(
            "GraphEraser's own models and aggregations: self-loops, no weights for feature columns "
            "that a shard never saw, importance scores that reach the minimum, routing by node, "
            "and a pool with closed-form members that see the whole graph; BEKM on features "
            "smoothed over the graph. Sweeps, requests and attacks are of the default "
            f"configuration: partition {default}, aggregation {_default('aggregation')} with the "
            "closed-form members (pooled)."
        ),
        suffix="",
        partitions={label: label for label in partitions},
        others={label: label for label in ("blpa-lp", "bekm-hungarian", "ekm")},
        aggregations={label: label for label in aggregations},
        ours={label: label for label in ("routed", "closed-form", "pooled")},
        chosen="pooled",
        readings={"*": (default,)},
    )


PROTOCOLS = {"paper": _paper, "best": _best}


@cache
def protocol_of(name: str) -> Protocol:
    """The protocol of that name."""
    if name not in PROTOCOLS:
        choices = ", ".join(PROTOCOLS)
        raise ParameterError(f"unknown protocol '{name}'. Choose from: {choices}.")
    return PROTOCOLS[name]()


@dataclass(frozen=True)
class Options:
    """Everything that the cells of an experiment depend on.

    Attributes:
        datasets: names, or paths of npz files.
        models: gat, gcn, gin, sage, mlp, a preset, or the user's own ``module:factory``.
        runs: how many; each has its own split and its own random numbers.
        protocol: ``paper`` or ``best``.
        partitions: further registered ones, or the user's own, beside the protocol's.
        aggregations: likewise.
        epochs: of every training.
        requests: how many requests of each kind are timed in every cell.
        scratch_requests: how many of those are timed where a request trains everything afresh; k
            times as many in the sweep over the number k of shards.
        num_shards: k for every data set, instead of the paper's.
    """

    datasets: tuple[str, ...] = paper.DATASETS
    models: tuple[str, ...] = paper.MODELS
    runs: int = paper.RUNS
    protocol: str = "paper"
    partitions: tuple[str, ...] = ()
    aggregations: tuple[str, ...] = ()
    epochs: int = 100
    requests: int = 100
    scratch_requests: int = 100
    num_shards: int | None = None

    def __post_init__(self) -> None:
        protocol_of(self.protocol)
        for name in ("runs", "requests", "scratch_requests"):
            checks.whole(name, "experiment", getattr(self, name), 1)
        for text in self.partitions:
            name = parse(text)[0]
            if not is_own(name):
                PARTITIONERS.get(name)
        for text in self.aggregations:
            name = parse(text)[0]
            if not is_own(name):
                AGGREGATORS.get(name)

    @property
    def how(self) -> Protocol:
        return protocol_of(self.protocol)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every data set with every model."""
        return [(dataset, model) for dataset in self.datasets for model in self.models]

    @property
    def learned(self) -> str:
        """LBAggr, as a cell names it."""
        return self.how.aggregations.get("learned", "mean")

    @property
    def chosen(self) -> str:
        """The aggregation of sweeps, requests and attacks, as a cell names it."""
        return self.aggregation_names[self.how.chosen]

    @property
    def main_partitions(self) -> tuple[str, ...]:
        """Labels of the partitions in the main tables, the user's own last."""
        return tuple(dict.fromkeys((*self.how.partitions, *self.partitions)))

    @property
    def aggregation_names(self) -> dict[str, str]:
        """Every aggregation by label: the paper's, ours, and the user's own."""
        added = {text: text for text in self.aggregations}
        return {**self.how.aggregations, **self.how.ours, **added}

    def preset(self, model: str) -> str:
        """The model as a cell names it."""
        return model if ":" in model else model + self.how.suffix

    def shards(self, dataset: str) -> int:
        """k: the paper's where it has one."""
        if self.num_shards is not None:
            return self.num_shards
        return PUBLIC[dataset].num_shards if dataset in PUBLIC else DEFAULT_SHARDS

    def readings(self, model: str) -> tuple[str, ...]:
        """Partitions that sweeps and attacks look at: the default one, or the paper's guideline.

        The guideline is BLPA for GCN and BEKM for all others, with and without labels.
        """
        kind = model.split(":", maxsplit=1)[0]
        return self.how.readings.get(kind, self.how.readings["*"])

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """Every data set and model with each of its readings."""
        return [(d, m, method) for d, m in self.pairs for method in self.readings(m)]

    def data(self, dataset: str, run: int) -> dict[str, Any]:
        """The part of a configuration that says which graph, split and seed it is."""
        config: dict[str, Any] = {"dataset": dataset, "split_seed": run, "seed": run}
        if dataset.endswith(".npz") and (digest := _digest(dataset)) is not None:
            config["data"] = digest
        return config

    def sources(self, *parts: str) -> dict[str, Any]:
        """What the files of the user's own parts contain, where there are any."""
        found = sources_of(parse(part)[0] for part in parts)
        return {"sources": found} if found else {}


@cache
def _digest(path: str) -> str | None:
    return file_digest(Path(path))
