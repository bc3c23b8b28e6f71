"""Every setting of protocol `literal`: its value, read from the code, and where it comes from."""

from __future__ import annotations

import inspect
from dataclasses import fields

from grapheraser.aggregation.base import MAX_NEIGHBOURS
from grapheraser.aggregation.learned import LearnedAggregator
from grapheraser.aggregation.sample.membership import DEFAULT_COUNT, DEFAULT_SHARE
from grapheraser.aggregation.simplex import paper_weights
from grapheraser.datasets import PUBLIC
from grapheraser.models import PRESETS, ModelSpec
from grapheraser.partition.base import MAX_ITERATIONS
from grapheraser.partition.kmeans import DIMENSIONS
from grapheraser.reports.tables import Table
from grapheraser_lab.framework import published as paper

TEXT, CODE, OURS = "text", "released code", "our choice"
MODELS = (*paper.MODELS, "mlp")

# Fields of a model that not all models have.
_ONLY = {
    "second_hidden": ("mlp",),
    "heads": ("gat",),
    "input_dropout": ("gat",),
    "attention_dropout": ("gat",),
    "self_loops": ("gcn", "gat"),
    "bias": ("gcn",),
    "mean": ("gin",),
    "skip": ("gat",),
    "batch_norm": ("gin",),
    "linear_head": ("gin",),
}
# Where each field of a model comes from, by field, or by field and model.
_SOURCES: dict[str | tuple[str, str], tuple[str, str]] = {
    "layers": (TEXT, ""),
    "hidden": (CODE, "the text names no widths"),
    "second_hidden": (CODE, ""),
    "heads": (CODE, ""),
    "activation": (CODE, ""),
    ("activation", "sage"): (OURS, ""),
    ("activation", "gin"): (OURS, ""),
    "dropout": (CODE, "there it acts in the first epoch only, by mistake; here in all"),
    ("dropout", "mlp"): (OURS, ""),
    "input_dropout": (CODE, "as dropout"),
    "attention_dropout": (CODE, "as dropout"),
    "self_loops": (CODE, ""),
    ("self_loops", "gcn"): (TEXT, "its formula has none; the code agrees"),
    "bias": (CODE, ""),
    "mean": (TEXT, "GIN sums"),
    "skip": (TEXT, "its formula has none"),
    "batch_norm": (CODE, ""),
    "linear_head": (CODE, ""),
    "all_columns": (TEXT, "a weight for every feature column"),
    "lr": (TEXT, "the code has 0.05 for GCN"),
    "weight_decay": (TEXT, "the code has 0.0001 for GCN and GIN"),
}


def model_rows() -> list[tuple[str, str, str, str, str]]:
    """A row for each field and model: whose it is, its name, its value, its source, a remark."""
    rows = []
    for field in fields(ModelSpec):
        if field.name == "kind":
            continue
        for model in _ONLY.get(field.name, MODELS):
            spec = PRESETS[f"{model}:paper"]
            value = spec.depth if field.name == "layers" else getattr(spec, field.name)
            general = _SOURCES.get(field.name, (OURS, "the package's default"))
            rows.append(
                (model, field.name, f"{value}", *_SOURCES.get((field.name, model), general))
            )
    return rows


def other_rows() -> list[tuple[str, str, str, str, str]]:
    """Partition, training, aggregation and data."""
    steps = inspect.signature(paper_weights).parameters
    shards = ", ".join(f"{name} {PUBLIC[name].num_shards}" for name in paper.DATASETS)
    capacity = "ceil(n/k)"
    return [
        ("data", "split", "80 % training, 20 % test, at random, new in each run", TEXT, ""),
        ("data", "features", "as the data sets hold them", OURS, "the code divides rows by sums"),
        ("data", "edges", "all between training nodes", TEXT, "the code deletes 90 % by default"),
        ("training", "epochs", "100", TEXT, ""),
        ("training", "batches", "all nodes at once", OURS, "the code samples 5 neighbours twice"),
        ("partition", "number of shards", shards, TEXT, ""),
        ("partition", "capacity", capacity, TEXT, "the code adds 0.5 % of the rest"),
        ("partition", "iterations", f"{MAX_ITERATIONS}", TEXT, "the code has 100 and 20"),
        ("bekm", "dimensions", f"{DIMENSIONS}", TEXT, "the code has as many as classes"),
        ("bekm", "embedding", "hidden units of a SAGE trained with labels", CODE,
         "the text says: a pretrained GNN"),
        ("bekm", "pretraining", "100 epochs, on the training graph", OURS,
         "the code infers with test nodes in sight"),
        ("lbaggr", "objective", "cross-entropy of the weighted posteriors", TEXT,
         "the code: softmax twice, of log posteriors"),
        ("lbaggr", "lambda", f"{LearnedAggregator().penalty}", OURS, "not in the text"),
        ("lbaggr", "norm", "Euclidean", OURS, "the sum of the scores is constant"),
        ("lbaggr", "rate", f"{steps['rate'].default}", OURS, "not in the text"),
        ("lbaggr", "steps", f"{steps['steps'].default}", OURS, "not in the text"),
        ("lbaggr", "normalisation", "softmax after each step", TEXT, "the code: by the sum"),
        ("lbaggr", "nodes", f"{100 * DEFAULT_SHARE:.0f} %, at most {DEFAULT_COUNT}", TEXT, ""),
        ("lbaggr", "neighbourhoods", "thinned to 2 neighbours a hop", OURS,
         "whole in protocol paper; section readings has the effect"),
        ("mean", "average", "of probabilities", TEXT, "the code: of log probabilities"),
        ("prediction", "neighbourhoods", "whole, test nodes included", OURS,
         f"thinned to {MAX_NEIGHBOURS} neighbours where shards are routed, which is ours"),
    ]  # fmt: skip


def settings_table() -> Table:
    """All of them."""
    return Table(
        "Every setting of protocol literal, and where it comes from",
        ("of", "setting", "value", "source", "remark"),
        (*other_rows(), *model_rows()),
        "Values are read from the code. text: the paper says so; released code: the text does not "
        "say, the paper's code does; our choice: neither, or the code can't be meant.",
    )
