"""grapheraser datasets: known data sets, and those on disk."""

from __future__ import annotations

from grapheraser.cli.output import JsonOption, print_json, print_table, say

NAME = "datasets"


def run(json: JsonOption = False) -> None:
    """List the known data sets and their files."""
    from grapheraser.datasets import data_root, dataset_info

    infos = dataset_info()
    if json:
        print_json({"root": str(data_root()), "datasets": [info.to_dict() for info in infos]})
        return
    rows = [(i.name, i.source, "yes" if i.available else "no", i.path or "-") for i in infos]
    print_table("", ("name", "source", "on disk", "file"), rows)
    say(f"\ndata folder: {data_root()} (set GRAPHERASER_DATA to use another)")
