"""F1 of the CPU engine beside the PyG loop's, over ten seeds.

    OMP_NUM_THREADS=1 python benchmarks/fidelity.py

The result goes to benchmarks/results/fidelity.json; `make docs` puts it into the guide.
Finished cells are kept under runs/fidelity; a stopped run goes on from there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grapheraser.bench import fidelity

RESULT = Path(__file__).resolve().parent / "results" / "fidelity.json"


def main() -> None:
    report = fidelity.run(progress=lambda text: print(text, file=sys.stderr))
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    print(fidelity.markdown(report))


if __name__ == "__main__":
    main()
