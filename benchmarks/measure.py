"""Measure benchmarks and keep their results; `make docs` puts them into the guides.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/measure.py             all that need no GPU
    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/measure.py partition   one of them
    python benchmarks/measure.py cuda                                       on one GPU

Prints the tables; the JSON goes to benchmarks/results. Benchmarks of many cells keep those under
runs/, and a stopped run goes on from there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from grapheraser.bench import (
    attacks,
    cost,
    cuda,
    cuda_checks,
    engines,
    fidelity,
    leaks,
    modules,
    partition,
    public,
    refresh,
    relearning,
    unlearn,
    utility,
)

RESULTS = Path(__file__).resolve().parent / "results"
Measure = Callable[..., dict[str, Any]]


def _cuda(**options: Any) -> dict[str, Any]:
    return cuda.run(**options) | cuda_checks.run(**options)


BENCHMARKS: dict[str, tuple[ModuleType, Measure]] = {
    "partition": (partition, partition.run),
    "partition-scale": (partition, partition.scale),
    "engines": (engines, engines.run),
    "unlearn": (unlearn, unlearn.run),
    "cost": (cost, cost.run),
    "relearning": (relearning, relearning.run),
    "modules": (modules, modules.run),
    "fidelity": (fidelity, fidelity.run),
    "attacks": (attacks, attacks.run),
    "attacks-recovery": (attacks, attacks.recovery),
    "attacks-mitigations": (attacks, attacks.mitigations),
    "attacks-partition": (attacks, attacks.partition),
    "leaks": (leaks, leaks.run),
    "refresh": (refresh, refresh.run),
    "public": (public, public.run),
    "utility": (utility, utility.run),
    "utility-partitions": (utility, utility.partitions),
    "cuda": (cuda, _cuda),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(BENCHMARKS)}")
    names = parser.parse_args().names or [name for name in BENCHMARKS if name != "cuda"]
    for name in names:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark '{name}'. Choose from: {', '.join(BENCHMARKS)}.")
    for name in names:
        module, measure = BENCHMARKS[name]
        report = measure(progress=lambda text: print(text, file=sys.stderr, flush=True))
        (RESULTS / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
        print(f"{name}\n\n{module.markdown(report)}\n")


if __name__ == "__main__":
    main()
