"""Every partitioner on one core, METIS (k-way) as the unit.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/partition.py            the paper's graphs
    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/partition.py --scale    10^4 to 10^6 nodes

Results go to benchmarks/results (``--json`` prints them too), with `make docs` into the guide.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from grapheraser.bench import partition

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--scale", action="store_true", help="BLPA and METIS on growing graphs")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    report = (
        partition.scale(seed=arguments.seed, progress=_say)
        if arguments.scale
        else partition.run(repeats=arguments.repeats, seed=arguments.seed, progress=_say)
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1)
    (RESULTS / f"{report['benchmark']}.json").write_text(text + "\n")
    print(text if arguments.json else partition.markdown(report))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
