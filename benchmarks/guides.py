"""Write the tables and pictures of all stored results into the guides.

python -m benchmarks.guides
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.peers import tables as peers
from grapheraser.bench import (
    attack_tables,
    cost,
    cuda,
    engines,
    fidelity,
    leaks,
    links,
    modules,
    partition,
    planning,
    public,
    refresh,
    relearning,
    scale,
    unlearn,
    utility,
)
from grapheraser.reports.figures.canvas import as_png, fewer_colours
from grapheraser.reports.figures.curves import draw_curves
from grapheraser.reports.figures.ratios import draw_ratios

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def main() -> None:
    partitions = stored("partition")
    write("partitioning.md", "partition", partition.markdown(partitions))
    write("partitioning.md", "partition-convergence", partition.convergence_markdown(partitions))
    write("partitioning.md", "partition-scale", partition.markdown(stored("partition-scale")))
    write("engines.md", "engines", engines.markdown(stored("engines")))
    write("engines.md", "unlearn", unlearn.markdown(stored("unlearn")))
    costs = stored("cost")
    write("cost.md", "cost-datasets", cost.by_dataset(costs))
    write("cost.md", "cost-sizes", cost.by_size(costs))
    picture = as_png(draw_curves(cost.curves(costs), "nodes", "seconds", log_x=True), dpi=110)
    (ROOT / "docs" / "images" / "cost.png").write_bytes(fewer_colours(picture))
    sizes = stored("scale")
    write("scale.md", "scale-sizes", scale.by_size(sizes))
    write("scale.md", "scale-real", scale.real(sizes))
    write("scale.md", "scale-partitions", scale.partitioned(sizes))
    write("scale.md", "scale-planning", planning.planning(sizes))
    write("scale.md", "scale-deviations", planning.deviations(sizes))
    picture = as_png(draw_curves(scale.curves(sizes), "edges", "seconds", log_x=True), dpi=110)
    (ROOT / "docs" / "images" / "scale.png").write_bytes(fewer_colours(picture))
    write("engines.md", "modules", modules.markdown(stored("modules")))
    write("engines.md", "cuda", cuda.markdown(stored("cuda")))
    write("engines.md", "fidelity", fidelity.markdown(stored("fidelity")))
    write("aggregation.md", "relearning", relearning.markdown(stored("relearning")))
    write("audit.md", "attacks-one", attack_tables.one_version(stored("attacks")))
    write("audit.md", "attacks-both", attack_tables.both_versions(stored("attacks")))
    for name in ("attacks-partition", "attacks-recovery", "attacks-mitigations"):
        write("audit.md", name, attack_tables.markdown(stored(name)))
    write("audit.md", "leaks", leaks.markdown(stored("leaks")))
    write("audit.md", "refresh", refresh.markdown(stored("refresh")))
    write("links.md", "links", links.markdown(stored("links")))
    f1 = stored("utility-partitions")
    write("aggregation.md", "utility-partitions", utility.summary(f1))
    write("results/aggregations.md", "utility", utility.table(f1))
    write("context.md", "public", public.markdown(stored("public")))
    ten = stored("utility")
    write("aggregation.md", "utility", utility.verdict(ten))
    write("results/aggregations.md", "utility-graphs", utility.graphs(ten))
    write_peers(stored("peers"))
    kept = {
        f"{part}, {label}": utility.ratios(f1, part, label)
        for part in utility.PARTITIONS
        for label in utility.AGGREGATIONS
        if utility.ratios(f1, part, label)
    }
    picture = as_png(draw_ratios(kept, groups=len(utility.PARTITIONS)), dpi=110)
    (ROOT / "docs" / "images" / "utility.png").write_bytes(fewer_colours(picture))


def write_peers(report: Any) -> None:
    write("peers.md", "peers", peers.leaderboard(report))
    for table in (peers.by_dataset, peers.distances, peers.times, peers.attacks, peers.settings):
        write("peers.md", f"peers-{table.__name__.replace('_', '-')}", table(report))
    picture = as_png(draw_curves(peers.drift(report), "requests", "", columns=2), dpi=110)
    (ROOT / "docs" / "images" / "peers.png").write_bytes(fewer_colours(picture))


def stored(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def write(guide: str, name: str, table: str) -> None:
    path = ROOT / "docs" / guide
    pattern = rf"(<!-- table: {name} -->).*?(<!-- end -->)"
    # A function, because a table may hold backslashes.
    text = re.sub(pattern, lambda m: f"{m[1]}\n\n{table}\n\n{m[2]}", path.read_text(), flags=re.S)
    path.write_text(text)


if __name__ == "__main__":
    main()
