"""Training in slices: time of a request, storage of checkpoints, F1, by the number of slices.

    OMP_NUM_THREADS=1 python benchmarks/slices.py

Results go to benchmarks/results (``--json`` prints them too), with `make docs` into the guide.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from grapheraser.bench import slices

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "slices.json"
# F1 is a mean over so many seeds; a shard of Physics takes longer.
SEEDS = {"cora": 3, "physics": 1}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments = parser.parse_args()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, seeds in SEEDS.items():
        report = slices.run([name], seeds=seeds, progress=lambda text: print(text, file=sys.stderr))
        rows += report["rows"]
        report["rows"] = rows
        RESULT.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1) if arguments.json else slices.markdown(report))


if __name__ == "__main__":
    main()
