"""Every experiment, registered: one module per table or figure."""

from importlib import import_module

from grapheraser_lab.framework.cell import KINDS, Cell, Kind, Result, Results
from grapheraser_lab.framework.experiment import (
    EXPERIMENTS,
    Experiment,
    Summary,
    in_order,
    register,
)
from grapheraser_lab.framework.options import PROTOCOLS, Options
from grapheraser_lab.framework.rules import RULES, Claim, Rule
from grapheraser_lab.framework.study import ALL, Study, run_study

# Each of them registers its experiments.
MODULES = (
    *("collapse", "datasets", "efficiency", "cost", "utility", "guideline", "samples"),
    *("partitioners", "partition_cost", "shard_sizes", "importance", "sweeps", "shards", "attack"),
    *("insertion", "sensitivity", "readings", "links"),
)
for _module in MODULES:
    import_module(f"grapheraser_lab.experiments.{_module}")

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
