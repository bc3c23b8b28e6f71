"""Options that the user may choose: data sets, models, runs, and one of three protocols."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from grapheraser import checks
from grapheraser.aggregation import AGGREGATORS
from grapheraser.datasets import PUBLIC
from grapheraser.errors import ParameterError
from grapheraser.nodes import GraphEraser
from grapheraser.partition import PARTITIONERS
from grapheraser.store.files import file_digest
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.resolve import is_own, parse, sources_of

DEFAULT_SHARDS = 20
# BEKM on an embedding that never saw a label, or that did.
FREE_SUFFIX, LABELS_SUFFIX = "-free", "-labels"
FREE, LABELS = f"bekm{FREE_SUFFIX}", f"bekm{LABELS_SUFFIX}"
# Ways to read the paper: word by word; as near to its tables as its text admits.
AS_WRITTEN, CLOSEST = "as written", "closest"
CONVEX, LABEL_FREE, WITH_LABELS = "convex", "BEKM without labels", "BEKM with labels"


@dataclass(frozen=True)
class Protocol:
    """How the method is set up.

    Attributes:
        name: ``paper``, ``literal`` or ``best``.
        about: in one sentence.
        suffix: what is put behind a model's name to get its preset.
        partitions: methods of the main tables, by label.
        others: further methods, by label.
        aggregations: by label; ``learned`` stands for LBAggr.
        ours: aggregations that the paper does not have, by label.
        chosen: label of the aggregation that everything but `utility` looks at.
        readings: by model, labels of the partitions that sweeps and attacks look at; ``*`` for all
            other models.
        bekm: ways to read BEKM, by name, with the label of the partition.
        lbaggr: ways to read LBAggr, by name, with the labels of the aggregation and of its mean.
        leads: whether the first of several readings gives the verdict.
        features, view: ``rows`` divides each row by its sum; ``shard`` shows a shard model its own
            nodes and the test nodes only.
        model_options: what is changed in the preset of a model.
        served: label of the aggregation where requests go through the package itself.
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
    bekm: Mapping[str, str] = field(default_factory=lambda: {AS_WRITTEN: "bekm"})
    lbaggr: Mapping[str, tuple[str, str]] = field(
        default_factory=lambda: {CONVEX: ("learned", "mean")}
    )
    leads: bool = False
    features: str = ""
    view: str = ""
    model_options: Mapping[str, str] = field(default_factory=dict)
    served: str = ""

    @property
    def suffixes(self) -> dict[str, str]:
        """Ways to read BEKM, with what is put behind the name of a k-means method."""
        return {name: label.removeprefix("bekm") for name, label in self.bekm.items()}

    @property
    def of_paper(self) -> bool:
        """True where it is a reading of the paper."""
        return self.name != "best"

    def partition(self, label: str) -> str:
        """The method that a label stands for; a label of the user's own is its own name."""
        return {**self.others, **self.partitions}.get(label, label)


def _default(parameter: str) -> str:
    return str(inspect.signature(GraphEraser).parameters[parameter].default)


NO_DROPOUT = "dropout=0.0, input_dropout=0.0, attention_dropout=0.0"


