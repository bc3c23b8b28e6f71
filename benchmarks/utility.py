"""F1 of every partition and aggregation beside training from scratch.

    GRAPHERASER_DATA=... PYTHONPATH=src python benchmarks/utility.py --out utility.json

Finished cells are kept under ``--folder``; a stopped run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from grapheraser import paper
from grapheraser.bench import utility
from grapheraser.models import GNNS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--folder", type=Path, default=Path("runs/utility"), help="finished cells")
    parser.add_argument("--datasets", default=",".join(paper.DATASETS))
    parser.add_argument("--models", default=",".join(GNNS))
    parser.add_argument("--partitions", default=",".join(utility.PARTITIONS))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()

    def progress(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    report = utility.run(
        arguments.datasets.split(","),
        arguments.models.split(","),
        partitions=arguments.partitions.split(","),
        seeds=arguments.seeds,
        folder=arguments.folder,
        progress=progress,
    )
    print(utility.markdown(report))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
