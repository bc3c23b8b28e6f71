"""Every experiment, registered: one module of `paper` per table or figure."""

from importlib import import_module

from grapheraser.experiments.framework.cell import KINDS, Cell, Kind, Result, Results
from grapheraser.experiments.framework.experiment import (
    EXPERIMENTS,
    Experiment,
    Summary,
    in_order,
    register,
)
from grapheraser.experiments.framework.options import PROTOCOLS, Options
from grapheraser.experiments.framework.rules import RULES, Claim, Rule
from grapheraser.experiments.framework.study import ALL, Study, run_study

# Each of them registers its experiments.
MODULES = (
    "collapse",
    "datasets",
    "efficiency",
    "cost",
    "utility",
    "edge_utility",
    "mlp",
    "guideline",
    "samples",
    "partitioners",
    "partition_cost",
    "shard_sizes",
    "convergence",
    "importance",
    "tsne",
    "structure",
    "robustness",
    "shards",
    "delta",
    "community_requests",
    "lpa_view",
    "attack",
    "insertion",
    "sensitivity",
    "links",
)
for _module in ("measure", *(f"paper.{name}" for name in MODULES)):
    import_module(f"grapheraser.experiments.{_module}")

__all__ = [
    "ALL",
    "EXPERIMENTS",
    "KINDS",
    "MODULES",
    "PROTOCOLS",
    "RULES",
    "Cell",
    "Claim",
    "Experiment",
    "Kind",
    "Options",
    "Result",
    "Results",
    "Rule",
    "Study",
    "Summary",
    "in_order",
    "register",
    "run_study",
]
