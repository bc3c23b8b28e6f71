"""F1 of every partition and aggregation beside training from scratch.

    GRAPHERASER_DATA=... PYTHONPATH=src python benchmarks/utility.py --out utility.json

Finished cells are kept under ``--folder``; a stopped run goes on where it was. ``--experts``
compares the kinds of global expert instead, on more graphs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from grapheraser.bench import utility
from grapheraser.experiments.paper import published as paper
from grapheraser.models import GNNS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--folder", type=Path, help="finished cells")
    parser.add_argument("--datasets")
    parser.add_argument("--models", default=",".join(GNNS))
    parser.add_argument("--partitions", default=",".join(utility.PARTITIONS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu", help="where shards are trained")
    parser.add_argument("--experts", action="store_true")
    arguments = parser.parse_args()

    def progress(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    known = (*paper.DATASETS, *utility.OTHERS) if arguments.experts else paper.DATASETS
    options: dict[str, Any] = {"seeds": arguments.seeds, "device": arguments.device}
    if arguments.folder is not None:
        options["folder"] = arguments.folder
    if not arguments.experts:
        options["partitions"] = arguments.partitions.split(",")
    report = (utility.experts if arguments.experts else utility.run)(
        arguments.datasets.split(",") if arguments.datasets else known,
        arguments.models.split(","),
        progress=progress,
        **options,
    )
    print(utility.markdown(report))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
