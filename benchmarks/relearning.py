"""What relearning the aggregation costs after a request, on one core.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/relearning.py

The result goes to benchmarks/results/relearning.json; `make docs` puts it into the guide.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grapheraser.bench import relearning

RESULT = Path(__file__).resolve().parent / "results" / "relearning.json"


def main() -> None:
    report = relearning.run(progress=lambda text: print(text, file=sys.stderr))
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    print(relearning.markdown(report))


if __name__ == "__main__":
    main()
