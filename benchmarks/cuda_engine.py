"""The CUDA engine against the PyG loop, on one GPU.

    GRAPHERASER_DATA=... PYTHONPATH=src python benchmarks/cuda_engine.py --out results.json

Prints the tables; the JSON goes to ``--out``. ``--no-checks`` leaves out the comparison of bits
and of the CPU engine, ``--no-timings`` the rest.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from grapheraser.bench import cuda


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    parser.add_argument("--no-checks", action="store_true", help="only the timings")
    parser.add_argument("--no-timings", action="store_true", help="only the checks")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("error: this benchmark needs a CUDA device.")

    def progress(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    report = {} if arguments.no_timings else cuda.run(progress=progress)
    if not arguments.no_checks:
        report |= cuda.checks(progress=progress)
    text = json.dumps(report, indent=1)
    if arguments.out is not None:
        arguments.out.write_text(text + "\n")
    print(text if arguments.no_timings else cuda.markdown(report))


if __name__ == "__main__":
    main()
