"""Forgetting, request to receipt, beside PyG training from scratch, on one core.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/unlearn.py

The result goes to benchmarks/results/unlearn.json; `make docs` puts it into the guide.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grapheraser.bench import unlearn

RESULT = Path(__file__).resolve().parent / "results" / "unlearn.json"


def main() -> None:
    report = unlearn.run(progress=lambda text: print(text, file=sys.stderr))
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    print(unlearn.markdown(report))


if __name__ == "__main__":
    main()