def _paper() -> Protocol:
    return Protocol(
        name="paper",
        about=(
            "The method of the paper, read so that it comes nearest to the published tables: among "
            "all that the text admits, and chosen on half of the cells of Cora and Citeseer "
            "(section readings). The text's 100 epochs of Adam (rate 0.01, decay 0.001), delta = "
            "ceil(n/k), T = 30; rows of features divided by their sums, no dropout, each shard "
            "model shown its own nodes and the test nodes, BEKM on the first layer of a GNN that "
            "never saw a label (32 units), LBAggr with a softmax of the weighted posteriors in its "
            "loss and scores of 0 and more, from 10 % of the training nodes but 1000 at most. What "
            "reads the text word by word is protocol literal. Requests, attacks and insertions go "
            "through the package, which shows every shard the whole graph."
        ),
        suffix=":paper",
        partitions={
            "random": "random",
            "blpa": "blpa",
            "bekm": "bekm(embedding=layer1)",
            LABELS: "bekm(embedding=sage)",
        },
        others={
            "blpa-lp": "blpa-lp",
            "bekm-hungarian": "bekm-hungarian(embedding=layer1)",
            f"bekm-hungarian{LABELS_SUFFIX}": "bekm-hungarian(embedding=sage)",
            "metis": "metis",
            "ekm": "ekm(embedding=layer1)",
        },
        aggregations={"mean": "mean", "majority": "majority", "learned": "lbaggr(reading=softmax)"},
        ours={
            "convex": "lbaggr",
            "steps": "lbaggr(reading=steps)",
            "released": "released",
            "log-mean": "log-mean",
        },
        chosen="learned",
        readings={"gcn": ("blpa",), "*": ("bekm",)},
        bekm={CLOSEST: "bekm", WITH_LABELS: LABELS},
        lbaggr={
            CLOSEST: ("learned", "mean"),
            CONVEX: ("convex", "mean"),
            AS_WRITTEN: ("steps", "mean"),
            "released code": ("released", "log-mean"),
        },
        leads=True,
        features="rows",
        view="shard",
        model_options=dict.fromkeys(paper.MODELS, NO_DROPOUT),
        served="learned",
    )


def _literal() -> Protocol:
    own = {"convex": "learned", "released": "released", "log-mean": "log-mean", "routed": "routed"}
    return Protocol(
        name="literal",
        about=(
            "The method as the paper states it, word by word: its models (100 epochs, Adam, "
            "learning rate 0.01, "
            "weight decay 0.001), delta = ceil(n/k), T = 30, BEKM on the 32 hidden units of a GNN "
            "trained on the training graph, LBAggr by gradient steps with a softmax after each, "
            "from 10 % of the training nodes but 1000 at most, on neighbourhoods thinned to 2 "
            "neighbours a hop (readings has the effect). Dropout is that of the released code, but "
            "in all epochs; features are as the data sets hold them. Second readings stand beside: "
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
        bekm={AS_WRITTEN: "bekm", LABEL_FREE: FREE},
        lbaggr={
            AS_WRITTEN: ("learned", "mean"),
            CONVEX: ("convex", "mean"),
            "released code": ("released", "log-mean"),
        },
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
            "closed-form members (pooled). Members and pool were chosen on validation nodes of "
            "these very graphs, a few of their sizes and the hops of BEKM's embedding with test "
            "nodes in sight, the columns of links with test edges; the member pattern and the "
            "weights of the pool see the edges of test nodes, never their labels."
        ),
        suffix="",
        partitions={label: label for label in partitions},
        others={label: label for label in ("blpa-lp", "bekm-hungarian", "ekm")},
        aggregations={label: label for label in aggregations},
        ours={label: label for label in ("routed", "closed-form", "pooled")},
        chosen="pooled",
        readings={"*": (default,)},
    )


PROTOCOLS = {"paper": _paper, "literal": _literal, "best": _best}


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
        protocol: ``paper``, ``literal`` or ``best``.
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
    def solved(self) -> dict[str, str]:
        """The aggregation under each reading of LBAggr, as cells name it; first the chosen one."""
        if not self.how.of_paper:
            return {self.how.chosen: self.chosen}
        return {name: self.aggregation_names[some[0]] for name, some in self.how.lbaggr.items()}

    @property
    def served(self) -> str:
        """The aggregation where requests go through the package, as a cell names it."""
        return self.how.served or self.chosen

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
        if ":" in model:
            return model
        changed = self.how.model_options.get(model)
        return model + self.how.suffix + (f"({changed})" if changed else "")

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
        if self.how.features:
            config["features"] = self.how.features
        if dataset.endswith(".npz") and (digest := _digest(dataset)) is not None:
            config["data"] = digest
        return config

    def sources(self, *parts: str) -> dict[str, Any]:
        """Return the contents of the files of the user's own parts, where there are any."""
        found = sources_of(parse(part)[0] for part in parts)
        return {"sources": found} if found else {}


@cache
def _digest(path: str) -> str | None:
    return file_digest(Path(path))
