"""Put what was measured where the documentation shows it.

    python -m grapheraser_lab.publish                        # lab/results into the guides
    python -m grapheraser_lab.publish runs/paper runs/best   # experiments into docs/results

Results of benchmarks come from `grapheraser bench NAME --out lab/results`. A folder of experiments
goes to docs/results under its own name: both reports, and of each experiment its data and its
figure; its cells go to lab/results/cells, packed (`framework.ledger`). What was there before goes.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grapheraser.reports.figures.canvas import as_png
from grapheraser_lab.arena import page as arena
from grapheraser_lab.bench import (
    adaptive,
    asked,
    attack_tables,
    cost,
    cuda,
    engines,
    links,
    member_sums,
    members,
    partition,
    public,
    relearning,
    scale,
    scratch,
    tuned,
    utility,
)
from grapheraser_lab.figures.bars import draw_ratios
from grapheraser_lab.figures.curves import draw_curves
from grapheraser_lab.framework.ledger import pack
from grapheraser_lab.framework.study import fewer_colours
from grapheraser_lab.rivals import tables as peers

REPORTS = ("report.html", "report.md")
ROOT = Path(__file__).resolve().parents[2]
DOCS, RESULTS = ROOT / "docs", ROOT / "lab" / "results"
# The page, the table of that name in it, the result that it is made from, and how.
TABLES: tuple[tuple[str, str, str, Callable[[Any], str]], ...] = (
    ("partitioning.md", "partition", "partition", partition.markdown),
    ("partitioning.md", "partition-convergence", "partition", partition.convergence_markdown),
    ("partitioning.md", "partition-scale", "partition-scale", partition.markdown),
    ("engines.md", "engines", "engines", engines.markdown),
    ("engines.md", "modules", "modules", engines.markdown),
    ("engines.md", "cuda", "cuda", cuda.markdown),
    ("engines.md", "fidelity", "fidelity", engines.markdown),
    (
        "cost.md",
        "cost-datasets",
        "cost",
        lambda r: cost.markdown(cost.beside(r, _stored("scratch"))),
    ),
    ("cost.md", "cost-scratch", "scratch", scratch.markdown),
    ("scale.md", "scale-sizes", "scale", scale.by_size),
    ("scale.md", "scale-real", "scale", scale.real),
    ("scale.md", "scale-partitions", "scale", scale.partitioned),
    ("scale.md", "scale-planning", "scale", scale.planning),
    ("scale.md", "scale-deviations", "scale", scale.deviations),
    ("scale.md", "member-sums", "member-sums", member_sums.markdown),
    ("aggregation.md", "relearning", "relearning", relearning.markdown),
    ("aggregation.md", "utility", "utility", utility.verdict),
    ("aggregation.md", "members", "members", members.markdown),
    ("aggregation.md", "tuned", "tuned", tuned.markdown),
    ("aggregation.md", "tuned-public", "tuned-public", tuned.markdown),
    ("aggregation.md", "utility-partitions", "utility-partitions", utility.summary),
    ("results/aggregations.md", "utility", "utility-partitions", utility.table),
    ("results/aggregations.md", "utility-graphs", "utility", utility.graphs),
    ("results/attacks.md", "attacks-one", "attacks", attack_tables.one_version),
    ("results/attacks.md", "attacks-both", "attacks", attack_tables.both_versions),
    ("results/attacks.md", "attacks-partition", "attacks-partition", attack_tables.markdown),
    ("results/attacks.md", "attacks-recovery", "attacks-recovery", attack_tables.markdown),
    ("results/attacks.md", "attacks-mitigations", "attacks-mitigations", attack_tables.markdown),
    ("results/attacks.md", "leaks", "leaks", attack_tables.markdown),
    ("results/attacks.md", "refresh", "refresh", attack_tables.markdown),
    ("adaptive.md", "adaptive", "adaptive", adaptive.markdown),
    ("aggregation.md", "asked", "asked", asked.asked),
    ("aggregation.md", "halo", "asked", asked.halo),
    ("links.md", "links", "links", links.markdown),
    ("context.md", "public", "public", public.markdown),
    ("context.md", "public-context", "public", public.contexts),
    ("arena.md", "arena", "arena", arena.markdown),
    ("arena.md", "arena-stream", "arena-stream", arena.markdown),
    ("arena.md", "arena-links", "arena-links", arena.markdown),
    ("arena.md", "arena-graphs", "arena-graphs", arena.markdown),
    ("peers.md", "peers", "peers", peers.leaderboard),
    ("peers.md", "peers-small", "peers", peers.small_board),
    ("peers.md", "peers-adversarial", "peers", peers.adversarial),
    ("peers.md", "peers-by-dataset", "peers", peers.by_dataset),
    ("peers.md", "peers-distances", "peers", peers.distances),
    ("peers.md", "peers-times", "peers", peers.times),
    ("peers.md", "peers-attacks", "peers", peers.attacks),
    ("peers.md", "peers-settings", "peers", peers.settings),
)
# By file: the result that a picture is made from, and how.
PICTURES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "scale": ("scale", lambda r: draw_curves(scale.curves(r), "edges", "seconds", log_x=True)),
    "peers": ("peers", lambda r: draw_curves(peers.drift(r), "requests", "", columns=2)),
    "utility": (
        "utility-partitions",
        lambda r: draw_ratios(utility.kept(r), groups=len(utility.PARTITIONS)),
    ),
}


def main(folders: list[str]) -> None:
    """Publish the reports in these folders; the stored results where there are none."""
    for folder in map(Path, folders):
        publish(folder, DOCS / "results" / folder.name)
        # Section readings of `paper` compares with the cells of `literal`, which stay with that.
        beside = RESULTS / "cells" / "literal.jsonl.xz" if folder.name == "paper" else None
        pack(folder, RESULTS / "cells" / f"{folder.name}.jsonl.xz", beside)
    if not folders:
        write_guides()


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


def write_guides() -> None:
    """Write the tables and pictures of all stored results into the guides."""
    for guide, name, result, table in TABLES:
        pattern = rf"(<!-- table: {name} -->)(.*?)(<!-- end -->)"
        path = DOCS / guide
        before, start, _, end, after = re.split(pattern, path.read_text(), flags=re.S)
        path.write_text(f"{before}{start}\n\n{table(_stored(result))}\n\n{end}{after}")
    for name, (result, draw) in PICTURES.items():
        picture = as_png(draw(_stored(result)), dpi=110)
        (DOCS / "images" / f"{name}.png").write_bytes(fewer_colours(picture))


def _stored(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


if __name__ == "__main__":
    main(sys.argv[1:])
