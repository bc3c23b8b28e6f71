"""Every partitioner on one core, METIS (k-way) as the unit.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/partition.py            the paper's graphs
    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/partition.py --scale    10^4 to 10^6 nodes
    python benchmarks/partition.py --docs                                    the guide's tables

Results go to benchmarks/results; ``--json`` prints them as well.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from grapheraser.bench import partition

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
GUIDE = ROOT / "docs" / "partitioning.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--scale", action="store_true", help="BLPA and METIS on growing graphs")
    parser.add_argument("--docs", action="store_true", help="only write the tables of the guide")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if not arguments.docs:
        report = (
            partition.scale(seed=arguments.seed, progress=_say)
            if arguments.scale
            else partition.run(repeats=arguments.repeats, seed=arguments.seed, progress=_say)
        )
        RESULTS.mkdir(parents=True, exist_ok=True)
        text = json.dumps(report, indent=1)
        (RESULTS / f"{report['benchmark']}.json").write_text(text + "\n")
        print(text if arguments.json else partition.markdown(report))
    write_guide()


def write_guide() -> None:
    """Put the tables of the stored results between the guide's markers."""
    text = GUIDE.read_text()
    for name, render in (
        ("partition", partition.markdown),
        ("partition-convergence", partition.convergence_markdown),
        ("partition-scale", partition.markdown),
    ):
        source = RESULTS / f"{name.removesuffix('-convergence')}.json"
        if source.exists():
            table = render(json.loads(source.read_text()))
            pattern = rf"(<!-- table: {name} -->).*?(<!-- end -->)"
            text = re.sub(pattern, rf"\1\n\n{table}\n\n\2", text, flags=re.DOTALL)
    GUIDE.write_text(text)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
