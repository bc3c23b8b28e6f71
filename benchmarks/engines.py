"""The CPU engine against the PyG loop, on one core.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/engines.py

Results go to benchmarks/results (``--json`` prints them too), with `make docs` into the guide.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from grapheraser.bench import engines

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "engines.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments = parser.parse_args()
    report = engines.run(progress=lambda text: print(text, file=sys.stderr))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1) if arguments.json else engines.markdown(report))


if __name__ == "__main__":
    main()
