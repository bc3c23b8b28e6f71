"""Put the reports of finished experiments where the documentation shows them.

    python -m benchmarks.publish runs/paper runs/best

A folder goes to docs/results under its own name: both reports, and of each experiment its data
and its figure. What was there before goes.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

REPORTS = ("report.html", "report.md")
RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"


def publish(source: Path, target: Path) -> None:
    """Copy one report."""
    experiments = sorted(path.parent for path in source.glob("*/data.csv"))
    if not experiments or not all((source / name).is_file() for name in REPORTS):
        sys.exit(f"{source} holds no report: run `grapheraser experiment all --out {source}` first")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in REPORTS:
        shutil.copyfile(source / name, target / name)
    for folder in experiments:
        shutil.copyfile(folder / "data.csv", target / f"{folder.name}.csv")
        if (folder / "figure.png").is_file():
            (target / folder.name).mkdir()
            shutil.copyfile(folder / "figure.png", target / folder.name / "figure.png")


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(f"which folders?\n{__doc__}")
    for folder in map(Path, sys.argv[1:]):
        publish(folder, RESULTS / folder.name)
